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
  std::int64_t begin, end;  ///< nanoseconds of the steady clock; end is 0 before it is over
  TraceCounts counts;       ///< of a region
};

/// What something besides the thread has done, such as a stream of a GPU, one thing after the other.
struct TraceTrack {
  std::string name;
  std::vector<TraceEvent> events;
};

/// What a rank has recorded; what is still open is shown as if it ended now.
struct TraceRecord {
  std::int64_t begin = 0, end = 0;
  std::vector<TraceNode> nodes;  ///< the first is the whole
  std::vector<TraceEvent> events;
  std::vector<TraceTrack> tracks;
  Index dropped_regions = 0, dropped_events = 0;
};
TraceRecord trace_record();

/// The number of the trace if this thread records a timeline; 0 if it does not.
GRIDLOPS_EXPORT std::uint32_t trace_timeline();
/// Adds a track to the timeline, which takes the memory for its events, and returns its number.
GRIDLOPS_EXPORT std::size_t add_trace_track(const std::string& name);
/// Adds a region to a track of this trace; without room, or a name, it only counts it.
GRIDLOPS_EXPORT void add_to_trace_track(std::uint32_t timeline, std::size_t track, const char* name,
                                        std::int64_t begin, std::int64_t end);
/// The name of the innermost region that is open.
GRIDLOPS_EXPORT const char* trace_region_name();
/// Nanoseconds of the steady clock, which the times of a trace are.
GRIDLOPS_EXPORT std::int64_t trace_clock();

/// Brings in what a device has done, when the trace is looked at. It lives in the thread that records.
class GRIDLOPS_EXPORT TraceSource {
 public:
  TraceSource();
  TraceSource(const TraceSource&) = delete;
  TraceSource& operator=(const TraceSource&) = delete;
  virtual ~TraceSource();
  virtual void bring_in() = 0;
};

/// Others that are told of the regions, such as a profiler. There is one of them in a process.
struct TraceListener {
  void (*begin)(const char* name) = nullptr;
  void (*end)() = nullptr;
};
GRIDLOPS_EXPORT void set_trace_listener(const TraceListener& wanted);

/// Leaves out what its lifetime does, such as gathering the trace itself.
class TracePause {
 public:
  TracePause() : was_on_(detail::trace_is_on.exchange(false)) {}
  TracePause(const TracePause&) = delete;
  TracePause& operator=(const TracePause&) = delete;
  ~TracePause() { detail::trace_is_on.store(was_on_); }

 private:
  bool was_on_;
};

/// A region of a communicator's operation, or of a wait. One that another operation of a communicator makes
/// inside is not recorded: its bytes are those of the outer one already.
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

/// Something that goes on beside the regions, such as a message: begins, and ends when the number that is
/// returned is given back.
inline std::uint64_t trace_flight(const char* name) {
  return trace_is_on() ? detail::record_flight(name) : 0;
}
inline void trace_landing(std::uint64_t flight) {
  if (flight != 0) detail::record_landing(flight);
}

}  // namespace gridlops
