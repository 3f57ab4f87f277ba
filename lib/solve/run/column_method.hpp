// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "dist/describe_layout.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/solve/weights.hpp"
#include "solve/option_checks.hpp"
#include "solve/problem_scale.hpp"
#include "solve/run/method_state.hpp"
#include "solve/run/verdicts.hpp"

namespace gridlops {

template <Scalar T>
class ColumnRun;

/// The norms of all columns, in their places, computed from their definitions.
struct TrueNorms {
  ColumnScalars residual;  ///< ‖b − Ax‖
  ColumnScalars normal;    ///< ‖Aᴴ(b − Ax) − D²x‖
  ColumnScalars tested;    ///< the norm that the tolerance applies to
  ColumnScalars x;
  // For a test of the method's own: the reference of the tolerance, and the tested norm that rounding alone
  // produces.
  ColumnScalars reference = {}, rounding = {};
  // For a method that follows quadrature: what the gradient, or the residual of which it is formed, has
  // drifted by in the recurrence.
  ColumnScalars gradient_drift = {}, residual_drift = {};
  ColumnScalars quadrature = {};  ///< for a method that computes it from x: ColumnReport::quadrature
};

/// The properties of a method that do not depend on its operands.
struct MethodTraits {
  const char* name;
  /// The test that the tolerance applies to. A method with its own test is not scaled.
  ToleranceTest test;
  Feature features = Feature::none;
  /// For a method's own test: the tested norm that is acceptable whatever its reference.
  double absolute_tolerance = 0;
  /// Whether x may already be the solution at the start.
  bool judges_start = true;
  /// Whether the recurrence differs from b − Ax only by rounding. False if the recurrence relies on the
  /// orthogonality of vectors, which is soon lost.
  bool follows_residual = true;
  /// Whether no iterate has a longer residual than the one before, in exact arithmetic.
  bool residual_never_rises = false;
  /// In words: everything besides A, B and options that the recurrence depends on.
  std::string parameters = {};
};
/// The traits of a solver of the table.
inline MethodTraits traits_of(Solver solver) {
  const SolverRow& row = row_of(solver);
  return {.name = row.name, .test = row.test, .features = row.features};
}

/// A solver that takes one step for all active columns at once. It computes with the variables that it names
/// in describe(). ColumnRun calls it; it asks the run for B and for sums, and reports the norms to it.
/// Reasons: docs/decisions/0015-a-solver-is-a-page.md.
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

  /// Chooses values for options left unset (collective over the grid). The default does nothing.
  virtual void complete(SolveOptions&) {}
  /// ‖diag(w) A‖ or more for weights up to this, for a method with its own test that knows it after
  /// complete(); else 0.
  virtual double norm_of_unscaled(double /*largest_weight*/) const { return 0; }
  /// Multiplies A by 2^power from now on, for blocks with at most these columns (collective over the grid).
  virtual void scale_operator(int power, const Partition& columns) { A.set_power(power, columns); }
  /// Weighs the rows of A, which then is another operator for each column: see ScaledOperator.
  void set_weights(const ConstDistMatrix<T>& W, const ActiveColumns& places) { A.set_weights(W, places); }

  /// Describes its matrices and scalars to the state.
  virtual void describe(MethodState<T>& state) = 0;

  /// Begins with all columns, from the current x, and sets all their norms and references. The run may then
  /// choose other powers of two, and let the method begin once more.
  virtual void start(ColumnRun<T>& run) = 0;
  /// Makes one iteration of the active columns, and sets their norms. If run.ends() after the first sums,
  /// returns without changing x.
  virtual void iterate(ColumnRun<T>& run) = 0;
  /// Computes the norms. All columns are in their places.
  virtual TrueNorms true_norms(ColumnRun<T>& run) = 0;

  // For SolveOptions::guard. These use only scratch matrices.

  /// Computes b − Ax of the active columns, and returns its distance from the recurrence: ‖b − Ax − r‖, or
  /// the difference of norms if the method has no r. x and r have not changed since an iteration.
  virtual ColumnScalars residual_gap(ColumnRun<T>& run) = 0;
  /// Another quantity that is zero up to rounding right after an iteration, on the scale of the residual. The
  /// default returns nothing.
  virtual ColumnScalars direction_gap(ColumnRun<T>& run);

  /// Restarts from the current x, after true_norms(). All columns are in their places.
  virtual void restart(ColumnRun<T>&) {}

 protected:
  ScaledOperator<T> A;

 private:
  const MethodTraits traits_;
};

/// Adds the layouts of B and X, and the options that control collective behaviour, to an agreement. Throws
/// UsageError if X shares memory with B, because it would overwrite B.
template <Scalar T>
void describe_problem(Agreement& agreement, const ConstDistMatrix<T>& B, const ConstDistMatrix<T>& X,
                      const SolveOptions& options);

/// Makes a method, checks its arguments, and lets all ranks agree on them (collective over the grid of B).
/// `make` returns the method, and adds to the agreement everything that is in neither its parameters nor the
/// options. Invalid arguments throw ShapeError or UsageError on all ranks before data are sent.
template <Scalar T>
std::unique_ptr<ColumnMethod<T>> begin_solve(
    const std::function<std::unique_ptr<ColumnMethod<T>>(Agreement&)>& make, const ConstDistMatrix<T>& B,
    const ConstDistMatrix<T>& X, const SolveOptions& options);

/// The earlier work that a solve continues from.
template <Scalar T>
struct SolvedBefore {
  /// The right-hand side to use in place of B, while references still come from B: B − AX₀ if X is a
  /// correction of X₀. Null: B.
  const ConstDistMatrix<T>* residuals = nullptr;
  /// The report of an earlier solve with the same operator, from which this one continues: the iteration
  /// count goes on, and ‖A‖ is known from it. Null: none.
  const SolveReport* report = nullptr;
  /// The state of an earlier call with the same method, whose memory this call reuses. Null: the call uses
  /// its own state.
  MethodState<T>* state = nullptr;
  /// The most that ‖A‖ may count in bounds of rounding, where the operator has rows of damping below A's.
  double largest_norm = std::numeric_limits<double>::infinity();
};

/// The weights of a solve, and their range for each column.
template <Scalar T>
struct RowWeights {
  const ConstDistMatrix<T>& W;
  std::vector<WeightRange> ranges;
};

/// Runs the method made by begin_solve() on B, batch by batch (collective over the grid; an empty report on
/// idle ranks). options: those that the method was made with. Options left unset are chosen, and a restart
/// replaces computed values by saved ones. With weights B is weighted already.
template <Scalar T>
SolveReport solve_columns(ColumnMethod<T>& method, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                          SolveOptions& options, const SolvedBefore<T>& before = {},
                          const RowWeights<T>* weights = nullptr);

}  // namespace gridlops
