// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>

#include "gridlops/base/export.hpp"

namespace gridlops {

/// During its lifetime the thread that communicates is away: it works alone, or is inside a call that blocks,
/// of MPI or of another library. Meanwhile another thread may answer and watch for this rank (Watchdog).
/// Making one takes some nanoseconds. It does nothing within another Away, on other threads, and without a
/// session.
class Away {
 public:
  enum class Reason { work, blocking_call, foreign_call };

  GRIDLOPS_EXPORT explicit Away(Reason reason) noexcept;
  GRIDLOPS_EXPORT ~Away();
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;

  /// Whether this thread is away.
  static bool is_here() noexcept;
  /// How many times it has been away.
  static std::uint64_t count() noexcept;

  /// Makes the calling thread the one that communicates, until end().
  static void begin();
  static void end() noexcept;
  /// Calls look_after(reason, count) if the thread that communicates is away; it then stays away until the
  /// call returns.
  static void meanwhile(const std::function<void(Reason, std::uint64_t)>& look_after);

 private:
  const bool is_outermost_;
};

/// Work of the library itself that may take long: multiplying, hashing, waiting for a disk. It makes no MPI
/// call meanwhile, so another thread may.
struct AtWork : Away {
  AtWork() noexcept : Away(Reason::work) {}
};

/// A call of another library than MPI, which may block until other ranks make it, too. It makes no MPI call,
/// so another thread waits for the ranks meanwhile.
struct InForeignCall : Away {
  InForeignCall() noexcept : Away(Reason::foreign_call) {}
};

}  // namespace gridlops
