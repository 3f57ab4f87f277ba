// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include "solve/checkpointing.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

struct ChosenSolver {
  Solver solver = Solver::cgls;
  std::string why;  ///< for the user
};

/// What --solver auto stands for, cgls or block-cgls, by what is known before anything is read. Not
/// collective; ranks with the same arguments choose alike. saved: of the run that a restart continues;
/// shape: of the products; seconds: of an iteration of a solver by the model of the machine; none: it has
/// none.
ChosenSolver choose_solver(const SolveArguments& arguments, const CheckpointFacts& saved,
                           const ProductShape& shape,
                           const std::function<std::optional<double>(Solver)>& seconds);

}  // namespace gridlops::program
