// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gridlops/dist/column_arithmetic.hpp"
#include "solve/checkpoint/saved_batch.hpp"
#include "solve/run/batch_scale.hpp"
#include "solve/run/guard_checks.hpp"

namespace gridlops {

/// The norms of the active columns that a method knows after an iteration. Empty fields leave the old values
/// unchanged.
struct KnownNorms {
  ColumnScalars tested = {};    ///< the norm that the tolerance applies to: the gradient, for CG the residual
  ColumnScalars residual = {};  ///< ‖b − Ax‖, as the recurrence has it
  ColumnScalars x = {};         ///< ‖x‖
  ColumnScalars A = {};         ///< the best known lower bound of ‖A‖
  ColumnScalars damped_A = {};  ///< the same of [A; D·I], where the method's test refers to it
  ColumnScalars condition = {};   ///< the best known estimate of cond(A)
  ColumnScalars reference = {};   ///< the reference of the tolerance
  ColumnScalars data = {};        ///< ‖b‖
  ColumnScalars objective = {};   ///< the objective, for methods with a penalty
  ColumnScalars rounding = {};    ///< the tested norm that rounding alone produces, where the method knows it
  ColumnScalars quadrature = {};  ///< for a method that computes it from x: ColumnReport::quadrature
};

/// The square roots, or 0 where rounding has made a square negative. NaN stays NaN.
inline ColumnScalars root(ColumnScalars squares) {
  for (double& square : squares.values()) square = square < 0 ? 0 : square;
  return sqrt(squares);
}

/// One number for each of some columns, or one for all, so that arithmetic with 0 for all reads nothing. It
/// serves as an operand of column arithmetic, but is a value.
class ColumnFactors {
 public:
  explicit ColumnFactors(double all) : all_(all) {}
  explicit ColumnFactors(ColumnScalars each) : each_(std::move(each)) {}
  operator ColumnOperand() const { return each_ ? ColumnOperand(*each_) : ColumnOperand(all_); }

 private:
  double all_ = 0;
  std::optional<ColumnScalars> each_;
};

/// One batch of right-hand sides, run through a method. A column that ends is frozen at once and leaves the
/// products. When all have ended, the run recomputes the norms from their definitions. Columns that wrongly
/// claimed to be solved continue from there, up to the iteration limit.
/// Reasons: docs/decisions/0005-methods-and-runs.md.
template <Scalar T>
class ColumnRun {
 public:
  ColumnRun(const Solve<T>& solve, const ColumnBatch& columns);
  /// Begins from zero, from a guess, or from a saved checkpoint.
  void solve();
  /// Begins from the current x, for columns that have been solved before.
  void solve_again();

  // Methods call these. Entry k of scalars belongs to active column k.

  /// Y ← b of the active columns in their current places, for quantities that refer to the data.
  void copy_data(DistMatrix<T>& Y) const { copy_columns_of(batch_.B, Y); }
  /// Y ← the right-hand side of the active columns: b, or b − Ax₀ if x is a correction of x₀.
  void copy_right_hand_side(DistMatrix<T>& Y) const {
    copy_columns_of(batch_.residuals ? *batch_.residuals : batch_.B, Y);
  }
  /// Y ← the active columns, in their current places, of a matrix with the columns of the whole B.
  void copy_operand(const ConstDistMatrix<T>& of_all, DistMatrix<T>& Y) const {
    copy_columns_of(of_all.column_slice(batch_.columns.first, batch_.columns.sizes), Y);
  }
  /// Whether the first residual is b itself.
  bool begins_from_data() const { return !batch_.begins_from_x && !batch_.residuals; }
  /// D and D² of the active columns.
  ColumnFactors damping() const;
  ColumnFactors squared_damping() const;
  Index active_count() const { return batch_.block.count(); }
  /// The number of active column k within the batch, its number in the whole of B, and its state.
  Index number(Index k) const { return batch_.number(k); }
  Index right_hand_side(Index k) const { return batch_.right_hand_side(k); }
  ColumnState& column(Index k) { return batch_.column(k); }
  const ColumnState& column(Index k) const { return batch_.column(k); }

  /// Computes sums over all rows in one reduction: const auto [qq, pp] = run.sum(norm2(q), norm2(p)). The
  /// first reduction of an iteration also distributes requests made on single ranks.
  template <class... Terms>
  auto sum(const Terms&... terms) {
    std::vector<double> none;
    return sum_with(none, terms...);
  }
  /// Computes the sums, and also replaces these numbers by their sums over the ranks.
  template <class... Terms>
  auto sum_with(std::vector<double>& numbers, const Terms&... terms) {
    saved_.add_flags(numbers);
    auto sums = sums_.with(numbers, terms...);
    saved_.take_flags(numbers);
    return sums;
  }
  /// Sums any number of terms.
  std::vector<ColumnScalars> sums_of(std::span<const ColumnSum<T>> terms) {
    std::vector<double> numbers;
    saved_.add_flags(numbers);
    std::vector<ColumnScalars> sums(terms.size());
    sums_.reduce(terms, sums, numbers);
    saved_.take_flags(numbers);
    return sums;
  }
  /// Whether a rank has requested the end. If so, all columns end here with their current x.
  bool ends() const { return batch_.solve.log.stop_is_asked(); }

  /// Returns α = γ/δ, and 0 for columns that have no step and therefore end.
  ColumnScalars steps(const ColumnScalars& gamma, const ColumnScalars& delta);
  /// Sharpens the bounds of errors after these steps of conjugate gradients, from one gradient to the next,
  /// whose squared norms have these ratios. true_norms() then tells the drift.
  void follow_quadrature(const ColumnScalars& steps, const ColumnScalars& ratios);
  /// Raises ‖A‖ to at least these lower bounds.
  void raise_operator_norms(const ColumnScalars& from_below);
  /// Raises ‖[A; D·I]‖, to which the method's test refers.
  void raise_damped_operator_norms(const ColumnScalars& from_below);
  /// Sets the norms of the columns that did not end in this iteration.
  void set_norms(const KnownNorms& norms);
  /// The square root of norm2 − kD², where norm2 is ‖[A; D·I] v‖², summed over k unit vectors v. They are
  /// unit vectors to a few ε, so with D ≫ ‖A‖/√ε nothing is left.
  ColumnScalars without_damping(const ColumnScalars& norm2, Index vectors) const;
  /// (‖r‖² + D²‖x‖²)^½ from the recurrence, computed without cancellation.
  ColumnScalars damped_residual_norms() const;
  /// The power of two by which A is multiplied.
  int operator_power() const { return batch_.operator_power(); }
  /// Estimates of ‖A‖ for the active columns, if there is a guard.
  ColumnScalars norm_A() const { return guard_.norm_A(); }

 private:
  void run();
  void reserve();
  void start();
  bool leave_out_far_guesses();
  void take_exact_zeros();
  void iterate();
  bool verify();
  /// Ends columns whose x is smaller than the numbers of its type: 0 takes its place. Returns true if there
  /// is one.
  bool drop_vanished(const ColumnScalars& x_norms);
  void take_true_norms(Index column, const TrueNorms& norms);
  void replace_astray();
  void write_report();

  void begin_descents(const std::vector<char>& chosen);
  void keep_best(bool x_is_checked);
  void test_convergence();
  void end_iteration();
  void deflate(const std::function<bool(StopReason)>& which);
  void tell_observers(bool at_start);
  void copy_columns_of(const ConstDistMatrix<T>& B, DistMatrix<T>& Y) const;

  Batch<T> batch_;
  ColumnSums<T> sums_;
  BatchScale<T> scale_;
  GuardChecks<T> guard_;
  SavedBatch<T> saved_;
};

}  // namespace gridlops
