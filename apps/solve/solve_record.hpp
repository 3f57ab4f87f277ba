// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "gridlops/solve/solver_table.hpp"
#include "measure/report.hpp"
#include "solve/column_figures.hpp"
#include "solve/solve_task.hpp"

namespace gridlops::program {

/// What a solve leaves on every rank of the grid.
struct Solved {
  SolveReport report;
  CostFunction cost;
  std::optional<DampingCurve> curve;  ///< of a sweep
  std::vector<ColumnFigure> column_figures;
  std::string non_finite_inputs;  ///< in words, where a column is not finite
};

/// What the report says of the problem, the options and the files. Not collective.
RunFacts facts_of(const SolveTask& task, const Solved& solved);

// The values of the options in the library's table, for reports and restarts.

/// The options that the solver takes, with the names that they have on the command line and the values that
/// the run used. Not those that are elsewhere in the report.
nlohmann::ordered_json used_options(const SolveTask& task, const Solved& solved);

/// The options that a checkpoint fixes, as it keeps them.
CheckpointFacts fixed_options(const SolveTask& task);

/// Throws InputError, on all ranks, if a restart has other values of them than the run that it goes on with.
/// It names each with both values.
void require_same_options(const SolveTask& task);

}  // namespace gridlops::program
