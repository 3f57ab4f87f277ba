// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>

#include "gridlops/base/export.hpp"

namespace gridlops {

/// A wait for other ranks. The caller polls, and calls look() each time; now and then look() checks on the
/// other ranks (Watchdog). If no rank makes progress for GRIDLOPS_TIMEOUT seconds, it ends the job or throws
/// CommunicationError. If a rank skipped messages for which this one waits, it throws that rank's error.
/// Without an MpiSession it does nothing.
/// Reasons: docs/decisions/0040-one-place-waits.md.
class WatchedWait {
 public:
  using Clock = std::chrono::steady_clock;

  void poll() {
    if (++polls_ % polls_between_looks == 0) look();
    if (polls_ >= polls_between_looks) leave_processor();
  }
  /// For waits with their own polling loop: call this every few microseconds or milliseconds.
  GRIDLOPS_EXPORT void look();
  /// Says that this rank currently waits for its own work, such as that of a device, and for no other rank.
  void is_own_work() { begin_ = Clock::now(); }

 private:
  /// Sleeps for a moment if ranks outnumber processors. Yielding is not enough: two ranks that wait hand the
  /// processor to each other, and the one that works gets it late.
  static void leave_processor();

  static constexpr std::uint32_t polls_between_looks = 16;
  std::uint32_t polls_ = 0;
  Clock::time_point begin_{};  // set by the first look, so that short waits read no clock
};

/// The one place where ranks wait for each other: calls is_over() until it returns true.
template <class IsOver>
void wait_until(IsOver&& is_over) {
  for (WatchedWait wait; !is_over();) wait.poll();
}

/// Looks, as WatchedWait does, for a rank that only asked once whether an operation is over, and may ask for
/// ever. It has made progress if it began another operation, or worked in the library, since it last asked.
void look_after_test();

}  // namespace gridlops
