// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "gridlops/solve/robust.hpp"
#include "gridlops/solve/solve_or_factor.hpp"
#include "gridlops/solve/solver_table.hpp"
#include "measure/report.hpp"
#include "solve/certify.hpp"
#include "solve/column_figures.hpp"
#include "solve/task/placement.hpp"
#include "solve/task/solve_task.hpp"

namespace gridlops::program {

/// The results that a solve leaves on every rank of the grid.
struct Solved {
  SolveReport report;
  std::optional<SolvedOrFactored> factored;  ///< where direct might take the place of the solver
  std::vector<RobustColumn> robust;          ///< with --misfit
  CostFunction cost;
  std::optional<DampingCurve> curve;          ///< of a sweep whose dampings are columns
  std::optional<SweepOfEach> sweep;           ///< that chose for each right-hand side
  std::optional<CompressedSolve> compressed;  ///< if the matrix is
  std::optional<DiskUse> disk;                ///< if the matrix lies on disks
  std::vector<ColumnFigure> column_figures;
  std::vector<double> error_bounds;  ///< if they are wanted
  double sigma_min = 0;              ///< for them
  std::vector<WeightRange> weights;  ///< of each column, if there are any
  Index holes = 0;                   ///< the numbers of B that are missing, with --holes nan
  std::string non_finite_inputs;     ///< in words, if a column is not finite
};

/// The report's facts about the problem, the options and the files. Not collective.
RunFacts facts_of(const SolveTask& task, const Solved& solved);

/// Why direct took the place of the solver of the task.
std::string change_text(const SolveTask& task, const SolvedOrFactored& solved);

// The values of the options in the library's table, for reports and restarts.

/// The options that apply to the solver, with their names on the command line and the values that the run
/// used, except for those elsewhere in the report.
nlohmann::ordered_json used_options(const SolveTask& task, const Solved& solved);

/// The options that a checkpoint fixes, in the form in which it stores them.
CheckpointFacts fixed_options(const SolveTask& task);

/// Whether the history of this run has all iterations: it begins, or goes on from a state that has a whole
/// one.
bool continues_history(const SolveTask& task);

/// Throws InputError, on all ranks, if a restart's values of these differ from those of the run that it
/// continues. Names each difference with both values.
void require_same_options(const SolveTask& task);

}  // namespace gridlops::program
