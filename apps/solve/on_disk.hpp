// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include "gridlops/streamed/streamed_matrix.hpp"
#include "measure/memory_plan.hpp"
#include "solve/solve_task.hpp"

namespace gridlops::program {

/// What a run has read of A from disks.
struct DiskUse {
  double bytes = 0, bytes_read = 0;  ///< of all ranks
  double seconds_waited = 0;         ///< of the rank that waited longest
};
DiskUse disk_use(const ProcessGrid& grid, Index bytes_read, double seconds_waited, const SolveTask& task);

/// Puts A on disks, if --storage says so, or if it says nothing and the memory of a rank (--memory) is less
/// than the plan needs, and says how much of A stays in memory (collective over world). `plan_of` makes the
/// plan of a task. Throws UsageError on all ranks if the memory is too small for that, too, or if --memory is
/// too small for another --storage.
void find_room(Communicator& world, SolveTask& task,
               const std::function<PlannedSolve(const SolveTask&)>& plan_of);

/// How the block of a rank is stored, with the workspace of products.
StreamedSizes streamed_sizes_of(const SolveTask& task, int row, int col);

/// What the disks can deliver, and how long an iteration takes, in words (collective over world). Measures.
std::string disk_text(Communicator& world, const SolveTask& task);

}  // namespace gridlops::program
