// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops {

/// The figures of one rank in one region, over all calls.
struct TraceFigures {
  Index calls = 0;  ///< 0 if the rank never entered it
  double seconds = 0;
  TraceCounts counts;
};

struct TraceLine {
  std::string name;
  int depth = 0;         ///< 0: the whole program
  bool is_mark = false;  ///< seconds are those up to the mark; the seconds of other regions include them, too
  std::vector<TraceFigures> ranks;  ///< one for each rank, including the regions inside
  std::vector<TraceFigures> own;    ///< one for each rank, without the regions inside
};

/// The trees of all ranks, merged: a region of any rank is a line for all of them.
struct TraceTree {
  std::vector<TraceLine> lines;  ///< a region, then those inside it
  Index dropped_regions = 0;     ///< regions that had no room, on all ranks together
  Index dropped_events = 0;
};

/// Collects what all ranks have recorded so far on rank 0, which alone returns it (collective). This call
/// itself is not recorded, and recording goes on. Open regions count up to now. A rank that records nothing
/// has a line of zeros.
GRIDLOPS_EXPORT TraceTree gather_trace(Communicator& comm);

/// The smallest value, the median and the largest value over the ranks that entered the region.
struct TraceSpread {
  double least = 0, median = 0, most = 0;
};
GRIDLOPS_EXPORT TraceSpread spread(const std::vector<TraceFigures>& ranks,
                                   const std::function<double(const TraceFigures&)>& value);

/// Writes the timelines of all ranks as one file in Trace Event Format, which Perfetto and Chrome show
/// (collective). Each rank is a process of the timeline. Its regions are complete events on one thread. Its
/// communicators' requests are asynchronous events of category "request", from their start until a wait or a
/// test has found them complete. The clocks of different machines are aligned to within a few microseconds at
/// the time when the file is written. Needs a trace with a timeline. Throws OutputError on all ranks.
GRIDLOPS_EXPORT void write_trace_events(Communicator& comm, const std::string& path);

}  // namespace gridlops
