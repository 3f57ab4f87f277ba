// SPDX-License-Identifier: BSD-3-Clause
#include "bench/comm/message_ways.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "command_line/grid.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr Index element = sizeof(double);

/// One way to carry out an operation with operands of one size. All ranks construct it together; if that
/// fails, all throw the same error.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual void run() = 0;
  virtual Index wrong() = 0;  ///< counts wrong numbers on this rank
};

const Operation& operation_of(const std::string& name) {
  return *std::find_if(all_operations().begin(), all_operations().end(),
                       [&](const Operation& operation) { return operation.name == name; });
}

/// An operation of a communicator, or of an MPI window. A barrier behind it tells all ranks that it is over.
class ExchangeContender final : public Contender {
 public:
  ExchangeContender(Communicator& comm, MPI_Comm mpi, const std::string& name, Index bytes, bool has_barrier)
      : comm_(comm), has_barrier_(has_barrier), operation_(operation_of(name)) {
    const Operands operands{travel_types()[1], ReduceOp::sum, 0, operation_.can_be_in_place, bytes / element};
    attempt(comm, [&] { exchange_.emplace(comm, make_host_backend(), operation_, operands); });
    if (operation_.is_one_sided()) exchange_->open_window(mpi);
  }
  void run() override {
    exchange_->run();
    if (has_barrier_) comm_.barrier();
  }
  Index wrong() override {
    const Index wrong = exchange_->wrong(1);
    exchange_->prepare();
    return wrong;
  }

 private:
  Communicator& comm_;
  bool has_barrier_;
  const Operation& operation_;
  std::optional<Exchange> exchange_;
};

/// A sum over all ranks. Each rank accumulates its numbers in the windows of the ranks that get the sum. Rank
/// 0 gets all of it, or each rank gets a part; then all ranks may gather the parts. Two halves of the window
/// take turns, so one barrier both ends a sum and shows that the other half is clear.
class AccumulatedSum final : public Contender {
 public:
  enum class Result { on_root, in_parts, on_all };

  AccumulatedSum(Communicator& comm, MPI_Comm mpi, Index bytes, Result result)
      : comm_(comm),
        result_(result),
        count_(bytes / element),
        part_(result == Result::on_root ? count_ : count_ / comm.size()),
        data_(attempt(comm, [&] { return ones(); })),
        all_(attempt(comm, [&] { return ones(); })),
        window_(comm, mpi, 2 * part_ * element, WindowKind::allocated) {
    attempt(comm, [&] { access_.emplace(window_); });
    std::fill_n(half(0), 2 * part_, 0.0);
    check_mpi(MPI_Win_sync(window_.handle()), "MPI_Win_sync");
    comm.barrier();
  }

  void run() override {
    const int count = static_cast<int>(part_), ranks = result_ == Result::on_root ? 1 : comm_.size();
    for (int step = 0; step < ranks; ++step) {
      const int to = ranks == 1 ? 0 : (comm_.rank() + step) % ranks;
      const double* const from = data_.data() + (ranks == 1 ? 0 : to * part_);
      const MPI_Aint there = window_.displacement(to) + static_cast<MPI_Aint>(turn_ * part_ * element);
      check_mpi(
          MPI_Accumulate(from, count, MPI_DOUBLE, to, there, count, MPI_DOUBLE, MPI_SUM, window_.handle()),
          "MPI_Accumulate");
    }
    check_mpi(MPI_Win_flush_all(window_.handle()), "MPI_Win_flush_all");
    std::fill_n(half(1 - turn_), part_, 0.0);
    check_mpi(MPI_Win_sync(window_.handle()), "MPI_Win_sync");
    comm_.barrier();
    check_mpi(MPI_Win_sync(window_.handle()), "MPI_Win_sync");
    if (result_ == Result::on_all) comm_.all_gather(ConstElements(half(turn_), part_), all_);
    turn_ = 1 - turn_;
  }

  Index wrong() override {
    const Pattern pattern(comm_.size(), 1, ReduceOp::sum);
    write({{&pattern.of(comm_.rank()), 0, count_}}, data_.data());
    run();
    const bool has_result = result_ != Result::on_root || comm_.rank() == 0;
    const Index first = result_ == Result::in_parts ? comm_.rank() * part_ : 0;
    const double* const found = result_ == Result::on_all ? all_.data() : half(1 - turn_);
    const Index count = !has_result ? 0 : result_ == Result::in_parts ? part_ : count_;
    const Index wrong = count_wrong({{&pattern.reduced(), first, count}}, found);
    comm_.barrier();
    return wrong;
  }

 private:
  std::vector<double> ones() const { return std::vector<double>(static_cast<std::size_t>(count_), 1.0); }
  double* half(Index turn) { return reinterpret_cast<double*>(window_.memory()) + turn * part_; }

  Communicator& comm_;
  Result result_;
  Index count_, part_;
  std::vector<double> data_, all_;
  Window window_;
  std::optional<AccessToAll> access_;
  Index turn_ = 0;
};

using Make = std::function<std::unique_ptr<Contender>(Index bytes)>;
struct Contest {
  std::string operation, way, other;
  Make make_way, make_other;
};

/// The transports of host memory to compare. Null: this machine cannot run it.
struct Transports {
  explicit Transports(Communicator& world) : mpi(make_host_communicator(world, "mpi")) {
    const auto attempt = [&](const char* name) -> std::unique_ptr<Communicator> {
      try {
        return make_host_communicator(world, name, 0);
      } catch (const Error& error) {
        if (error.known_to() == KnownTo::one_rank) throw;
        return nullptr;
      }
    };
    chain = attempt("chain");
    one_sided = attempt("one-sided");
    shared = attempt("shared");
  }
  std::unique_ptr<Communicator> mpi, chain, one_sided, shared;
};

std::vector<Contest> contests(const Transports& transports, MPI_Comm mpi) {
  const auto exchange = [mpi](Communicator& comm, const std::string& name, bool has_barrier) -> Make {
    return [&comm, mpi, name, has_barrier](Index bytes) {
      return std::make_unique<ExchangeContender>(comm, mpi, name, bytes, has_barrier);
    };
  };
  const auto accumulated = [&](AccumulatedSum::Result result) -> Make {
    Communicator& comm = *transports.mpi;
    return [&comm, mpi, result](Index bytes) {
      return std::make_unique<AccumulatedSum>(comm, mpi, bytes, result);
    };
  };
  Communicator& comm = *transports.mpi;
  std::vector<Contest> all;
  if (comm.size() >= chain_least_ranks)
    all.push_back({"broadcast", "chain", "mpi", exchange(*transports.chain, "broadcast", false),
                   exchange(comm, "broadcast", false)});
  const Make ring = exchange(comm, "send-receive", true);
  all.push_back({"from the next rank", "get", "send-receive", exchange(comm, "get", true), ring});
  if (transports.one_sided != nullptr)
    all.push_back({"from the next rank", "one-sided", "send-receive",
                   exchange(*transports.one_sided, "get", true), ring});
  if (transports.shared != nullptr)
    all.push_back(
        {"from the next rank", "shared", "send-receive", exchange(*transports.shared, "get", true), ring});
  all.push_back({"reduce", "accumulate", "mpi", accumulated(AccumulatedSum::Result::on_root),
                 exchange(comm, "reduce", true)});
  all.push_back({"reduce-scatter", "accumulate", "mpi", accumulated(AccumulatedSum::Result::in_parts),
                 exchange(comm, "reduce-scatter", true)});
  all.push_back({"all-reduce", "accumulate", "mpi", accumulated(AccumulatedSum::Result::on_all),
                 exchange(comm, "all-reduce", true)});
  return all;
}

double seconds_of(Communicator& comm, Contender& contender, Index often) {
  comm.barrier();
  const double begin = now();
  for (Index k = 0; k < often; ++k) contender.run();
  std::array<double, 1> slowest{(now() - begin) / static_cast<double>(often)};
  comm.all_reduce(slowest, ReduceOp::max);
  return slowest[0];
}

/// The times of both ways, which run in turn.
struct ContestTimes {
  Index bytes = 0, wrong = 0;
  std::vector<double> way{}, other{};
  bool is_won() const {
    return 1.1 * *std::min_element(way.begin(), way.end()) <= *std::min_element(other.begin(), other.end()) &&
           median(way) < median(other);
  }
};

ContestTimes times_of(Communicator& comm, const Contest& contest, Index bytes, int repetitions) {
  ContestTimes times{.bytes = bytes};
  const std::unique_ptr<Contender> way = contest.make_way(bytes), other = contest.make_other(bytes);
  std::array<Index, 1> wrong{way->wrong() + other->wrong()};
  comm.all_reduce(wrong, ReduceOp::sum);
  times.wrong = wrong[0];
  const auto often = [&](Contender& contender) {
    seconds_of(comm, contender, 2);
    return static_cast<Index>(std::clamp(2e-3 / seconds_of(comm, contender, 2), 1.0, 200.0));
  };
  const Index ways = often(*way), others = often(*other);
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    times.way.push_back(seconds_of(comm, *way, ways));
    times.other.push_back(seconds_of(comm, *other, others));
  }
  return times;
}

void add(ResultWriter& writer, const Contest& contest, const ContestTimes& times, int ranks) {
  const double way = median(times.way), other = median(times.other);
  writer.add_row(
      "contests",
      fmt::format("{:<20} {:<12} {:<13} {:>5} {:>10} {:>11} {:>11} {:>7} {:>7}\n", "operation", "way",
                  "instead of", "ranks", "bytes", "time us", "instead of", "ratio", "#wrong"),
      fmt::format("{:<20} {:<12} {:<13} {:>5} {:>10} {:>11.2f} {:>11.2f} {:>7.2f} {:>7}\n", contest.operation,
                  contest.way, contest.other, ranks, times.bytes, 1e6 * way, 1e6 * other, way / other,
                  times.wrong),
      {{"operation", contest.operation},
       {"way", contest.way},
       {"instead_of", contest.other},
       {"ranks", ranks},
       {"bytes", times.bytes},
       {"samples", times.way},
       {"samples_instead_of", times.other},
       {"ratio", way / other},
       {"is_faster", times.is_won()},
       {"wrong", times.wrong}},
      times.wrong == 0 ? ""
                       : fmt::format("{} numbers of {} by {} or {}", times.wrong, contest.operation,
                                     contest.way, contest.other));
}

void add_crossover(ResultWriter& writer, const Contest& contest, const std::vector<ContestTimes>& all,
                   int ranks) {
  std::optional<Index> from, to;
  for (auto times = all.rbegin(); times != all.rend() && times->is_won(); ++times) from = times->bytes;
  for (auto times = all.begin(); times != all.end() && times->is_won(); ++times) to = times->bytes;
  const auto text = [](const std::optional<Index>& bytes) { return bytes ? std::to_string(*bytes) : "-"; };
  const auto json = [](const std::optional<Index>& bytes) { return bytes ? Json(*bytes) : Json(); };
  writer.add_row("crossovers",
                 fmt::format("{:<20} {:<12} {:<13} {:>5} {:>16} {:>16}\n", "operation", "way", "instead of",
                             "ranks", "faster from", "faster up to"),
                 fmt::format("{:<20} {:<12} {:<13} {:>5} {:>16} {:>16}\n", contest.operation, contest.way,
                             contest.other, ranks, text(from), text(to)),
                 {{"operation", contest.operation},
                  {"way", contest.way},
                  {"instead_of", contest.other},
                  {"ranks", ranks},
                  {"from_bytes", json(from)},
                  {"to_bytes", json(to)},
                  {"measured_from_bytes", all.front().bytes},
                  {"measured_to_bytes", all.back().bytes}});
}

}  // namespace

void find_crossovers(Communicator& world, ResultWriter& writer, Index most_bytes, int repetitions) {
  const MpiRanks mpi(0);
  const Transports transports(world);
  const std::vector<Contest> all = contests(transports, mpi.get());
  std::vector<std::vector<ContestTimes>> times(all.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    try {
      for (Index bytes = Index{1} << 10; bytes <= most_bytes; bytes *= 4) {
        const Index unit = element * world.size();
        times[k].push_back(times_of(world, all[k], (bytes + unit - 1) / unit * unit, repetitions));
        add(writer, all[k], times[k].back(), world.size());
      }
    } catch (const Error& error) {
      if (error.known_to() == KnownTo::one_rank) throw;
      writer.add_absent(all[k].way, error.what());
      times[k].clear();
    }
  }
  for (std::size_t k = 0; k < all.size(); ++k)
    if (!times[k].empty()) add_crossover(writer, all[k], times[k], world.size());
}

}  // namespace gridlops::bench
