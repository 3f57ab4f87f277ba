// SPDX-License-Identifier: BSD-3-Clause
#include "comm/mpi/mpi_communicator.hpp"

#include <exception>
#include <utility>

#include "comm/failure/job_end.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops {

MpiCommunicator::MpiCommunicator(const MpiGroup& group, std::shared_ptr<Traffic> traffic)
    : Communicator(group.rank, group.size, std::move(traffic)), group_(group) {
  group_.is_watched = group.is_watched && group.size > 1;
  group_.check(MPI_Comm_set_errhandler(group_.comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", 0);
}

// Freeing is collective, so while an exception unwinds the stack the communicator stays until the job ends.
MpiCommunicator::~MpiCommunicator() {
  if (mpi_is_running() && std::uncaught_exceptions() == 0) MPI_Comm_free(&group_.comm);
}

void MpiCommunicator::abort(ExitStatus status) { end_job(status); }

MpiCommunicator::Transfer MpiCommunicator::new_transfer() const {
  return std::make_unique<MpiTransfer>(group_);
}

MpiCommunicator::Pending MpiCommunicator::finish(Transfer transfer, Completion completion) const {
  if (completion == Completion::blocking) transfer->wait();
  return transfer->is_complete() ? nullptr : std::move(transfer);
}

// Watched ranks meet before a blocking call. For few bytes, polling takes less time than that. Then messages,
// one step from each rank to the others, are faster than Open MPI 4.1's non-blocking calls, which take
// several steps (docs/decisions/0028-watchdog.md).
Carrier carrier_of_watched(int ranks, Index bytes, Index bytes_of_messages) {
  constexpr Index few_bytes = Index{2} << 10, few_bytes_of_few_ranks = Index{64} << 10;
  constexpr int most_ranks_of_messages = 8;
  const Index few = ranks <= reduce_by_messages_most_ranks ? few_bytes_of_few_ranks : few_bytes;
  if (ranks <= most_ranks_of_messages && bytes_of_messages > 0)
    return bytes_of_messages <= few ? Carrier::messages : Carrier::blocking_call;
  return bytes <= few ? Carrier::non_blocking_call : Carrier::blocking_call;
}

Carrier MpiCommunicator::carrier(Completion completion, Index bytes,
                                 std::optional<Index> bytes_of_copies) const {
  if (completion == Completion::pending) return Carrier::non_blocking_call;
  if (!group_.is_watched) return Carrier::blocking_call;
  return carrier_of_watched(size(), bytes, bytes_of_copies.value_or(bytes));
}

std::optional<BlockingCall> MpiCommunicator::blocking_call(Completion completion, Index bytes,
                                                           std::optional<Index> bytes_of_copies) const {
  if (carrier(completion, bytes, bytes_of_copies) != Carrier::blocking_call) return std::nullopt;
  return std::optional<BlockingCall>(std::in_place, group_);
}

// Every MPI library allows tags up to 32767. By the time a tag is reused, its earlier operation is long
// complete.
int MpiCommunicator::next_tag() {
  constexpr int first = max_tag + 1;
  sequence_ = (sequence_ + 1) % (32768 - first);
  return first + sequence_;
}

std::unique_ptr<Communicator> MpiCommunicator::do_split(std::optional<int> color, int key) {
  MPI_Comm child = MPI_COMM_NULL;
  BlockingCall(group_).run("MPI_Comm_split", 0, MPI_Comm_split, group_.comm, color.value_or(MPI_UNDEFINED),
                           key, &child);
  return child == MPI_COMM_NULL ? nullptr : make_child(MpiGroup::of(child, group_.is_watched));
}

std::unique_ptr<Communicator> MpiCommunicator::make_child(const MpiGroup& group) const {
  return std::make_unique<MpiCommunicator>(group, traffic_account());
}

MpiCommunicator::Pending MpiCommunicator::do_barrier(Completion completion) {
  auto transfer = new_transfer();
  transfer->carry_out(blocking_call(completion, 0), "MPI_Barrier", 0, MPI_Barrier, MPI_Ibarrier, group_.comm);
  return finish(std::move(transfer), completion);
}

MpiCommunicator::Pending MpiCommunicator::do_broadcast(Elements data, int root, Completion completion) {
  const Elements reals = as_reals(data);
  const int tag = next_tag();
  auto transfer = new_transfer();
  if (sends(completion, reals.bytes())) {
    if (rank() == root) for_each_other_rank([&](int peer) { transfer->send(reals, peer, tag); });
    if (rank() != root) transfer->receive(reals, root, tag);
    return finish(std::move(transfer), completion);
  }
  const MPI_Datatype type = mpi_type(reals.type);
  const std::optional<BlockingCall> call = blocking_call(completion, reals.bytes());
  for_each_chunk(reals.count, [&](Index begin, int count) {
    void* const chunk = slice(reals, begin, count).data;
    transfer->carry_out(call, "MPI_Bcast", count, MPI_Bcast, MPI_Ibcast, chunk, count, type, root,
                        group_.comm);
  });
  return finish(std::move(transfer), completion);
}

MpiCommunicator::Pending MpiCommunicator::do_gather(ConstElements mine, Elements all,
                                                    std::span<const Index> counts, int root,
                                                    Completion completion) {
  const int tag = next_tag();
  auto transfer = new_transfer();
  if (rank() != root) {
    transfer->send(as_reals(mine), root, tag);
    return finish(std::move(transfer), completion);
  }
  const RankParts parts(counts, mine.reals_per_element);
  const Elements whole = as_reals(all);
  for_each_other_rank([&](int peer) { transfer->receive(parts.of(whole, peer), peer, tag); });
  copy(as_reals(mine), parts.of(whole, root));
  return finish(std::move(transfer), completion);
}

MpiCommunicator::Pending MpiCommunicator::do_scatter(ConstElements all, std::span<const Index> counts,
                                                     Elements mine, int root, Completion completion) {
  const int tag = next_tag();
  auto transfer = new_transfer();
  if (rank() != root) {
    transfer->receive(as_reals(mine), root, tag);
    return finish(std::move(transfer), completion);
  }
  const RankParts parts(counts, mine.reals_per_element);
  const ConstElements whole = as_reals(all);
  for_each_other_rank([&](int peer) { transfer->send(parts.of(whole, peer), peer, tag); });
  copy(parts.of(whole, root), as_reals(mine));
  return finish(std::move(transfer), completion);
}

// First copies this rank's part into place, so that all ranks make the same call, wherever their parts were.
MpiCommunicator::Pending MpiCommunicator::do_all_gather(ConstElements mine, Elements all,
                                                        std::span<const Index> counts,
                                                        Completion completion) {
  const int tag = next_tag();
  auto transfer = new_transfer();
  const RankParts parts(counts, mine.reals_per_element);
  const Elements whole = as_reals(all);
  const MPI_Datatype type = mpi_type(whole.type);
  const Elements my_place = parts.of(whole, rank());
  copy(as_reals(mine), my_place);
  const Index bytes = parts.total() * size_of(whole.type);
  if (parts.total() > max_message_elements || sends(completion, bytes)) {
    for_each_other_rank([&](int peer) {
      transfer->receive(parts.of(whole, peer), peer, tag);
      transfer->send(my_place, peer, tag);
    });
  } else if (parts.total() > 0) {
    int* part_counts = transfer->scratch_ints(size());
    int* offsets = transfer->scratch_ints(size());
    parts.write_counts(part_counts);
    parts.write_offsets(offsets);
    transfer->carry_out(blocking_call(completion, bytes), "MPI_Allgatherv", static_cast<int>(parts.total()),
                        MPI_Allgatherv, MPI_Iallgatherv, MPI_IN_PLACE, 0, type, whole.data, part_counts,
                        offsets, type, group_.comm);
  }
  return finish(std::move(transfer), completion);
}

MpiCommunicator::Pending MpiCommunicator::do_all_to_all(ConstElements send,
                                                        std::span<const Index> send_counts, Elements receive,
                                                        std::span<const Index> receive_counts,
                                                        Completion completion) {
  const int tag = next_tag();
  auto transfer = new_transfer();
  const RankParts outgoing(send_counts, send.reals_per_element);
  const RankParts incoming(receive_counts, receive.reals_per_element);
  const ConstElements from = as_reals(send);
  const Elements to = as_reals(receive);
  for_each_other_rank([&](int peer) { transfer->receive(incoming.of(to, peer), peer, tag); });
  for_each_other_rank([&](int peer) { transfer->send(outgoing.of(from, peer), peer, tag); });
  copy(outgoing.of(from, rank()), incoming.of(to, rank()));
  return finish(std::move(transfer), completion);
}

MpiCommunicator::Pending MpiCommunicator::do_send(ConstElements data, int destination, int tag,
                                                  Completion completion) {
  auto transfer = new_transfer();
  transfer->send(as_reals(data), destination, tag);
  return finish(std::move(transfer), completion);
}

MpiCommunicator::Pending MpiCommunicator::do_receive(Elements data, int source, int tag,
                                                     Completion completion) {
  auto transfer = new_transfer();
  transfer->receive(as_reals(data), source, tag);
  return finish(std::move(transfer), completion);
}

}  // namespace gridlops
