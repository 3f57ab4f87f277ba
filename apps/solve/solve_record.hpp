// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

}  // namespace gridlops::program
