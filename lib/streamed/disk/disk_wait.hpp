// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "base/at_work.hpp"

namespace gridlops {

/// When a rank that waits for a disk says so: after 10 s, and again each time after twice as long.
class DiskPatience {
 public:
  std::chrono::seconds next() const { return next_; }
  /// for_what: such as "5 bytes of A from PLACE".
  void tell(const std::string& for_what);

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::seconds next_{10};
};

/// Calls of the system that wait for a disk, during its lifetime: a thread says so meanwhile, and the other
/// ranks know that this one works.
class DiskWait {
 public:
  /// for_what: as above. Empty: there is no disk to wait for.
  explicit DiskWait(std::string for_what);

 private:
  const AtWork at_work_;
  std::jthread thread_;
};

}  // namespace gridlops
