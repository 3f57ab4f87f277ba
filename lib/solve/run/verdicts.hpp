// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "base/numbers.hpp"
#include "gridlops/solve/solver.hpp"
#include "solve/run/column_state.hpp"
#include "solve/run/verdict.hpp"

namespace gridlops {

/// What all columns of a batch have in common when they are judged.
struct VerdictRules {
  ToleranceTest test = ToleranceTest::gradient;
  double default_tolerance = 0;   ///< of columns that have none of their own
  double absolute_tolerance = 0;  ///< of the method's own test
  bool judges_start = true;       ///< false if x may be the solution only after an iteration
  bool x_is_correction = false;   ///< of a guess that is not known here
  double epsilon = 0;             ///< of the elements' type
  Index longest_sum = 1;          ///< terms of a dot product in a product with A or Aᴴ
};

/// Knows the columns of a batch, and which of them take part. judge() says whether a column is solved. The
/// other reasons to end are facts of the iteration.
class Verdicts {
 public:
  /// numbers: of the columns in B.
  Verdicts(const VerdictRules& rules, const SolveOptions& options, const std::vector<Index>& numbers);

  ColumnState& operator[](Index number) { return columns_[at(number)]; }
  const ColumnState& operator[](Index number) const { return columns_[at(number)]; }
  std::vector<ColumnState>& all() { return columns_; }
  const std::vector<ColumnState>& all() const { return columns_; }
  /// A column with its norms in the units of A and B as they were given.
  ColumnState reported(Index number) const { return (*this)[number].in_given_units(rules_.test); }

  /// Multiplies A, D and the columns of B by these powers of two from now on.
  void set_scale(Index number, const ColumnScale& scale);

  /// Returns γ/δ, the step of conjugate gradients; 0 for a column that has none, which gets a reason.
  double step(ColumnState& column, double gamma, double delta, bool fits_type) const;
  /// Gives a column that ends after this iteration a reason. `converged` and `stagnated` are claims then,
  /// which verify() confirms or not.
  void test(ColumnState& column) const;
  /// Whether a column goes back to the best iterate: if it is corrupted, or has ended unsolved where x has
  /// gone astray. In exact arithmetic what least squares minimise never rises, and the residuals of conjugate
  /// gradients rise above their least by √κ at most, where κ < 1/ε.
  bool goes_back_to_best(const ColumnState& column) const;
  /// Gives the final verdict, now that the norms are known from their definitions. True if the column goes
  /// on: it claimed to be solved, and is not; or the guard has found it corrupted, for the first time in a
  /// row.
  bool verify(ColumnState& column, double tested, bool stop_asked) const;
  /// Where a saved run goes on, limits and tolerances may be others now. Ends columns, or lets them go on, as
  /// these would have done.
  void judge_anew(ColumnState& column) const;

 private:
  VerdictLimits limits_of(const ColumnState& column) const;

  const VerdictRules rules_;
  const SolveOptions& options_;
  std::vector<ColumnState> columns_;
  std::vector<double> given_damps_;
};

}  // namespace gridlops
