// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/numbers.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/rank_parts.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops {

namespace {

/// Up to this length an ordered all_reduce sends all contributions to every rank, in one step. That moves
/// size() operands instead of 2·size() messages with small parts, and is faster on any number of ranks.
constexpr Index one_step_bytes = Index{16} * 1024;

/// Open MPI 4.1's MPI_Reduce_scatter copies long operands into new memory. Its MPI_Ireduce moves rounds of 32
/// KiB and begins each round within an MPI call; a computing rank makes none.
bool takes_messages(const ConstElements& operand, int ranks) {
  return ranks <= reduce_by_messages_most_ranks && operand.bytes() > reduce_by_messages_above_bytes;
}

/// MPICH before 4.2.1 crashes in MPI_Reduce if a root other than 0 reduces in place (its issue 6540).
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40201300
constexpr bool has_mpi_reduce = false;
#else
constexpr bool has_mpi_reduce = true;
#endif

/// The number of sums that stay in the cache while the contributions stream by.
constexpr Index sums_in_cache = 1024;

template <class T, class Combine>
void reduce_as(const std::vector<const void*>& contributions, Combine combine, T* out, Index count) {
  std::array<T, sums_in_cache> sums;
  for (Index begin = 0; begin < count; begin += sums_in_cache) {
    const Index n = std::min(sums_in_cache, count - begin);
    std::copy_n(static_cast<const T*>(contributions.front()) + begin, n, sums.data());
    for (std::size_t rank = 1; rank < contributions.size(); ++rank) {
      const T* x = static_cast<const T*>(contributions[rank]) + begin;
      std::transform(sums.data(), sums.data() + n, x, sums.data(), combine);
    }
    std::copy_n(sums.data(), n, out + begin);
  }
}

template <class T>
void reduce_as(const std::vector<const void*>& contributions, ReduceOp op, const Elements& out) {
  T* target = static_cast<T*>(out.data);
  switch (op) {
    case ReduceOp::sum:
      return reduce_as(contributions, std::plus<T>(), target, out.count);
    case ReduceOp::prod:
      return reduce_as(contributions, std::multiplies<T>(), target, out.count);
    case ReduceOp::min:
      return reduce_as(
          contributions, [](T a, T b) { return std::min(a, b); }, target, out.count);
    case ReduceOp::max:
      return reduce_as(
          contributions, [](T a, T b) { return std::max(a, b); }, target, out.count);
  }
}

/// out ← ((x₀ ∘ x₁) ∘ x₂) ∘ …, elementwise for one array of reals per rank. `out` may be one of these arrays.
void reduce_in_rank_order(const std::vector<const void*>& contributions, ReduceOp op, const Elements& out) {
  switch (out.type) {
    case ElementType::i32:
      return reduce_as<std::int32_t>(contributions, op, out);
    case ElementType::i64:
      return reduce_as<std::int64_t>(contributions, op, out);
    case ElementType::f32:
      return reduce_as<float>(contributions, op, out);
    case ElementType::f64:
      return reduce_as<double>(contributions, op, out);
    case ElementType::byte:
      break;  // CallAccount has refused it
  }
}

}  // namespace

MpiCommunicator::Pending MpiCommunicator::do_reduce(ConstElements in, Elements out, ReduceOp op, int root,
                                                    ReductionOrder order, Completion completion) {
  const ConstElements from = as_reals(in);
  const Elements to = rank() == root ? as_reals(out) : Elements(nullptr, 0, in.type);
  const Carrier by = carrier(completion, from.bytes(), {});
  if (order == ReductionOrder::by_rank || by == Carrier::messages ||
      (by == Carrier::non_blocking_call && takes_messages(from, size())))
    return reduce_by_rank(from, to, op, root, completion);
  auto transfer = new_transfer();
  start_reduction(*transfer, from, to, op, root, completion);
  return finish(std::move(transfer), completion);
}

// On the root, in and out may be the same array.
void MpiCommunicator::start_reduction(MpiTransfer& transfer, ConstElements in, Elements out, ReduceOp op,
                                      int root, Completion completion) const {
  const bool in_place = rank() == root && in.data == out.data;
  const MPI_Datatype type = mpi_type(in.type);
  const std::optional<BlockingCall> call =
      blocking_call(has_mpi_reduce ? completion : Completion::pending, in.bytes());
  for_each_chunk(in.count, [&](Index begin, int count) {
    const void* from = in_place ? MPI_IN_PLACE : slice(in, begin, count).data;
    void* to = rank() == root ? slice(out, begin, count).data : nullptr;
    transfer.carry_out(call, "MPI_Reduce", count, MPI_Reduce, MPI_Ireduce, from, to, count, type, mpi_op(op),
                       root, group_.comm);
  });
}

MpiCommunicator::Pending MpiCommunicator::do_all_reduce(Elements data, ReduceOp op, ReductionOrder order,
                                                        Completion completion) {
  const Elements reals = as_reals(data);
  if (order == ReductionOrder::by_rank) return all_reduce_by_rank(reals, op, completion);
  const Index contributions = reals.bytes() * size();
  if (sends(completion, reals.bytes(), contributions)) return all_reduce_contributions(reals, op, completion);
  auto transfer = new_transfer();
  const MPI_Datatype type = mpi_type(reals.type);
  const std::optional<BlockingCall> call = blocking_call(completion, reals.bytes(), contributions);
  for_each_chunk(reals.count, [&](Index begin, int count) {
    void* chunk = slice(reals, begin, count).data;
    transfer->carry_out(call, "MPI_Allreduce", count, MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, chunk,
                        count, type, mpi_op(op), group_.comm);
  });
  return finish(std::move(transfer), completion);
}

MpiCommunicator::Pending MpiCommunicator::do_reduce_scatter(ConstElements all, std::span<const Index> counts,
                                                            Elements mine, ReduceOp op, ReductionOrder order,
                                                            Completion completion) {
  const RankParts parts(counts, all.reals_per_element);
  const ConstElements from = as_reals(all);
  const Elements to = as_reals(mine);
  const Index bytes = parts.total() * size_of(from.type);
  if (order == ReductionOrder::by_rank || sends(completion, bytes) || takes_messages(from, size()))
    return reduce_scatter_by_rank(from, parts, to, op, completion);
  auto transfer = new_transfer();
  if (parts.total() > max_message_elements) {
    for (int root = 0; root < size(); ++root)
      start_reduction(*transfer, parts.of(from, root), to, op, root, completion);
    return finish(std::move(transfer), completion);
  }
  if (parts.total() == 0) return nullptr;
  int* part_counts = transfer->scratch_ints(size());
  parts.write_counts(part_counts);
  // MPI allows no overlap, and some libraries no null address, even for no elements. If this rank's part lies
  // within `all`, or is empty, MPI gets another address for the result.
  const bool elsewhere = to.count == 0 || to.data == parts.of(from, rank()).data;
  const Elements result = elsewhere ? Elements(transfer->scratch(to.bytes()), to.count, to.type) : to;
  const MPI_Datatype type = mpi_type(from.type);
  transfer->carry_out(blocking_call(completion, bytes), "MPI_Reduce_scatter", static_cast<int>(parts.total()),
                      MPI_Reduce_scatter, MPI_Ireduce_scatter, from.data, result.data, part_counts, type,
                      mpi_op(op), group_.comm);
  if (elsewhere) transfer->then([result, to] { copy(result, to); });
  return finish(std::move(transfer), completion);
}

MpiCommunicator::Pending MpiCommunicator::reduce_by_rank(ConstElements in, Elements out, ReduceOp op,
                                                         int root, Completion completion) {
  const int tag = next_tag();
  auto transfer = new_transfer();
  if (rank() == root) reduce_received(*transfer, in, op, out, tag);
  if (rank() != root) transfer->send(in, root, tag);
  return finish(std::move(transfer), completion);
}

MpiCommunicator::Pending MpiCommunicator::reduce_scatter_by_rank(ConstElements all, const RankParts& parts,
                                                                 Elements mine, ReduceOp op,
                                                                 Completion completion) {
  const int tag = next_tag();
  auto transfer = new_transfer();
  reduce_received(*transfer, parts.of(all, rank()), op, mine, tag);
  for_each_other_rank([&](int peer) { transfer->send(parts.of(all, peer), peer, tag); });
  return finish(std::move(transfer), completion);
}

// One message arrives directly in the result, all others in scratch memory.
void MpiCommunicator::reduce_received(MpiTransfer& transfer, ConstElements in, ReduceOp op, Elements out,
                                      int tag) const {
  bool out_is_free = size() > 1 && in.data != out.data;
  const Index others = size() - 1 - (out_is_free ? 1 : 0);
  const Elements received(transfer.scratch(in.bytes() * others), in.count * others, in.type);
  Index taken = 0;
  std::vector<const void*> contributions(static_cast<std::size_t>(size()), in.data);
  for_each_other_rank([&](int peer) {
    const bool goes_to_out = std::exchange(out_is_free, false);
    const Elements place = goes_to_out ? out : slice(received, in.count * taken++, in.count);
    transfer.receive(place, peer, tag);
    contributions[at(peer)] = place.data;
  });
  transfer.then([contributions, op, out] { reduce_in_rank_order(contributions, op, out); });
}

// For long operands every rank reduces a part, and then all gather the parts. That needs a wait in between. A
// non-blocking operation must progress while this rank does something else, so it gathers all contributions
// in one step.
MpiCommunicator::Pending MpiCommunicator::all_reduce_by_rank(Elements data, ReduceOp op,
                                                             Completion completion) {
  if (completion == Completion::pending || data.bytes() <= one_step_bytes)
    return all_reduce_contributions(data, op, completion);
  const RankParts parts = RankParts::balanced(data.count, size());
  const Elements mine = parts.of(data, rank());
  reduce_scatter_by_rank(data, parts, mine, op, completion);
  std::vector<Index> counts;
  for (int part = 0; part < size(); ++part) counts.push_back(parts.count(part));
  return do_all_gather(mine, data, counts, completion);
}

MpiCommunicator::Pending MpiCommunicator::all_reduce_contributions(Elements data, ReduceOp op,
                                                                   Completion completion) {
  const int tag = next_tag();
  auto transfer = new_transfer();
  const MPI_Datatype type = mpi_type(data.type);
  const Elements received(transfer->scratch(data.bytes() * size()), data.count * size(), data.type);
  std::vector<const void*> contributions;
  for (int peer = 0; peer < size(); ++peer)
    contributions.push_back(slice(received, peer * data.count, data.count).data);
  if (received.count > max_message_elements || sends(completion, received.bytes())) {
    for_each_other_rank([&](int peer) {
      transfer->receive(slice(received, peer * data.count, data.count), peer, tag);
      transfer->send(data, peer, tag);
    });
    contributions[at(rank())] = data.data;
  } else {
    const int n = static_cast<int>(data.count);
    transfer->carry_out(blocking_call(completion, received.bytes()), "MPI_Allgather", n, MPI_Allgather,
                        MPI_Iallgather, data.data, n, type, received.data, n, type, group_.comm);
  }
  transfer->then([contributions, op, data] { reduce_in_rank_order(contributions, op, data); });
  return finish(std::move(transfer), completion);
}

}  // namespace gridlops
