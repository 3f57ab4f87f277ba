// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>

namespace gridlops {

/// For its lifetime the thread that communicates is away: it works by itself, or is within a call of MPI that
/// blocks. So another thread may look after what ranks know of each other (Watchdog). That takes some
/// nanoseconds. Within another absence, on other threads, and without a session, this does nothing.
class Away {
 public:
  enum class Reason { work, blocking_call };

  explicit Away(Reason reason) noexcept;
  ~Away();
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;

  /// Whether this thread is away.
  static bool is_here() noexcept;
  /// How often it was.
  static std::uint64_t count() noexcept;

  /// The calling thread is from now on the one that communicates, until end().
  static void begin();
  static void end() noexcept;
  /// Calls look_after(reason, count) if the thread that communicates is away, which then stays away as long.
  static void meanwhile(const std::function<void(Reason, std::uint64_t)>& look_after);

 private:
  const bool is_outermost_;
};

/// What the library does by itself, which may last: it multiplies, hashes, or waits for a disk. It makes no
/// call of MPI meanwhile, so that another thread may.
struct AtWork : Away {
  AtWork() noexcept : Away(Reason::work) {}
};

}  // namespace gridlops
