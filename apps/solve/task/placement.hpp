// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "matrix/memory_plan.hpp"
#include "solve/task/solve_task.hpp"

namespace gridlops::program {

/// What a run has read of A from disks.
struct DiskUse {
  double bytes = 0, bytes_read = 0;  ///< of all ranks
  double seconds_waited = 0;         ///< of the rank that waited longest
  double bytes_per_second = 0;       ///< that all disks deliver, if that was measured, before the solve
  bool in_place = false;             ///< A was read in its file
};
/// reads: the bytes that this rank has read, and the seconds that it has waited (collective over the grid).
DiskUse disk_use(const SolveTask& task, std::pair<Index, double> reads);

/// Puts A on disks, if --storage says so, or if it says nothing and the memory of a rank (--memory) is less
/// than the plan needs, or leaves it in its file, where it can be read as fast; says how much of A stays in
/// memory; and chooses between one pass and two, by the disks, which it measures (collective over world).
/// `plan_of` makes the plan of a task. Throws UsageError on all ranks if the memory is too small for that,
/// too, or if --memory is too small for another --storage.
void find_room(Communicator& world, SolveTask& task,
               const std::function<PlannedSolve(const SolveTask&)>& plan_of);

/// What the disks deliver, and how long an iteration takes, in words.
std::string disk_text(const SolveTask& task);

}  // namespace gridlops::program
