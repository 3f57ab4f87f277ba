// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops {

/// What is about to be solved.
struct SolveStart {
  std::string solver;
  Index rows = 0, cols = 0, nrhs = 0;
  ScalarType type = ScalarType::f64;
  double tolerance = 0, damp = 0;
  Index max_iterations = 0;
  int rank = 0;       ///< of this process in the grid
  Index batches = 1;  ///< that are solved one after the other
};

/// X as it is after an iteration. It can be read while an observer is told of that iteration. Columns are
/// numbered as those of B, wherever they lie inside the solver. Columns of batches to come are as X was
/// given.
class GRIDLOPS_EXPORT Iterate {
 public:
  /// places[c]: where this rank's column c lies in its block of X.
  template <Scalar T>
  Iterate(const ConstDistMatrix<T>& X, const std::vector<Index>& places)
      : type_(scalar_type_of<T>), X_(&X), places_(places) {}

  ScalarType type() const { return type_; }

  // Not collective. Throw UsageError unless T is type().

  /// This rank's rows of column j, in the memory of the grid's backend; 0 × 0 where other ranks have it.
  template <Scalar T>
  MatrixView<const T> column(Index j) const;
  /// Y ← X, for a Y with the layout of X. On a GPU ordered, not finished, on return.
  template <Scalar T>
  void copy_to(DistMatrix<T>& Y) const;

  /// Element (i, j), on the host; NaN on ranks that do not hold it. Not collective.
  std::complex<double> element(Index i, Index j) const;

 private:
  template <Scalar T>
  const ConstDistMatrix<T>& matrix() const;

  ScalarType type_;
  const void* X_;
  const std::vector<Index>& places_;
};

/// What observers are told of. The spans have one entry per right-hand side, in the order of B, and the last
/// known value for columns that have ended.
struct IterationInfo {
  Index iteration = 0;
  bool at_start = false;  ///< of a batch, or of a restart: no iteration has been made
  Index active_columns = 0;
  std::span<const double> residual_norms;  ///< ‖b − Ax‖, for cg() ‖b − Ax − D²x‖, as the recurrence has it
  std::span<const double> first_residual_norms;  ///< at the start of the batch, also after a restart
  std::span<const double> tested_norms;  ///< what the tolerance is compared with, relative to its reference
  std::span<const double> x_norms;       ///< ‖x‖
  std::span<const double> objectives;    ///< ½‖b − Ax‖² + λP(x), of solvers with a penalty P; else 0
  const Iterate& iterate;                ///< X; for preconditioned_inversion() Z
};

/// Watches a solver at work: SolveOptions::observers. Called on every member of the grid, in the same order
/// on all, one after the other. It may communicate over the grid, if it does so alike on all members. What it
/// throws on one of them, the solver throws on all at the next synchronisation point; if it throws on one
/// while others wait for that one within it, they wait for ever.
class GRIDLOPS_EXPORT SolveObserver {
 public:
  virtual ~SolveObserver();

  /// Is called before anything is solved.
  virtual void start(const SolveStart&) {}
  /// Is called at the start of every batch (iteration 0), where a restart goes on, and after each iteration.
  /// If it returns true on any rank, all columns, also of batches to come, end at the next synchronisation
  /// point with user_stop.
  virtual bool step(const IterationInfo&) { return false; }
  /// Is called with the final verdicts.
  virtual void end(const SolveReport&) {}

 protected:
  SolveObserver() = default;
};

/// Calls a function after each iteration; returns what it returns, as step() does.
GRIDLOPS_EXPORT std::shared_ptr<SolveObserver> after_each_iteration(
    std::function<bool(const IterationInfo&)> function);

/// Keeps ‖x − x*‖/‖x*‖ of every column for an X* that is known, at the start of each batch and after each
/// iteration: what one plots to see where the data begin to be overfitted. One reduction for each.
template <Scalar T>
class GRIDLOPS_EXPORT ModelErrors final : public SolveObserver {
 public:
  /// truth: X*, lies as X; its memory must outlive this. Collective over its grid; OutOfMemory on all ranks.
  explicit ModelErrors(const ConstDistMatrix<T>& truth);
  bool step(const IterationInfo& info) override;

  /// One entry for each time, on all members of the grid.
  const std::vector<ColumnScalars>& errors() const { return errors_; }

 private:
  const ConstDistMatrix<T> truth_;
  DistMatrix<T> difference_;
  ColumnSums<T> sums_;
  std::vector<ColumnScalars> errors_;
};

/// Ends all columns once ‖B − AX‖, one norm of all columns, has fallen to this part of that at the start,
/// also after a restart. The solver throws UsageError if there are several batches, since columns of the
/// later ones have not begun. SolveOptions::residual_ratio is for each column by itself.
GRIDLOPS_EXPORT std::shared_ptr<SolveObserver> stop_at_cost_ratio(double ratio);

/// Ends all columns as soon as one of them is not finite. Without it that column ends alone.
GRIDLOPS_EXPORT std::shared_ptr<SolveObserver> stop_on_non_finite();

/// Which iterations have a row in the table: the first ones, the last ones before the limit, every so many
/// between, and always the last.
struct TableRows {
  Index first = 10, last = 10, step = 10;
};

/// Prints the table that PyLops prints with show=True, on the grid's rank 0. x[0] is X's element (0, 0), or
/// NaN if rank 0 does not hold it. Norms are those of all columns together: r1norm is ‖B − AX‖, and r2norm is
/// √(‖B − AX‖² + D²‖X‖²). `out` must outlive the solve.
GRIDLOPS_EXPORT std::shared_ptr<SolveObserver> print_table(std::ostream& out, TableRows rows = {});

}  // namespace gridlops
