// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "measure/report.hpp"
#include "solve/solve_record.hpp"
#include "solve/task/solve_task.hpp"

namespace gridlops::program {

/// Opens A, solves, and writes X (collective over the grid of the task). Completes what the rank has
/// measured. With shows_progress, rank 0 says how it goes.
Solved solve_on_grid(const SolveTask& task, bool shows_progress, Measurements& measured);

}  // namespace gridlops::program
