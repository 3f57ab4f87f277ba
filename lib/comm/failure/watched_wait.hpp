// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>

#include "gridlops/base/export.hpp"

namespace gridlops {

/// A wait for other ranks, which polls, and tells this object so. Now and then a poll looks after the other
/// ranks (Watchdog). It ends the job, or throws CommunicationError, when no rank has got on for
/// GRIDLOPS_TIMEOUT seconds. It throws what a rank threw that has left out messages which this one waits for.
/// Where there is no MpiSession it does nothing.
class WatchedWait {
 public:
  using Clock = std::chrono::steady_clock;

  void poll() {
    if (++polls_ % polls_between_looks == 0) look();
  }
  /// The same for waits that poll by themselves: to be called every few microseconds or milliseconds.
  GRIDLOPS_EXPORT void look();
  /// What this rank waits for is no other rank at present, but work of its own, as on a device.
  void is_own_work() { begin_ = Clock::now(); }

 private:
  static constexpr std::uint32_t polls_between_looks = 16;
  std::uint32_t polls_ = 0;
  Clock::time_point begin_{};  // set by the first look, so that short waits ask for no time
};

/// The one place where ranks wait for each other: asks is_over() until it says true.
template <class IsOver>
void wait_until(IsOver&& is_over) {
  for (WatchedWait wait; !is_over();) wait.poll();
}

/// The same for a rank that only asked, once, whether an operation is over, and may ask again for ever. It
/// has got on if it began another operation, or worked in the library, since it asked last.
void look_after_test();

}  // namespace gridlops
