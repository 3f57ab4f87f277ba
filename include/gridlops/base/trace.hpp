// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "gridlops/base/export.hpp"
#include "gridlops/base/types.hpp"

namespace gridlops {

// Where a rank spends its time. The library has regions for solvers, products, communication and files; a
// program adds its own. Nothing here communicates or waits for a device: gather_trace() brings the ranks'
// records together (trace_report.hpp). While no trace is recorded, a region costs one branch.

/// What recording may use. The memory is taken when recording begins, and none afterwards.
struct TraceOptions {
  /// Also records when each region began and ended, besides the sums of the tree.
  bool timeline = false;
  /// The most different regions of the tree. Further ones count towards the region around them only.
  Index regions = 2048;
  /// The most entries of the timeline, about 80 bytes each. Further ones are not recorded, but counted.
  Index events = Index{1} << 17;
};

/// What a rank counts while a trace is recorded. Bytes are counted as in Traffic, on all communicators; what
/// an operation of a communicator makes other communicators do for it counts once.
struct TraceCounts {
  Index bytes_sent = 0, bytes_received = 0, bytes_read_from_peers = 0;
  Index messages = 0;  ///< operations of communicators, as Traffic::calls counts them
  double flops = 0, seconds_waiting = 0;
};
GRIDLOPS_EXPORT TraceCounts operator+(const TraceCounts& a, const TraceCounts& b);
GRIDLOPS_EXPORT TraceCounts operator-(const TraceCounts& a, const TraceCounts& b);

/// Begins to record what the calling thread does, with nothing recorded so far. Throws UsageError if the
/// options leave no room, and std::bad_alloc.
GRIDLOPS_EXPORT void start_trace(const TraceOptions& options = {});
/// Ends recording, and discards the record.
GRIDLOPS_EXPORT void stop_trace() noexcept;

namespace detail {
GRIDLOPS_EXPORT extern std::atomic<bool> trace_is_on;
}

/// Whether a trace is recorded.
inline bool trace_is_on() { return detail::trace_is_on.load(std::memory_order_relaxed); }

/// A part of the program, from the constructor to the destructor. Regions nest. A region that is entered
/// again within the same regions is the same node of the tree. The ranks need not have the same regions.
class GRIDLOPS_EXPORT TraceRegion {
 public:
  /// The name lives as long as the trace, as a string literal does.
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
/// beginning. The name lives as long as the trace.
inline void trace_mark(const char* name) {
  if (trace_is_on()) detail::record_mark(name);
}

/// Adds floating-point operations to the regions that are open. The library counts those of products with
/// matrices: 2·m·n·r, of complex numbers four times as many.
inline void trace_flops(double flops) {
  if (trace_is_on()) detail::record_flops(flops);
}

}  // namespace gridlops
