// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "gridlops/comm/process_grid.hpp"
#include "gridlops/solve/plan.hpp"
#include "matrix/memory_plan.hpp"

namespace gridlops::program {

struct SolveTask;

/// Where a run keeps A, and what an iteration with it is.
struct Placement {
  PlannedIteration iteration;
  std::shared_ptr<const ProcessGrid> grid;
  Index memory_of_tiles = 0;  ///< as StreamOptions::memory, for a matrix on disks
  bool in_place = false;      ///< as StreamOptions::in_place
  double disk_rate = 0;       ///< measured: bytes in a second, from the disks of all ranks; 0: it was not
  std::string why_disk{};     ///< a line, if the program put A there
};

/// Returns the plan of the memory and the traffic of a task. Takes no memory. Not collective.
PlannedSolve plan_of(const SolveTask& task);

/// Returns the placement of a task whose iteration and grid are chosen (collective over world). Puts A on
/// disks, if --storage says so, or if it says nothing and the memory of a rank (--memory) is less than the
/// plan needs, or leaves it in its file, where it can be read as fast; says how much of A stays in memory;
/// and chooses between one pass and two, by the disks, which it measures. Throws UsageError on all ranks if
/// the memory is too small for that, too, or if --memory is too small for another --storage.
Placement find_room(Communicator& world, const SolveTask& task);

/// Whether every rank has memory for a factor besides A and the right-hand sides, if direct may take the
/// place of the solver of the task, whose iteration and grid are chosen (collective over world).
bool has_room_for_factor(Communicator& world, const SolveTask& task);

/// The bytes of A that a run has read from disks, and the time that took.
struct DiskUse {
  double bytes = 0, bytes_read = 0;  ///< of all ranks
  double seconds_waited = 0;         ///< of the rank that waited longest
  double bytes_per_second = 0;       ///< that all disks deliver, if that was measured, before the solve
  bool in_place = false;             ///< A was read in its file
};
/// reads: the bytes that this rank has read, and the seconds that it has waited (collective over the grid).
DiskUse disk_use(const SolveTask& task, std::pair<Index, double> reads);

/// Prints what the run would take (collective over world).
void tell_plan(Communicator& world, const SolveTask& task);

}  // namespace gridlops::program
