// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "solve/checkpointing.hpp"

namespace gridlops::program {

/// With the reason, for the user.
using ChosenSolver = std::pair<Solver, std::string>;

/// The seconds of an iteration of a solver with its first batch by the model of the machine, and of a factor.
struct SolverSeconds {
  double iteration = 0, factor = 0;
};

/// Chooses cgls, block-cgls or direct for --solver auto, before anything is read. Not
/// collective; ranks with the same arguments choose alike. saved: of the run that a restart continues;
/// shape: of the products; seconds: none if the machine has no model of them.
ChosenSolver choose_solver(const SolveArguments& arguments, const CheckpointFacts& saved,
                           const ProductShape& shape, int ranks,
                           const std::function<std::optional<SolverSeconds>(Solver)>& seconds);

}  // namespace gridlops::program
