// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops::program {

/// What decides how much memory and traffic a solve takes.
struct PlannedSolve {
  Solver solver = Solver::cgls;
  Algorithm algorithm = Algorithm::automatic;
  ProductShape shape;
  Index panel = 0;
  Index batch = 0;
  bool one_pass = false, damped = false, initial_guess = false, scaled = false, variances = false,
       guarded = false;
  Layout matrix;
  Space product_range;  ///< of the matrix as an operator
  Space range, domain;  ///< of the operator that is solved with, which may redistribute besides
};

/// The bytes that the rank at (0, 0) of the grid needs. It has the largest part of all that is cut.
Index memory_of_first_rank(const PlannedSolve& plan);

/// A table: memory on the ranks that have least and most of it, and what they receive in an iteration.
std::string plan_text(const PlannedSolve& plan);

}  // namespace gridlops::program
