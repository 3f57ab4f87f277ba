// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "solve/column_run.hpp"

namespace gridlops {

/// Its square is as far above the smallest normal number as 1 is above ε.
inline constexpr double smallest_safe_norm = 0x1p-485;

/// A solver that takes one step for all active columns at once, with scalars of its own for each. It keeps
/// its vectors and scalars for one batch at a time; ColumnRun does the rest.
template <Scalar T>
class ColumnMethod {
 public:
  virtual ~ColumnMethod() = default;

  virtual const char* name() const = 0;
  virtual const LinearOperator<T>& A() const = 0;

  /// Takes all memory that the method needs, for the columns of a batch, before either start() or the return
  /// to a saved state: all ranks throw what one throws here, and what is taken later may fail on one rank
  /// alone. What lasting() gives need not be taken here. Sends nothing.
  virtual void prepare(ColumnRun<T>&) {}

  /// Begins with all columns, from the x that is there (zero unless there is an initial guess). Sets every
  /// column's norms and reference.
  virtual void start(ColumnRun<T>& run, bool from_zero) = 0;

  /// One iteration of the active columns: x, and the norms in their states; sets a reason where the method
  /// itself sees one. False, with x untouched, if reduce() told that the end was asked for.
  virtual bool iterate(ColumnRun<T>& run) = 0;

  /// Views of what lasts from one iteration to the next, besides x, of `columns`: it follows the columns when
  /// these change places.
  virtual std::vector<NamedMatrix<T>> lasting(const Partition& columns) = 0;
  /// The same of what lasts and belongs to no column alone.
  virtual std::vector<NamedMatrix<T>> shared() { return {}; }
  /// The numbers that last, besides those in the columns' states. They tell how wide the shared matrices are.
  virtual void visit(StateArchive& archive) = 0;
  /// What the recurrence depends on besides A and B, in words.
  virtual std::string parameters() const = 0;

  virtual bool meets_tolerance(const ColumnState& column, double tolerance) const {
    return column.tested_norm <= tolerance * column.reference;
  }

  /// Whether norms of the start are so small that squares of them, or of what they are to fall to, may have
  /// left the range of double precision.
  virtual bool starts_too_small(const ColumnState& column) const {
    return column.reference < smallest_safe_norm || column.residual_norm < smallest_safe_norm;
  }

  /// Whether the column is as accurate as rounding lets this method get.
  virtual bool at_rounding_level(const ColumnState& column) const = 0;

  /// Whether what is tested falls fast enough that rounding must be the cause if for long it has not.
  virtual bool rounding_ends_descent() const { return true; }

  virtual bool beyond_condition_limit(const ColumnState&) const { return false; }

  /// Adds ‖b − Ax‖², ‖Aᴴ(b − Ax) − D²x‖², the square of what is tested and ‖x‖² to the sums, from their
  /// definitions, for all columns in their places.
  virtual void add_final_norms(ColumnRun<T>& run) = 0;

  /// Whether a column that claimed to have converged, and has not, may go on from where it is.
  virtual bool can_restart() const { return true; }
  /// Goes on from there, for all columns in their places.
  virtual void restart(ColumnRun<T>& run) = 0;
};

/// Throws ShapeError or UsageError, on all ranks, unless the arguments fit the method's operator and each
/// other.
template <Scalar T>
void check_solve_arguments(const ColumnMethod<T>& method, const ConstDistMatrix<T>& B, const DistMatrix<T>& X,
                           const SolveOptions& options);

/// Checks the arguments of a solver, and runs the method on B batch by batch (collective over the grid; an
/// empty report on idle ranks). Throws on all ranks before any communication.
template <Scalar T>
SolveReport solve_columns(ColumnMethod<T>& method, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                          const SolveOptions& options);

}  // namespace gridlops
