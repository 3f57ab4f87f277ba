// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

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

/// Where A is: in memory, or on disks as far as it has no room in memory (stream_matrix(),
/// read_compressed()).
enum class MatrixPlace { memory, disk };

/// An iteration of a solver whose operator is a matrix. Reasons: docs/decisions/0024-plans.md.
struct PlannedIteration {
  Solver solver = Solver::cgls;
  bool one_pass = false;  ///< for cgls, with stationary_a
  Algorithm algorithm = Algorithm::stationary_a;
  ProductShape shape;                  ///< with as many columns as are active at once
  Index panel = 0;                     ///< as in MatrixMultOptions
  Storage storage = Storage::columns;  ///< as in MatrixMultOptions
  MatrixPlace place = MatrixPlace::memory;
  double pass_seconds = 0;  ///< in which disks deliver once what is there of A; 0: A is in memory
};

/// How a solver is to work on a matrix, as far as that is asked for.
struct IterationRequest {
  Solver solver = Solver::cgls;
  Algorithm algorithm = Algorithm::automatic;
  std::optional<bool> one_pass = false;  ///< none: if that is faster
  std::optional<Storage> storage{};      ///< none: the faster one, on disks packed
  MatrixPlace place = MatrixPlace::memory;
  Index panel = 0;      ///< as in MatrixMultOptions
  Index batch = 0;      ///< as in SolveOptions
  bool on_host = true;  ///< A lies in host memory
};

/// Chooses what the request leaves open: one pass by one_pass_is_faster(), the algorithm by
/// choose_algorithm() for the columns of a batch, the storage by faster_storage(). What the solver needs
/// comes before what was asked for: solvers with Feature::shared_space, one pass and a disk take
/// stationary_a, one pass in host memory takes a packed A, and only solvers with Feature::one_pass have one
/// pass. A factor takes stationary_a unless another algorithm was asked for. Nor is an algorithm chosen that
/// moves A if a storage was asked for that such algorithms refuse; then it is stationary_a. Not collective;
/// ranks with the same arguments and the same calibration choose alike. Throws UsageError if a matrix of this
/// type, or in this memory, cannot be stored as asked.
GRIDLOPS_EXPORT PlannedIteration plan_iteration(const IterationRequest& asked, const ProductShape& shape,
                                                GridShape grid, const MachineModel& machine = {});

/// How often an iteration reads its matrix.
GRIDLOPS_EXPORT int passes_over_matrix(const PlannedIteration& iteration);

/// Returns the modelled seconds of one iteration on the slowest rank: its products, its passes over vectors,
/// and its sums over all ranks; or those in which disks deliver A for it, if these are more. Not collective.
GRIDLOPS_EXPORT double iteration_seconds(const PlannedIteration& iteration, GridShape grid,
                                         const MachineModel& machine = {});

/// Returns the modelled seconds of factor() for this matrix on the slowest rank, where Cholesky's method is
/// enough, which every rank follows for itself: of the sum of AᴴA or AAᴴ, from rows, or by products with unit
/// vectors. Not collective.
GRIDLOPS_EXPORT double factor_seconds(const PlannedIteration& iteration, GridShape grid,
                                      const MachineModel& machine = {});

/// Returns the modelled seconds of direct() for this number of right-hand sides on the slowest rank: of such
/// a factor, and for each batch of AᴴB, the solves with the factor, and the products of one iteration, from
/// which verdicts follow; from a guess, of its residual and of verdicts, too. Not collective.
GRIDLOPS_EXPORT double direct_seconds(const PlannedIteration& iteration, Index nrhs, bool initial_guess,
                                      GridShape grid, const MachineModel& machine = {});

/// Returns an iteration that may have one pass, with two if it is faster so: one pass reads A once, but
/// computes half as much again. Not collective.
GRIDLOPS_EXPORT PlannedIteration with_faster_passes(const PlannedIteration& iteration, GridShape grid,
                                                    const MachineModel& machine = {});

/// Returns the cost of the products of one iteration for the rank at (row, col) of the grid, exactly as the
/// communicators' counters will show it. Not collective.
GRIDLOPS_EXPORT RankCost iteration_cost(const PlannedIteration& iteration, GridShape grid, int row, int col);

}  // namespace gridlops
