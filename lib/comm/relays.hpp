// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "gridlops/communicator.hpp"

namespace gridlops {

struct MpiGroup;

/// Large broadcasts that travel from rank to rank in pieces: each rank passes a piece on as soon as it has
/// it, so that after the first piece has reached the end of the chain all links carry data at once. With s
/// ranks a broadcast of N bytes takes about N + (s − 2) pieces of time on one link, where a binomial tree
/// takes N·log₂ s.
///
/// A rank in the middle has to pass on pieces even while it waits for something else, or the ranks behind it
/// would wait for ever. Communicators of one family therefore share a Relays, block in no call of MPI, and
/// let it advance whenever they wait.
class Relays {
 public:
  /// Whether a broadcast among so many ranks is long enough for a chain.
  static bool are_worth_it(const Elements& reals, int ranks);

  /// Array of reals; the same tag on all ranks of the group, and nobody else's meanwhile.
  std::unique_ptr<PendingOperation> start_broadcast(const MpiGroup& group, const Elements& reals, int root,
                                                    int tag);

  /// Passes on what has arrived.
  void advance();
  /// Returns when this rank has nothing left to pass on.
  void drain();

 private:
  class Broadcast;
  std::vector<Broadcast*> running_;
};

}  // namespace gridlops
