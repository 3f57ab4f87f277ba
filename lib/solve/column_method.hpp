// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/column_arithmetic.hpp"
#include "solve/method_state.hpp"
#include "solve/verdicts.hpp"

namespace gridlops {

template <Scalar T>
class ColumnRun;

/// Norms from their definitions, of all columns in their places.
struct TrueNorms {
  ColumnScalars residual;  ///< ‖b − Ax‖
  ColumnScalars normal;    ///< ‖Aᴴ(b − Ax) − D²x‖
  ColumnScalars tested;    ///< of what the tolerance is for
  ColumnScalars x;
};

/// A solver that takes one step for all active columns at once. It computes with what it names in describe(),
/// and asks the run for B, for sums, and for what becomes of the columns; ColumnRun calls it.
template <Scalar T>
class ColumnMethod : public StoppingTests {
 public:
  virtual const char* name() const = 0;
  virtual const LinearOperator<T>& op() const = 0;
  /// What the recurrence depends on besides A and B, in words.
  virtual std::string parameters() const = 0;

  virtual void describe(MethodState<T>& state) = 0;

  /// Begins with all columns, from the x that is there; sets norms and references of all.
  virtual void start(ColumnRun<T>& run) = 0;
  /// One iteration of the active columns, and their norms. Returns, with x untouched, if run.ends() after the
  /// first sums.
  virtual void iterate(ColumnRun<T>& run) = 0;
  /// With all columns in their places.
  virtual TrueNorms true_norms(ColumnRun<T>& run) = 0;

  /// Whether a column that claimed to have converged, and has not, may go on from where it is.
  virtual bool can_restart() const { return true; }
  /// Goes on from there, after true_norms(), for all columns in their places.
  virtual void restart(ColumnRun<T>&) {}
};

/// Throws ShapeError or UsageError, on all ranks, unless the arguments fit the method's operator and each
/// other.
template <Scalar T>
void check_solve_arguments(const ColumnMethod<T>& method, const ConstDistMatrix<T>& B,
                           const ConstDistMatrix<T>& X, const SolveOptions& options);

/// Checks the arguments of a solver, and runs the method on B batch by batch (collective over the grid; an
/// empty report on idle ranks). Throws on all ranks before any communication.
template <Scalar T>
SolveReport solve_columns(ColumnMethod<T>& method, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                          const SolveOptions& options);

}  // namespace gridlops
