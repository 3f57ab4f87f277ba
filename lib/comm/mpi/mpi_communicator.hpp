// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>

#include "comm/mpi/chain_broadcast.hpp"
#include "comm/mpi/mpi_transfer.hpp"
#include "comm/mpi/mpi_window.hpp"
#include "comm/mpi/shared_window.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops {

/// What a communicator shares with those made from it by split().
struct MpiContext {
  std::string transport = "mpi";
  std::shared_ptr<Traffic> traffic = std::make_shared<Traffic>();
  std::optional<int> machine{};               ///< the first rank on this rank's machine ("mixed")
  std::shared_ptr<MpiWindow> window{};        ///< for getting blocks ("one-sided"), or null
  std::shared_ptr<ChainBroadcasts> chains{};  ///< for large broadcasts ("chain"), or null
  bool is_watched = false;                    ///< all ranks belong to a session with a limit
};

/// What carries a collective operation: MPI calls, or messages between all ranks that take part.
enum class Carrier { blocking_call, non_blocking_call, messages };

/// For an operation that is complete on return, among watched ranks. `bytes`: of the operand of MPI's call;
/// `bytes_of_messages`: of all messages that one rank would get. Both must be the same on all ranks.
Carrier carrier_of_watched(int ranks, Index bytes, Index bytes_of_messages);

/// A communicator over MPI, on host memory. MPI's collectives take counts and displacements of type int.
/// Longer operands travel in chunks, or as messages of parts, whose tags lie above the user's.
class MpiCommunicator final : public Communicator {
 public:
  /// Takes ownership of comm.
  MpiCommunicator(MPI_Comm comm, MpiContext context);
  ~MpiCommunicator() override;

  std::string transport() const override { return context_.transport; }
  PeerAccess peer_access() const override {
    return context_.transport == "shared" ? PeerAccess::in_place
           : context_.window != nullptr   ? PeerAccess::get
                                          : PeerAccess::none;
  }
  const MpiGroup& group() const { return group_; }
  /// The window of all communicators made from this one with the transport "one-sided". It lives as long as
  /// this communicator, because ranks destroy those communicators at different times, and because in Open MPI
  /// the windows of communicators made by a split disturb each other. Collective. Throws UsageError on all
  /// ranks alike if MPI has no windows, and says what to try.
  std::shared_ptr<MpiWindow> shared_mpi_window();
  /// The ranks' blocks in the window of the context (collective over this communicator at the first call).
  RmaWindow& rma_window();
  /// The ranks' blocks in shared memory (collective at the first call). Throws on all ranks alike if they
  /// cannot read each other's memory.
  SharedWindow& shared_window();
  [[noreturn]] void abort(ExitStatus status) override;

 private:
  using Transfer = std::unique_ptr<MpiTransfer>;
  std::unique_ptr<Communicator> do_split(std::optional<int> color, int key) override;
  Pending do_barrier(Completion) override;
  Pending do_broadcast(Elements data, int root, Completion) override;
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

  template <class Action>
  void for_each_other_rank(Action&& action) const;

  /// The carrier of an operation whose parts on all ranks, or whose copies of one operand, have this many
  /// bytes in total.
  Carrier carrier(Completion completion, Index bytes, std::optional<Index> bytes_of_copies = {}) const;
  bool sends(Completion completion, Index bytes, std::optional<Index> bytes_of_copies = {}) const {
    return carrier(completion, bytes, bytes_of_copies) == Carrier::messages;
  }
  bool blocks(Completion completion, Index bytes, std::optional<Index> bytes_of_copies = {}) const {
    return carrier(completion, bytes, bytes_of_copies) == Carrier::blocking_call;
  }
  /// The BlockingCall of an operation, if it blocks.
  std::optional<BlockingCall> blocking_call(Completion completion, Index bytes,
                                            std::optional<Index> bytes_of_copies = {}) const;
  Transfer new_transfer() const;
  Pending finish(Transfer transfer, Completion completion) const;
  /// The tag for the messages of the next collective operation. All ranks start these operations in the same
  /// order, so they get the same tag.
  int next_tag();

  MpiGroup group_;
  MpiContext context_;
  std::shared_ptr<MpiWindow> mpi_window_;
  std::unique_ptr<RmaWindow> rma_window_;
  std::unique_ptr<SharedWindow> shared_window_;
  int sequence_ = 0;
};

/// Each rank begins with the next rank, which spreads the load.
template <class Action>
void MpiCommunicator::for_each_other_rank(Action&& action) const {
  for (int step = 1; step < size(); ++step) action((rank() + step) % size());
}

}  // namespace gridlops
