// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "solve/task/solve_task.hpp"

namespace gridlops::program {

/// The seconds of an iteration of a solver with its first batch by the model of the machine, and of a factor.
struct SolverSeconds {
  double iteration = 0, factor = 0;
};

/// Chooses cgls, block-cgls or direct for --solver auto, before anything is read, and says why. The task has
/// all that does not depend on the solver. seconds: none if the machine has no model of them. Not collective;
/// ranks with the same task choose alike.
std::pair<Solver, std::string> choose_solver(
    const SolveTask& task, int ranks, const std::function<std::optional<SolverSeconds>(Solver)>& seconds);

}  // namespace gridlops::program
