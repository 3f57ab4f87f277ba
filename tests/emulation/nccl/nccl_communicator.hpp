// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <memory>
#include <vector>

#include <nccl.h>
#include "emulation/device.hpp"
#include "emulation/nccl/nccl_segment.hpp"

/// One rank's end of a communicator.
struct ncclComm {
  emulation::Segment* segment = nullptr;
  int rank = 0, size = 1;
  emulation::SegmentName name;
  bool outermost = false;  ///< no other lived when it was made: its end is where orders are compared
  bool dead = false;       ///< aborted here
  bool busy = false;       ///< with NCCL_COMM_BLOCKING=0: an operation runs in the background
  int device = 0;
  long issued = 0;                                             ///< collective operations
  long turn = 0;                                               ///< and those that are over
  long rounds = 0;                                             ///< of host exchanges
  std::array<long, emulation::most_ranks> sent{}, received{};  ///< messages issued, per peer
  emulation::OperationPtr last;

  const emulation::Segment::Slot& slot(int of) const { return segment->slots[static_cast<std::size_t>(of)]; }
  emulation::Segment::Line& line(int from, int to) const {
    return segment->lines[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
  /// Device memory of another rank.
  const char* memory_of(int other, std::size_t offset) const;

  bool is_given_up() const { return segment->aborted != 0; }

  /// Begins a round in which every rank contributes four numbers; the ranks are not waited for.
  void post(const std::array<long, 4>& mine);
  /// Whether all ranks have contributed to the round.
  bool have_all_posted() const;
  /// Every rank's contribution to the round.
  std::vector<std::array<long, 4>> posts() const;
  /// A whole round, in which the hosts wait for each other. Empty if one of them gives up.
  std::vector<std::array<long, 4>> exchange(const char* function, const std::array<long, 4>& mine);
  /// Ends the process if operations of it are not known to be over.
  void require_quiet(const char* function) const;
};

namespace emulation {

/// Begins to take part in the communicator of that name.
ncclComm_t join(const SegmentName& name, int size, int rank);
/// Whether all its ranks take part.
bool have_all_joined(ncclComm& comm);

/// The order in which this process issued collective operations: (communicator, number, group). Those of one
/// group are unordered among themselves.
struct Issued {
  long communicator, number, group;
};
std::vector<Issued>& order_of_issue();

/// Compares the orders of all ranks (collective). Ends the process if no single order agrees with all of
/// them: then the ranks could all wait for each other.
void compare_orders(ncclComm& comm);

}  // namespace emulation
