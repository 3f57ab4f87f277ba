// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>

#include "comm/mpi/mpi_transfer.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops {

class MpiWindow;

/// The means of a collective operation: an MPI call, or messages between all its ranks.
enum class Carrier { blocking_call, non_blocking_call, messages };

/// The carrier of a blocking operation among watched ranks. `bytes`: of the operand of MPI's call;
/// `bytes_of_messages`: of all messages that one rank would get. Both must be the same on all ranks.
Carrier carrier_of_watched(int ranks, Index bytes, Index bytes_of_messages);

/// A communicator over MPI, on host memory. MPI's collectives take counts and displacements of type int;
/// longer operands go in chunks, or as messages of parts, whose tags lie above the user's. This is the
/// transport "mpi"; those of other transports derive from it.
/// Reasons: docs/decisions/0010-transports.md.
class MpiCommunicator : public Communicator {
 public:
  /// Takes ownership of the group's handle.
  MpiCommunicator(const MpiGroup& group, std::shared_ptr<Traffic> traffic);
  ~MpiCommunicator() override;

  std::string transport() const override { return "mpi"; }
  const MpiGroup& group() const { return group_; }
  /// The window of all communicators made from this one with the transport "one-sided"; null before the
  /// first. They share it as long as this communicator lives, because ranks destroy them at different times,
  /// and because in Open MPI windows of split communicators disturb each other.
  std::shared_ptr<MpiWindow>& kept_window() { return kept_window_; }
  [[noreturn]] void abort(ExitStatus status) override;

 protected:
  using Transfer = std::unique_ptr<MpiTransfer>;
  /// The tag of the messages of the next collective operation. It is the same on all ranks, because they
  /// start these operations in one order.
  int next_tag();
  std::unique_ptr<Communicator> do_split(std::optional<int> color, int key) override;
  Pending do_broadcast(Elements data, int root, Completion) override;

 private:
  /// Makes the communicator of a split-off group, with the same transport (collective over the group).
  virtual std::unique_ptr<Communicator> make_child(const MpiGroup& group) const;
  virtual Transfer new_transfer() const;
  /// The carrier of an operation. `bytes`: of all ranks' parts together; `bytes_of_copies`: of all copies of
  /// an operand together.
  virtual Carrier carrier(Completion completion, Index bytes, std::optional<Index> bytes_of_copies) const;

  Pending do_barrier(Completion) override;
  Pending do_reduce(ConstElements in, Elements out, ReduceOp, int root, ReductionOrder, Completion) override;
  Pending do_all_reduce(Elements data, ReduceOp, ReductionOrder, Completion) override;
  Pending do_gather(ConstElements mine, Elements all, std::span<const Index> counts, int root,
                    Completion) override;
  Pending do_scatter(ConstElements all, std::span<const Index> counts, Elements mine, int root,
                     Completion) override;
  Pending do_all_gather(ConstElements mine, Elements all, std::span<const Index> counts, Completion) override;
  Pending do_reduce_scatter(ConstElements all, std::span<const Index> counts, Elements mine, ReduceOp,
                            ReductionOrder, Completion) override;
  Pending do_all_to_all(ConstElements send, std::span<const Index> send_counts, Elements receive,
                        std::span<const Index> receive_counts, Completion) override;
  Pending do_send(ConstElements data, int destination, int tag, Completion) override;
  Pending do_receive(Elements data, int source, int tag, Completion) override;

  // The functions below take arrays of reals.

  void start_reduction(MpiTransfer& transfer, ConstElements in, Elements out, ReduceOp, int root,
                       Completion) const;
  Pending reduce_by_rank(ConstElements in, Elements out, ReduceOp, int root, Completion);
  Pending all_reduce_by_rank(Elements data, ReduceOp, Completion);
  Pending reduce_scatter_by_rank(ConstElements all, const RankParts& parts, Elements mine, ReduceOp,
                                 Completion);
  /// Receives the operands that the other ranks send. When all have arrived, out becomes the reduction of
  /// them and of `in`, this rank's own, in rank order.
  void reduce_received(MpiTransfer& transfer, ConstElements in, ReduceOp, Elements out, int tag) const;
  /// Every rank gets all other ranks' data and reduces it by itself.
  Pending all_reduce_contributions(Elements data, ReduceOp, Completion);

  /// Each rank begins with the one after itself, which spreads the load.
  template <class Action>
  void for_each_other_rank(Action&& action) const {
    for (int step = 1; step < size(); ++step) action((rank() + step) % size());
  }

  bool sends(Completion completion, Index bytes, std::optional<Index> bytes_of_copies = {}) const {
    return carrier(completion, bytes, bytes_of_copies) == Carrier::messages;
  }
  /// The BlockingCall of an operation that blocks.
  std::optional<BlockingCall> blocking_call(Completion completion, Index bytes,
                                            std::optional<Index> bytes_of_copies = {}) const;
  Pending finish(Transfer transfer, Completion completion) const;

  MpiGroup group_;
  std::shared_ptr<MpiWindow> kept_window_;
  int sequence_ = 0;
};

/// Divides the processors of each machine among the ranks that may use them, for threads_per_rank()
/// (collective over an MPI communicator).
void share_processors_of_machine(Communicator& comm);

}  // namespace gridlops
