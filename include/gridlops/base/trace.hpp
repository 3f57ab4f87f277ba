// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "gridlops/base/export.hpp"
#include "gridlops/base/types.hpp"

namespace gridlops {

// Records where a rank spends its time. The library marks solvers, products, communication and files as
// regions; a program adds its own. Nothing here communicates or waits for a device: gather_trace() collects
// the ranks' records (trace_report.hpp). While no trace is being recorded, a region costs one branch.

/// Limits of a recording. start_trace() allocates all its memory; recording allocates none.
struct TraceOptions {
  /// Also records when each region began and ended, besides the totals in the tree.
  bool timeline = false;
  /// The largest number of different regions in the tree. Further ones count only towards their enclosing
  /// region.
  Index regions = 2048;
  /// The largest number of timeline entries, about 80 bytes each. Further ones are counted, but not recorded.
  Index events = Index{1} << 17;
};

/// The counts of a rank while a trace is recorded. Bytes are counted as in Traffic, on all communicators. If
/// an operation of a communicator uses other communicators, its bytes count once.
struct TraceCounts {
  Index bytes_sent = 0, bytes_received = 0, bytes_read_from_peers = 0;
  Index messages = 0;  ///< communicator operations, as Traffic::calls counts them
  double flops = 0, seconds_waiting = 0;
};
GRIDLOPS_EXPORT TraceCounts operator+(const TraceCounts& a, const TraceCounts& b);
GRIDLOPS_EXPORT TraceCounts operator-(const TraceCounts& a, const TraceCounts& b);

/// Begins to record the calling thread, with an empty record. Throws UsageError if the options leave no room,
/// and std::bad_alloc.
GRIDLOPS_EXPORT void start_trace(const TraceOptions& options = {});
/// Ends recording and discards the record.
GRIDLOPS_EXPORT void stop_trace() noexcept;

namespace detail {
GRIDLOPS_EXPORT extern std::atomic<bool> trace_is_on;
}

/// Whether a trace is being recorded.
inline bool trace_is_on() { return detail::trace_is_on.load(std::memory_order_relaxed); }

/// A part of the program, from the constructor to the destructor. Regions nest. Entering a region again
/// within the same regions returns to the same node of the tree. The ranks may have different regions.
/// Reasons: docs/decisions/0023-traces.md.
class GRIDLOPS_EXPORT TraceRegion {
 public:
  /// The name must live as long as the trace, as a string literal does.
  explicit TraceRegion(const char* name) : place_(trace_is_on() ? enter(name) : 0) {}
  TraceRegion(const TraceRegion&) = delete;
  TraceRegion& operator=(const TraceRegion&) = delete;
  ~TraceRegion() {
    if (place_ != 0) leave(place_);
  }

 private:
  static std::uint64_t enter(const char* name) noexcept;
  static void leave(std::uint64_t place) noexcept;

  std::uint64_t place_;  // among the open regions of a trace; 0: not recorded
};

namespace detail {
GRIDLOPS_EXPORT void record_mark(const char* name) noexcept;
GRIDLOPS_EXPORT void record_flops(double flops) noexcept;
}  // namespace detail

/// Marks a moment within a region. The tree shows the time since the region's last mark, or since its
/// beginning. The name must live as long as the trace.
inline void trace_mark(const char* name) {
  if (trace_is_on()) detail::record_mark(name);
}

/// Adds floating-point operations to all open regions. The library counts those of products with matrices:
/// 2·m·n·r, four times as many for complex numbers.
inline void trace_flops(double flops) {
  if (trace_is_on()) detail::record_flops(flops);
}

}  // namespace gridlops
