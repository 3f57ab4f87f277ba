// SPDX-License-Identifier: BSD-3-Clause
#include "bench/comm/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "bench/measure/measurement.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops::bench {

namespace {

/// Cuts `count` elements into a part for each rank, and returns the sizes of the parts.
std::vector<Index> part_sizes(Index count, int ranks, bool is_uneven) {
  const auto shares_before = [&](Index rank) { return is_uneven ? rank * (rank + 1) / 2 : rank; };
  std::vector<Index> sizes;
  for (Index rank = 0; rank < ranks; ++rank)
    sizes.push_back(count * shares_before(rank + 1) / shares_before(ranks) -
                    count * shares_before(rank) / shares_before(ranks));
  return sizes;
}

std::vector<Index> offsets_of(const std::vector<Index>& sizes) {
  std::vector<Index> offsets(sizes.size(), 0);
  std::partial_sum(sizes.begin(), sizes.end() - 1, offsets.begin() + 1);
  return offsets;
}

WindowKind window_kind(const std::string& transport) {
  return transport == "shared"      ? WindowKind::shared
         : transport == "one-sided" ? WindowKind::dynamic
                                    : WindowKind::allocated;
}

/// Calls function.template operator()<Real>() for the C++ type.
template <class Function>
decltype(auto) with_real(ElementType type, Function&& function) {
  switch (type) {
    case ElementType::i32:
      return function.template operator()<std::int32_t>();
    case ElementType::i64:
      return function.template operator()<std::int64_t>();
    case ElementType::f32:
      return function.template operator()<float>();
    case ElementType::byte:
    case ElementType::f64:
      break;
  }
  return function.template operator()<double>();
}

}  // namespace

const std::vector<Operation>& all_operations() {
  using enum Exchanged;
  static const std::vector<Operation> operations{
      {"all-reduce", all_reduce, false, true, false},
      {"all-gather", all_gather, false, true, true},
      {"all-gather-v", all_gather, true, true, true},
      {"reduce-scatter", reduce_scatter, false, true, true},
      {"reduce-scatter-v", reduce_scatter, true, true, true},
      {"broadcast", broadcast, false, true, false},
      {"reduce", reduce, false, false, true},
      {"gather", gather, false, true, true},
      {"scatter", scatter, false, true, true},
      {"all-to-all", all_to_all, false, false, true},
      {"all-to-all-v", all_to_all, true, false, true},
      {"send-receive", send_receive, false, false, true},
      {"get", get, false, false, true},
      {"put", put, false, false, true},
      {"accumulate", accumulate, false, false, true},
  };
  return operations;
}

bool Operation::has_parts() const {
  return kind == Exchanged::all_gather || kind == Exchanged::reduce_scatter || kind == Exchanged::gather ||
         kind == Exchanged::scatter || kind == Exchanged::all_to_all;
}

bool Operation::reduces() const {
  return kind == Exchanged::all_reduce || kind == Exchanged::reduce_scatter || kind == Exchanged::reduce ||
         kind == Exchanged::accumulate;
}

bool Operation::has_root() const {
  return kind == Exchanged::broadcast || kind == Exchanged::reduce || kind == Exchanged::gather ||
         kind == Exchanged::scatter;
}

bool Operation::is_one_sided() const { return kind >= Exchanged::get; }

double Operation::bus_factor(int ranks) const {
  const double others = static_cast<double>(ranks - 1) / ranks;
  return kind == Exchanged::all_reduce ? 2 * others : has_parts() ? others : 1;
}

const std::vector<TravelType>& travel_types() {
  static const std::vector<TravelType> types{{"f32", ElementType::f32, 1}, {"f64", ElementType::f64, 1},
                                             {"c64", ElementType::f32, 2}, {"c128", ElementType::f64, 2},
                                             {"i32", ElementType::i32, 1}, {"i64", ElementType::i64, 1}};
  return types;
}

/// This rank's data in an operation on a pattern, in reals.
struct Exchange::Plan {
  std::vector<Piece> in;      ///< the input; empty if this rank has none
  std::vector<Piece> before;  ///< the output before the operation; empty: never_given
  std::vector<Piece> out;     ///< the correct output
};

Exchange::Exchange(Communicator& comm, const std::shared_ptr<Backend>& backend, const Operation& operation,
                   const Operands& operands)
    : comm_(comm), backend_(backend), operation_(operation), operands_(operands) {
  const auto me = static_cast<std::size_t>(comm.rank());
  counts_ = part_sizes(operands.count, comm.size(), operation.is_uneven);
  offsets_ = offsets_of(counts_);
  const Index whole = operands.count, part = counts_[me];
  const bool is_root = !operation.has_root() || comm.rank() == operands.root;
  const Index whole_of_root = is_root ? whole : 0;
  switch (operation.kind) {
    case Exchanged::all_gather:
    case Exchanged::gather:
      in_count_ = part;
      out_count_ = whole_of_root;
      break;
    case Exchanged::reduce_scatter:
    case Exchanged::scatter:
      in_count_ = whole_of_root;
      out_count_ = part;
      break;
    case Exchanged::reduce:
      in_count_ = whole;
      out_count_ = whole_of_root;
      break;
    default:
      in_count_ = out_count_ = whole;
  }
  if (operation.kind == Exchanged::all_to_all) {
    for (std::size_t q = 0; q < counts_.size(); ++q)
      send_counts_.push_back(counts_[(me + q) % counts_.size()]);
    receive_counts_ = send_counts_;  // p sends to q as much as q to p
  }
  const Index size = operands.type.size();
  const auto take = [&](Buffer<std::byte>& memory, Index count) {
    memory = Buffer<std::byte>(backend, count * size);
    return memory.data();
  };
  if (operation.is_one_sided()) {
    take(memory_, whole);
  } else if (operands.in_place && is_root) {
    std::byte* const all = take(memory_, std::max(in_count_, out_count_));
    const Index offset = in_count_ == out_count_ ? 0 : offsets_[me] * size;
    in_ = in_count_ < out_count_ ? all + offset : all;
    out_ = out_count_ < in_count_ ? all + offset : all;
  } else {
    in_ = take(memory_, in_count_);
    out_ = operation.kind == Exchanged::broadcast ? in_ : take(more_memory_, out_count_);
  }
  host_.resize(static_cast<std::size_t>(std::max(in_count_, out_count_) * size));
}

Exchange::~Exchange() = default;

void Exchange::open_window(MPI_Comm mpi) {
  window_ = std::make_unique<Window>(comm_, mpi, operands_.count * operands_.type.size(),
                                     window_kind(comm_.transport()));
  attempt(comm_, [&] { access_ = std::make_unique<AccessToAll>(*window_); });
  in_ = memory_.data();
  out_ = window_->memory();
  if (operation_.kind == Exchanged::get) std::swap(in_, out_);
}

void Exchange::run() {
  const Elements in = elements(in_, in_count_), out = elements(out_, out_count_);
  switch (operation_.kind) {
    case Exchanged::all_reduce:
      return comm_.all_reduce(out, operands_.reduction);
    case Exchanged::all_gather:
      return operation_.is_uneven ? comm_.all_gather_v(in, out, counts_) : comm_.all_gather(in, out);
    case Exchanged::reduce_scatter:
      return operation_.is_uneven ? comm_.reduce_scatter_v(in, counts_, out, operands_.reduction)
                                  : comm_.reduce_scatter(in, out, operands_.reduction);
    case Exchanged::broadcast:
      return comm_.broadcast(out, operands_.root);
    case Exchanged::reduce:
      return comm_.reduce(in, out, operands_.reduction, operands_.root);
    case Exchanged::gather:
      return comm_.gather(in, out, operands_.root);
    case Exchanged::scatter:
      return comm_.scatter(in, out, operands_.root);
    case Exchanged::all_to_all:
      return operation_.is_uneven ? comm_.all_to_all_v(in, send_counts_, out, receive_counts_)
                                  : comm_.all_to_all(in, out);
    case Exchanged::send_receive: {
      const int ranks = comm_.size(), next = (comm_.rank() + 1) % ranks;
      return comm_.send_receive(in, next, out, (comm_.rank() + ranks - 1) % ranks);
    }
    case Exchanged::get:
    case Exchanged::put:
    case Exchanged::accumulate:
      return run_one_sided();
  }
}

void Exchange::run_one_sided() {
  const int next = (comm_.rank() + 1) % comm_.size();
  const Elements mine = elements(operation_.kind == Exchanged::get ? out_ : in_, operands_.count);
  const auto count = static_cast<int>(mine.count * mine.reals_per_element);
  const MPI_Datatype type = mpi_type(mine.type);
  const MPI_Aint there = window_->displacement(next);
  const MPI_Win window = window_->handle();
  if (operation_.kind == Exchanged::put) {
    check_mpi(MPI_Put(mine.data, count, type, next, there, count, type, window), "MPI_Put");
  } else if (operation_.kind == Exchanged::accumulate) {
    check_mpi(
        MPI_Accumulate(mine.data, count, type, next, there, count, type, mpi_op(operands_.reduction), window),
        "MPI_Accumulate");
  } else if (comm_.transport() == "shared") {
    std::memcpy(mine.data, window_->memory_of(next), static_cast<std::size_t>(mine.bytes()));
    return;
  } else {
    check_mpi(MPI_Get(mine.data, count, type, next, there, count, type, window), "MPI_Get");
  }
  check_mpi(MPI_Win_flush(next, window), "MPI_Win_flush");
}

Exchange::Plan Exchange::plan_for(const Pattern& pattern) const {
  const int me = comm_.rank(), ranks = comm_.size(), previous = (me + ranks - 1) % ranks;
  const Index reals = operands_.type.reals, whole = operands_.count * reals;
  const auto at_part = [&](const Pattern::Row& row, int rank) {
    const auto k = static_cast<std::size_t>(rank);
    return Piece{&row, offsets_[k] * reals, counts_[k] * reals};
  };
  const auto every_part = [&] {
    std::vector<Piece> pieces;
    for (int rank = 0; rank < ranks; ++rank) pieces.push_back(at_part(pattern.of(rank), rank));
    return pieces;
  };
  const auto only_on_root = [&](std::vector<Piece> pieces) {
    return me == operands_.root ? std::move(pieces) : std::vector<Piece>();
  };
  const Piece mine{&pattern.of(me), 0, whole}, reduced{&pattern.reduced(), 0, whole};
  switch (operation_.kind) {
    case Exchanged::all_reduce:
      return {{mine}, {}, {reduced}};
    case Exchanged::all_gather:
      return {{at_part(pattern.of(me), me)}, {}, every_part()};
    case Exchanged::reduce_scatter:
      return {{mine}, {}, {at_part(pattern.reduced(), me)}};
    case Exchanged::broadcast:
      return {only_on_root({mine}), {}, {{&pattern.of(operands_.root), 0, whole}}};
    case Exchanged::reduce:
      return {{mine}, {}, only_on_root({reduced})};
    case Exchanged::gather:
      return {{at_part(pattern.of(me), me)}, {}, only_on_root(every_part())};
    case Exchanged::scatter:
      return {only_on_root({mine}), {}, {at_part(pattern.of(operands_.root), me)}};
    case Exchanged::all_to_all: {
      std::vector<Piece> out;
      for (int from = 0; from < ranks; ++from) {
        Index first = 0;
        for (int to = 0; to < me; ++to) first += counts_[static_cast<std::size_t>((from + to) % ranks)];
        out.push_back(
            {&pattern.of(from), first * reals, receive_counts_[static_cast<std::size_t>(from)] * reals});
      }
      return {{mine}, {}, out};
    }
    case Exchanged::get:
      return {{mine}, {}, {{&pattern.of((me + 1) % ranks), 0, whole}}};
    case Exchanged::accumulate:
      return {{mine}, {mine}, {{&pattern.with_previous(me), 0, whole}}};
    case Exchanged::send_receive:
    case Exchanged::put:
      break;
  }
  return {{mine}, {}, {{&pattern.of(previous), 0, whole}}};
}

void Exchange::fill(const Plan& plan) {
  const Index reals = operands_.type.reals;
  with_real(operands_.type.real, [&]<class Real>() {
    const auto put = [&](const std::vector<Piece>& pieces, Index count, std::byte* where) {
      if (count == 0) return;
      Real* const values = reinterpret_cast<Real*>(host_.data());
      std::fill_n(values, count * reals, Real(never_given));
      write(pieces, values);
      backend_->upload(values, where, count * operands_.type.size());
    };
    put(plan.before, out_count_, out_);
    // A rank without input keeps never_given in an operand in place.
    if (!plan.in.empty()) put(plan.in, in_count_, in_);
  });
}

void Exchange::prepare() {
  static const Pattern::Row ones{1};
  const Index reals = operands_.type.reals;
  fill({{{&ones, 0, in_count_ * reals}}, {{&ones, 0, out_count_ * reals}}, {}});
}

Index Exchange::count_wrong(const Plan& plan) {
  if (plan.out.empty() || out_count_ == 0) return 0;
  return with_real(operands_.type.real, [&]<class Real>() {
    Real* const found = reinterpret_cast<Real*>(host_.data());
    backend_->download(out_, found, out_count_ * operands_.type.size());
    return bench::count_wrong(plan.out, found);
  });
}

Index Exchange::wrong(Index seed) {
  const Pattern pattern(comm_.size(), seed, operands_.reduction);
  const Plan plan = plan_for(pattern);
  // Makes earlier stores in windows visible to all ranks.
  const auto meet = [&] {
    backend_->synchronize();
    if (window_ != nullptr) check_mpi(MPI_Win_sync(window_->handle()), "MPI_Win_sync");
    comm_.barrier();
    if (window_ != nullptr) check_mpi(MPI_Win_sync(window_->handle()), "MPI_Win_sync");
  };
  fill(plan);
  meet();
  run();
  meet();
  return count_wrong(plan);
}

ExchangeTimes time_exchange(const ProcessGrid& grid, Exchange& exchange, int warm_up, int repetitions) {
  const auto seconds = [&](Index often) {
    exchange.synchronize();
    grid.comm().barrier();
    const double begin = now();
    for (Index k = 0; k < often; ++k) exchange.run();
    exchange.synchronize();
    return maximum(grid, (now() - begin) / static_cast<double>(often));
  };
  const double once = seconds(std::max(warm_up, 1));
  ExchangeTimes times{.in_a_row = static_cast<Index>(std::clamp(1e-3 / once, 1.0, 200.0))};
  for (int repetition = 0; repetition < repetitions; ++repetition)
    times.seconds.push_back(seconds(times.in_a_row));
  return times;
}

}  // namespace gridlops::bench
