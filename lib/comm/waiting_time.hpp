// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

#include "gridlops/counters.hpp"

namespace gridlops {

/// Adds its own lifetime to an account.
class WaitingTime {
 public:
  explicit WaitingTime(Traffic& account) : account_(account) {}
  WaitingTime(const WaitingTime&) = delete;
  WaitingTime& operator=(const WaitingTime&) = delete;
  ~WaitingTime() { account_.seconds_waiting += std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Traffic& account_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace gridlops
