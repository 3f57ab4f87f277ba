// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dist/describe_layout.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "solve/option_checks.hpp"
#include "solve/problem_scale.hpp"
#include "solve/run/method_state.hpp"
#include "solve/run/verdicts.hpp"

namespace gridlops {

template <Scalar T>
class ColumnRun;

/// The norms of all columns, in their places, from their definitions.
struct TrueNorms {
  ColumnScalars residual;  ///< ‖b − Ax‖
  ColumnScalars normal;    ///< ‖Aᴴ(b − Ax) − D²x‖
  ColumnScalars tested;    ///< of what the tolerance is for
  ColumnScalars x;
  // Of a test of the method's own: what the tolerance is relative to, and what rounding makes of the norm.
  ColumnScalars reference = {}, rounding = {};
};

/// What holds for a method, whatever its operands.
struct MethodTraits {
  const char* name;
  /// What the tolerance is for. A method with a test of its own is not scaled.
  ToleranceTest test;
  Feature features = Feature::none;
  /// What the tested norm of a test of its own may be whatever its reference.
  double absolute_tolerance = 0;
  /// Whether x may be the solution at the start.
  bool judges_start = true;
  /// Whether rounding alone parts the recurrence from b − Ax. False where the recurrence rests on vectors
  /// that are orthogonal, which they are not for long.
  bool follows_residual = true;
  /// What the recurrence depends on besides A, B and options, in words.
  std::string parameters = {};
};
/// Those of a solver of the table.
inline MethodTraits traits_of(Solver solver) {
  const SolverRow& row = row_of(solver);
  return {.name = row.name, .test = row.test, .features = row.features};
}

/// A solver that takes one step for all active columns at once. It computes with what it names in describe().
/// ColumnRun calls it; it asks the run for B and for sums, and tells it the norms.
template <Scalar T>
class ColumnMethod {
 public:
  /// op must outlive this.
  ColumnMethod(const LinearOperator<T>& op, MethodTraits traits) : A(op), traits_(std::move(traits)) {}
  virtual ~ColumnMethod() = default;
  ColumnMethod(const ColumnMethod&) = delete;
  ColumnMethod& operator=(const ColumnMethod&) = delete;

  const LinearOperator<T>& op() const { return A.unscaled(); }
  const MethodTraits& traits() const { return traits_; }
  const char* name() const { return traits_.name; }

  /// Chooses what the options leave open (collective over the grid). By default nothing is left open.
  virtual void complete(SolveOptions&) {}
  /// Multiplies A by 2^power from now on, for blocks with at most these columns (collective over the grid).
  virtual void scale_operator(int power, const Partition& columns) { A.set_power(power, columns); }

  /// Names its matrices and scalars to the state.
  virtual void describe(MethodState<T>& state) = 0;

  /// Begins with all columns, from the x that is there, and sets norms and references of all. The run may
  /// choose other powers of two after that, and let the method begin once more.
  virtual void start(ColumnRun<T>& run) = 0;
  /// Makes one iteration of the active columns, and sets their norms. If run.ends() after the first sums, it
  /// returns with x untouched.
  virtual void iterate(ColumnRun<T>& run) = 0;
  /// Computes the norms. All columns are in their places.
  virtual TrueNorms true_norms(ColumnRun<T>& run) = 0;

  // For SolveOptions::guard. They use scratch matrices only.

  /// Computes b − Ax of the active columns, and returns how far the recurrence is from it: ‖b − Ax − r‖, or
  /// the difference of norms where the method has no r. x and r have not changed since an iteration.
  virtual ColumnScalars residual_gap(ColumnRun<T>& run) = 0;
  /// What else is zero but for rounding right after an iteration, on the scale of the residual; by default
  /// nothing.
  virtual ColumnScalars direction_gap(ColumnRun<T>& run);

  /// Begins anew from the x that is there, after true_norms(). All columns are in their places.
  virtual void restart(ColumnRun<T>&) {}

 protected:
  ScaledOperator<T> A;

 private:
  const MethodTraits traits_;
};

/// Names to an agreement how B and X lie, and the options that steer what ranks do together. Throws
/// UsageError where X shares memory with B, which would be lost.
template <Scalar T>
void describe_problem(Agreement& agreement, const ConstDistMatrix<T>& B, const ConstDistMatrix<T>& X,
                      const SolveOptions& options);

/// Makes a method, checks its arguments, and lets all ranks agree on them (collective over the grid of B).
/// `make` returns it, and names to the agreement what is not in its parameters or the options. What is wrong
/// throws ShapeError or UsageError on all ranks before data are sent.
template <Scalar T>
std::unique_ptr<ColumnMethod<T>> begin_solve(
    const std::function<std::unique_ptr<ColumnMethod<T>>(Agreement&)>& make, const ConstDistMatrix<T>& B,
    const ConstDistMatrix<T>& X, const SolveOptions& options);

/// What a solve goes on from.
template <Scalar T>
struct SolvedBefore {
  /// What the method has to solve for in place of B, while references are still those of B: B − AX₀ where X
  /// is sought as a correction of X₀. Null: B.
  const ConstDistMatrix<T>* residuals = nullptr;
  /// The report of a solve with the same operator from which this one goes on: iterations are counted on, and
  /// ‖A‖ is known from it. Null: there is none.
  const SolveReport* report = nullptr;
  /// The state of an earlier call with the same method, whose memory is taken again. Null: the call has a
  /// state of its own.
  MethodState<T>* state = nullptr;
};

/// Runs the method that begin_solve() has made on B batch by batch (collective over the grid; an empty report
/// on idle ranks). options: those that the method was made with; what they leave open is chosen, and at a
/// restart what was computed is replaced by what was saved.
template <Scalar T>
SolveReport solve_columns(ColumnMethod<T>& method, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                          SolveOptions& options, const SolvedBefore<T>& before = {});

}  // namespace gridlops
