// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "solve/task/solve_task.hpp"

namespace gridlops::program {

/// Seconds by the model of the machine, with the products of a solver by this algorithm: of one of its
/// iterations with all batches, and of direct.
struct SolverSeconds {
  double iteration = 0, direct = 0;
  Algorithm algorithm = Algorithm::stationary_a;
};

struct ChosenSolver {
  Solver solver = Solver::cgls;
  std::string why{};
  /// The seconds that a factor would take, and so may the solver before one takes its place; none if that is
  /// not to be.
  std::optional<double> patience{};
};

/// Why there is no factor of an A on disks with fewer rows than columns.
inline constexpr const char* columns_on_disks = "its columns would be read from the disks again and again";

/// Chooses cgls, block-cgls or direct for --solver auto, before anything is read, and says why. The task has
/// all that does not depend on the solver. seconds: none if the machine has no model of them. Not collective;
/// ranks with the same task choose alike.
ChosenSolver choose_solver(const SolveTask& task, int ranks,
                           const std::function<std::optional<SolverSeconds>(Solver)>& seconds);

}  // namespace gridlops::program
