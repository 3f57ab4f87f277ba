// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <iosfwd>
#include <memory>
#include <string>

#include "gridlops/export.hpp"
#include "gridlops/solver.hpp"

namespace gridlops {

/// What is about to be solved. For lsqr() and lsmr() with damping and an initial guess it is the stacked
/// system of the correction, whose rows are those of A and of X and whose damping is 0.
struct SolveStart {
  std::string solver;
  Index rows = 0, cols = 0, nrhs = 0;
  ScalarType type = ScalarType::f64;
  double tolerance = 0, damp = 0;
  Index max_iterations = 0;
  int rank = 0;  ///< of this process in the grid
};

/// Watches a solver at work: SolveOptions::observers. Called on every member of the grid, in the same order
/// on all; must not communicate over the grid. What it throws on one of them, the solver throws on all at the
/// next synchronisation point.
class GRIDLOPS_EXPORT SolveObserver {
 public:
  virtual ~SolveObserver();

  virtual void start(const SolveStart&) {}
  /// At the start of every batch (iteration 0), where a restart goes on, and after each iteration. If it
  /// returns true on any rank, all columns, also of batches to come, end at the next synchronisation point
  /// with user_stop.
  virtual bool step(const IterationInfo&) { return false; }
  /// With the final verdicts.
  virtual void end(const SolveReport&) {}

 protected:
  SolveObserver() = default;
};

/// Ends all columns once ‖B − AX‖ has fallen to this part of what it was at the first step that it was told
/// of, as one norm of all columns;
/// SolveOptions::residual_ratio is for each column by itself. For solves without batches.
GRIDLOPS_EXPORT std::shared_ptr<SolveObserver> stop_at_cost_ratio(double ratio);

/// Ends all columns as soon as one of them is not finite, which otherwise is that column's affair.
GRIDLOPS_EXPORT std::shared_ptr<SolveObserver> stop_on_non_finite();

/// Which iterations have a row in the table: the first ones, the last ones before the limit, every so many
/// between, and always the last.
struct TableRows {
  Index first = 10, last = 10, step = 10;
};

/// Prints the table that PyLops prints with show=True, on the grid's rank 0: x[0] is X's element (0, 0) (NaN
/// where rank 0 does not hold it), norms are those of all columns together: r1norm ‖B − AX‖, r2norm with
/// damping √(‖B − AX‖² + D²‖X‖²). `out` must outlive the solve.
GRIDLOPS_EXPORT std::shared_ptr<SolveObserver> print_table(std::ostream& out, TableRows rows = {});

}  // namespace gridlops
