// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/base/trace.hpp"

namespace gridlops {

/// A node of a rank's tree. Nodes come after their parents.
struct TraceNode {
  const char* name = nullptr;
  int parent = -1, first_child = -1, next_sibling = -1;
  bool is_mark = false;
  Index calls = 0;
  std::int64_t nanoseconds = 0;
  TraceCounts counts{};
};

struct TraceEvent {
  enum class Kind { region, mark, in_flight };

  const char* name;
  Kind kind;
  std::int64_t begin, end;  ///< nanoseconds of the steady clock; end is 0 until it ends
  TraceCounts counts;       ///< of a region
};

/// The work of something other than the thread, such as a stream of a GPU, one thing after the other.
struct TraceTrack {
  std::string name;
  std::vector<TraceEvent> events;
};

/// A rank's record. Regions that are still open appear as if they ended now.
struct TraceRecord {
  std::int64_t begin = 0, end = 0;
  std::vector<TraceNode> nodes;  ///< the first is the root
  std::vector<TraceEvent> events;
  std::vector<TraceTrack> tracks;
  Index dropped_regions = 0, dropped_events = 0;
};
TraceRecord trace_record();

/// The number of the trace if this thread records a timeline; otherwise 0.
GRIDLOPS_EXPORT std::uint32_t trace_timeline();
/// Adds a track to the timeline, allocates memory for its events, and returns its number.
GRIDLOPS_EXPORT std::size_t add_trace_track(const std::string& name);
/// Adds a region to a track of this trace. Without room, or without a name, only counts it.
GRIDLOPS_EXPORT void add_to_trace_track(std::uint32_t timeline, std::size_t track, const char* name,
                                        std::int64_t begin, std::int64_t end);
/// The name of the innermost open region.
GRIDLOPS_EXPORT const char* trace_region_name();
/// Nanoseconds of the steady clock, the unit of all times of a trace.
GRIDLOPS_EXPORT std::int64_t trace_clock();

/// Collects what a device has done when someone reads the trace. It lives in the recording thread.
class GRIDLOPS_EXPORT TraceSource {
 public:
  TraceSource();
  TraceSource(const TraceSource&) = delete;
  TraceSource& operator=(const TraceSource&) = delete;
  virtual ~TraceSource();
  virtual void bring_in() = 0;
};

/// Another recipient of the regions, such as a profiler. A process has at most one.
struct TraceListener {
  void (*begin)(const char* name) = nullptr;
  void (*end)() = nullptr;
};
GRIDLOPS_EXPORT void set_trace_listener(const TraceListener& wanted);

/// Keeps what happens during its lifetime, such as gathering the trace itself, out of the trace.
class TracePause {
 public:
  TracePause() : was_on_(detail::trace_is_on.exchange(false)) {}
  TracePause(const TracePause&) = delete;
  TracePause& operator=(const TracePause&) = delete;
  ~TracePause() { detail::trace_is_on.store(was_on_); }

 private:
  bool was_on_;
};

/// The region of a communicator operation, or of a wait. An operation that another communicator operation
/// makes is not recorded: its bytes are already those of the outer one.
class OperationRegion {
 public:
  explicit OperationRegion(const char* name) : region_(depth++ == 0 ? name : nullptr) {}
  OperationRegion(const OperationRegion&) = delete;
  OperationRegion& operator=(const OperationRegion&) = delete;
  ~OperationRegion() { --depth; }

  /// Whether what is counted now belongs to the outermost operation, or to none.
  static bool counts() { return depth <= 1; }

 private:
  static inline thread_local int depth = 0;
  TraceRegion region_;
};

namespace detail {
void record_counts(const TraceCounts& counts) noexcept;
GRIDLOPS_EXPORT std::uint64_t record_flight(const char* name) noexcept;
GRIDLOPS_EXPORT void record_landing(std::uint64_t flight) noexcept;
}  // namespace detail

/// Adds to all open regions.
inline void trace_counts(const TraceCounts& counts) {
  if (trace_is_on()) detail::record_counts(counts);
}

/// Begins something that runs beside the regions, such as a message, and returns its number. It ends when the
/// caller passes that number back.
inline std::uint64_t trace_flight(const char* name) {
  return trace_is_on() ? detail::record_flight(name) : 0;
}
inline void trace_landing(std::uint64_t flight) {
  if (flight != 0) detail::record_landing(flight);
}

}  // namespace gridlops
