// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "comm/mpi/mpi_communicator.hpp"

namespace gridlops {

/// Pipelined chain broadcasts: the operand travels from rank to rank in pieces, and each rank passes a piece
/// on as soon as it has it. Once the first piece has reached the end of the chain, all links carry data at
/// once. With s ranks, a broadcast of N bytes takes about as long as N bytes and s − 2 pieces on one link; a
/// binomial tree takes as long as N·log₂ s bytes.
///
/// A rank in the middle must pass on pieces even while it waits for another operation, or the ranks behind it
/// would wait for ever. So a communicator and those split off from it share one list of unfinished
/// broadcasts. They never block in a call of MPI, but wait by wait_for().
class ChainBroadcasts {
 public:
  /// From this many bytes on, a chain counts as faster than MPI's own broadcast.
  explicit ChainBroadcasts(Index least_bytes) : least_bytes_(least_bytes) {}

  /// Whether a chain is faster for this array of reals among this many ranks.
  bool is_faster(const Elements& reals, int ranks) const;

  /// Broadcasts an array of reals. All ranks of the group give the same tag; no other operation may use it
  /// meanwhile.
  std::unique_ptr<PendingOperation> start(const MpiGroup& group, const Elements& reals, int root, int tag);

  /// Returns when the operation is complete. Meanwhile it passes on arriving pieces.
  void wait_for(PendingOperation& operation);
  /// Returns when this rank has nothing left to pass on.
  void drain();

 private:
  class Broadcast;
  void progress();

  Index least_bytes_;
  std::vector<Broadcast*> running_;
};

/// The transport "chain", which pipelines large broadcasts. Ranks pass their pieces on while they wait.
class ChainCommunicator final : public MpiCommunicator {
 public:
  ChainCommunicator(const MpiGroup& group, std::shared_ptr<Traffic> traffic,
                    std::shared_ptr<ChainBroadcasts> chains)
      : MpiCommunicator(group, std::move(traffic)), chains_(std::move(chains)) {}

  std::string transport() const override { return "chain"; }

 private:
  class ForwardingTransfer final : public MpiTransfer {
   public:
    ForwardingTransfer(const MpiGroup& group, ChainBroadcasts& chains)
        : MpiTransfer(group), chains_(chains) {}
    void wait() override { chains_.wait_for(*this); }

   private:
    ChainBroadcasts& chains_;
  };

  std::unique_ptr<Communicator> make_child(const MpiGroup& group) const override {
    return std::make_unique<ChainCommunicator>(group, traffic_account(), chains_);
  }
  Transfer new_transfer() const override { return std::make_unique<ForwardingTransfer>(group(), *chains_); }
  Carrier carrier(Completion, Index, std::optional<Index>) const override {
    return Carrier::non_blocking_call;
  }
  std::unique_ptr<Communicator> do_split(std::optional<int> color, int key) override {
    chains_->drain();
    return MpiCommunicator::do_split(color, key);
  }
  Pending do_broadcast(Elements data, int root, Completion completion) override {
    const Elements reals = as_reals(data);
    if (!chains_->is_faster(reals, size())) return MpiCommunicator::do_broadcast(data, root, completion);
    return chains_->start(group(), reals, root, next_tag());
  }

  std::shared_ptr<ChainBroadcasts> chains_;
};

}  // namespace gridlops
