// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "matrix/memory_plan.hpp"
#include "solve/task/solve_task.hpp"

namespace gridlops::program {

/// Returns the plan of a task. Takes no memory. Not collective.
PlannedSolve plan_of(const SolveTask& task);

/// Prints what the run would take (collective over world).
void tell_plan(Communicator& world, const SolveTask& task);

}  // namespace gridlops::program
