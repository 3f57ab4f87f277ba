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

/// The problem that a solver is about to solve.
struct SolveStart {
  std::string solver;
  Index rows = 0, cols = 0, nrhs = 0;
  ScalarType type = ScalarType::f64;
  double tolerance = 0, damp = 0;
  Index max_iterations = 0;
  int rank = 0;       ///< of this process in the grid
  Index batches = 1;  ///< solved one after the other
};

/// X after an iteration, readable while an observer is notified of that iteration. Columns have their numbers
/// in B, wherever they lie inside the solver. Columns of later batches still hold the values that the caller
/// gave.
class GRIDLOPS_EXPORT Iterate {
 public:
  /// places[c]: the position of this rank's column c in its block of X.
  template <Scalar T>
  Iterate(const ConstDistMatrix<T>& X, const std::vector<Index>& places)
      : type_(scalar_type_of<T>), X_(&X), places_(places) {}

  ScalarType type() const { return type_; }

  // Not collective. These throw UsageError unless T is type().

  /// This rank's rows of column j, in the memory of the grid's backend; 0 × 0 if other ranks hold the column.
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

/// The information that an observer gets. The spans have one entry per right-hand side, in the order of B.
/// Columns that have ended keep their last known value.
struct IterationInfo {
  Index iteration = 0;
  bool at_start = false;  ///< at the start of a batch or a restart, before any iteration
  Index active_columns = 0;
  std::span<const double> residual_norms;  ///< ‖b − Ax‖, for cg() ‖b − Ax − D²x‖, as the recurrence has it
  std::span<const double> first_residual_norms;  ///< at the start of the batch, even after a restart
  std::span<const double> tested_norms;  ///< the norm compared with the tolerance, relative to its reference
  /// For lsqr() and lsmr(), whose columns have two tests instead: ‖r‖/(‖b‖ + ‖A‖‖x‖) and ‖Aᴴr‖/(‖A‖‖r‖), with
  /// r and A of the damped system. Where atol is btol, a column has converged when either is at most that.
  /// Empty for other solvers.
  std::span<const double> residual_tests, gradient_tests;
  std::span<const double> x_norms;     ///< ‖x‖
  std::span<const double> objectives;  ///< ½‖b − Ax‖² + λP(x), for solvers with a penalty P; else 0
  const Iterate& iterate;              ///< X; for preconditioned_inversion(), Z
};

/// Watches a running solver: SolveOptions::observers. Solvers call the observers one after the other on every
/// member of the grid, in the same order on all. An observer may communicate over the grid if all members
/// make the same calls. If it throws on one member, the solver throws on all at the next synchronisation
/// point. Members that wait for that one inside the observer throw, too, once they learn of it.
/// Reasons: docs/decisions/0008-observers.md.
class GRIDLOPS_EXPORT SolveObserver {
 public:
  virtual ~SolveObserver();

  /// Called before the solver starts.
  virtual void start(const SolveStart&) {}
  /// Called at the start of every batch (iteration 0), where a restart continues, and after each iteration.
  /// If it returns true on any rank, all columns, including those of later batches, end with user_stop at the
  /// next synchronisation point.
  virtual bool step(const IterationInfo&) { return false; }
  /// Called with the final verdicts.
  virtual void end(const SolveReport&) {}

 protected:
  SolveObserver() = default;
};

/// Calls `function` after each iteration, and returns its result from step().
GRIDLOPS_EXPORT std::shared_ptr<SolveObserver> after_each_iteration(
    std::function<bool(const IterationInfo&)> function);

/// Records ‖x − x*‖/‖x*‖ of every column, for a known X*, at the start of each batch and after each
/// iteration. Plot it to see when the solver starts to overfit the data. Each record takes one reduction.
template <Scalar T>
class GRIDLOPS_EXPORT ModelErrors final : public SolveObserver {
 public:
  /// truth: X*, with the layout of X; its memory must outlive this object. Collective over its grid; throws
  /// OutOfMemory on all ranks.
  explicit ModelErrors(const ConstDistMatrix<T>& truth);
  bool step(const IterationInfo& info) override;

  /// One entry per record, on all members of the grid.
  const std::vector<ColumnScalars>& errors() const { return errors_; }

 private:
  const ConstDistMatrix<T> truth_;
  DistMatrix<T> difference_;
  ColumnSums<T> sums_;
  std::vector<ColumnScalars> errors_;
};

/// Ends all columns once ‖B − AX‖, one norm over all columns, has fallen to `ratio` times its initial value;
/// after a restart this is still the value at the original start. The solver throws UsageError if there are
/// several batches, since columns of later ones have not begun. SolveOptions::residual_ratio acts on each
/// column separately.
GRIDLOPS_EXPORT std::shared_ptr<SolveObserver> stop_at_cost_ratio(double ratio);

/// Ends all columns as soon as one of them is not finite. Without it only that column ends.
GRIDLOPS_EXPORT std::shared_ptr<SolveObserver> stop_on_non_finite();

/// Which iterations have a row in the table: the first ones, the last ones before the limit, every `step`-th
/// one between them, and always the final one.
struct TableRows {
  Index first = 10, last = 10, step = 10;
};

/// Prints PyLops' show=True table on the grid's rank 0. x[0] is X's element (0, 0), or NaN if rank 0 does not
/// hold it. Norms cover all columns together: r1norm is ‖B − AX‖, and r2norm is √(‖B − AX‖² + D²‖X‖²). `out`
/// must outlive the solve.
GRIDLOPS_EXPORT std::shared_ptr<SolveObserver> print_table(std::ostream& out, TableRows rows = {});

}  // namespace gridlops
