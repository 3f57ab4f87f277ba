// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>

#include "comm/mpi_call.hpp"
#include "comm/mpi_transfer.hpp"
#include "comm/peer_board.hpp"
#include "comm/peer_window.hpp"
#include "comm/relays.hpp"
#include "gridlops/communicator.hpp"

namespace gridlops {

/// What a communicator hands on to those that are split off from it.
struct MpiFamily {
  std::string transport = "mpi";
  std::shared_ptr<Traffic> traffic = std::make_shared<Traffic>();
  std::optional<int> machine{};         ///< this rank's, if those on one machine share memory ("mixed")
  std::shared_ptr<MpiWindow> window{};  ///< of those that get blocks from each other ("one-sided"), or null
  std::shared_ptr<Relays> relays{};     ///< of those that send large broadcasts along chains, or null
};

/// Over MPI, on host memory. Where MPI's own collectives take int counts and displacements only, longer
/// operands go in chunks, or as messages of parts. Those use tags above the user's; MPI keeps collectives
/// apart itself.
class MpiCommunicator final : public Communicator {
 public:
  /// Takes comm over.
  MpiCommunicator(MPI_Comm comm, MpiFamily family);
  ~MpiCommunicator() override;

  std::string transport() const override { return family_.transport; }
  MPI_Comm handle() const { return group_.comm; }
  /// The window that those made of this one with the transport "one-sided" use: one, as long as this lives,
  /// because ranks part with them at different times, and Open MPI's windows of communicators that are split
  /// off disturb each other. Collective. Throws UsageError alike on all ranks where MPI has no windows, and
  /// says what to try.
  std::shared_ptr<MpiWindow> window_of_descendants();
  /// What is got through the window of the family (collective over this communicator at the first call).
  PeerWindow& window();
  /// Likewise. Throws alike on all ranks where they cannot read each other's memory.
  PeerBoard& board();
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

  // From here on arrays are arrays of reals.

  void start_reduction(MpiTransfer& transfer, ConstElements in, Elements out, ReduceOp, int root,
                       Completion) const;
  Pending reduce_by_rank(ConstElements in, Elements out, ReduceOp, int root, Completion);
  Pending all_reduce_by_rank(Elements data, ReduceOp, Completion);
  Pending reduce_scatter_by_rank(ConstElements all, const RankParts& parts, Elements mine, ReduceOp,
                                 Completion);
  /// Every rank gets all of all others' data, and reduces it for itself.
  Pending all_reduce_contributions(Elements data, ReduceOp, Completion);

  template <class Action>
  void for_each_other_rank(Action&& action) const;

  /// Whether an operation may be a blocking call of MPI.
  bool blocks(Completion completion) const {
    return completion == Completion::blocking && family_.relays == nullptr;
  }
  Transfer new_transfer() const;
  Pending finish(Transfer transfer, Completion completion) const;
  /// For the messages of the next collective operation: the same on all ranks, which start these in one
  /// order.
  int next_tag();

  MpiGroup group_;
  MpiFamily family_;
  std::shared_ptr<MpiWindow> window_of_descendants_;
  std::unique_ptr<PeerWindow> window_;
  std::unique_ptr<PeerBoard> board_;
  int sequence_ = 0;
};

/// The others in an order that spreads the load: each rank begins with the one after itself.
template <class Action>
void MpiCommunicator::for_each_other_rank(Action&& action) const {
  for (int step = 1; step < size(); ++step) action((rank() + step) % size());
}

}  // namespace gridlops
