// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/base/export.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops {

/// Returns the column partition that an algorithm gives X and Y on a grid.
GRIDLOPS_EXPORT Partition columns_of(Algorithm algorithm, Index nrhs, GridShape grid);

/// Returns the shape of a solver's products with its first and largest batch of columns; `batch` is as in
/// SolveOptions.
GRIDLOPS_EXPORT ProductShape first_batch(Algorithm algorithm, ProductShape shape, GridShape grid,
                                         Index batch);

/// An iteration of a solver whose operator is a matrix.
struct PlannedIteration {
  Solver solver = Solver::cgls;
  bool one_pass = false;  ///< for cgls, with stationary_a
  Algorithm algorithm = Algorithm::stationary_a;
  ProductShape shape;  ///< nrhs is the number of columns active at once
  Index panel = 0;     ///< as in MatrixMultOptions
};

/// Returns the modelled seconds of one iteration on the slowest rank: its products, its passes over vectors,
/// and its sums over all ranks. Not collective.
GRIDLOPS_EXPORT double iteration_seconds(const PlannedIteration& iteration, GridShape grid,
                                         const MachineModel& machine = {});

/// Returns the cost of the products of one iteration for the rank at (row, col) of the grid, exactly as the
/// communicators' counters will show it. Not collective.
GRIDLOPS_EXPORT RankCost iteration_cost(const PlannedIteration& iteration, GridShape grid, int row, int col);

}  // namespace gridlops
