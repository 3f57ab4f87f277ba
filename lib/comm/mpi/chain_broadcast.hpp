// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "gridlops/comm/communicator.hpp"

namespace gridlops {

struct MpiGroup;

/// Pipelined chain broadcasts: the operand travels from rank to rank in pieces, and each rank passes a piece
/// on as soon as it has it. Once the first piece has reached the end of the chain all links carry data at
/// once: with s ranks a broadcast of N bytes takes the time of about N + (s − 2) pieces on one link, where a
/// binomial tree takes N·log₂ s.
///
/// A rank in the middle must pass on pieces even while it waits for something else, or the ranks behind it
/// would wait for ever. So a communicator and those split off from it share one list of broadcasts under way;
/// they block in no call of MPI, and call progress() whenever they wait.
class ChainBroadcasts {
 public:
  /// A chain is taken to be faster than MPI's own broadcast from so many bytes on.
  explicit ChainBroadcasts(Index least_bytes) : least_bytes_(least_bytes) {}

  /// Whether it is for this array of reals among so many ranks.
  bool is_faster(const Elements& reals, int ranks) const;

  /// Broadcasts an array of reals. All ranks of the group give the same tag, which nobody else uses
  /// meanwhile.
  std::unique_ptr<PendingOperation> start(const MpiGroup& group, const Elements& reals, int root, int tag);

  /// Passes on what has arrived.
  void progress();
  /// Returns when this rank has nothing left to pass on.
  void drain();

 private:
  class Broadcast;
  Index least_bytes_;
  std::vector<Broadcast*> running_;
};

}  // namespace gridlops
