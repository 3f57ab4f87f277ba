// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "gridlops/comm/communicator.hpp"

namespace gridlops {

struct MpiGroup;

/// Pipelined chain broadcasts: the operand travels from rank to rank in pieces, and each rank passes a piece
/// on as soon as it has it. Once the first piece has reached the end of the chain, all links carry data at
/// once. With s ranks a broadcast of N bytes takes as long as about N + (s − 2) pieces take on one link; a
/// binomial tree takes N·log₂ s.
///
/// A rank in the middle must pass pieces on even while it waits for something else, or the ranks behind it
/// would wait for ever. So a communicator and those made from it by split() share one list of active
/// broadcasts. They never block in a call of MPI, and call progress() while they wait.
class ChainBroadcasts {
 public:
  /// From this many bytes on, a chain is considered faster than MPI's own broadcast.
  explicit ChainBroadcasts(Index least_bytes) : least_bytes_(least_bytes) {}

  /// Whether the chain is faster for this array of reals among this many ranks.
  bool is_faster(const Elements& reals, int ranks) const;

  /// Broadcasts an array of reals. All ranks of the group pass the same tag, which nobody else may use
  /// meanwhile.
  std::unique_ptr<PendingOperation> start(const MpiGroup& group, const Elements& reals, int root, int tag);

  /// Passes on whatever has arrived.
  void progress();
  /// Returns when this rank has nothing left to pass on.
  void drain();

 private:
  class Broadcast;
  Index least_bytes_;
  std::vector<Broadcast*> running_;
};

}  // namespace gridlops
