// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "base/numbers.hpp"
#include "gridlops/solve/solver.hpp"
#include "solve/run/column_state.hpp"
#include "solve/run/verdict.hpp"

namespace gridlops {

/// The values shared by all columns of a batch when they are judged.
struct VerdictRules {
  ToleranceTest test = ToleranceTest::gradient;
  ScalarType type = ScalarType::f64;
  double absolute_tolerance = 0;  ///< for the method's own test
  bool judges_start = true;       ///< false if x may be the solution only after an iteration
  bool x_is_correction = false;   ///< x corrects a guess that is not known here
  /// As MethodTraits have it.
  bool residual_never_rises = false;
  /// The most that ‖A‖ may count in bounds of rounding.
  double largest_norm = std::numeric_limits<double>::infinity();
  double epsilon = 0;     ///< of the elements' type
  Index longest_sum = 1;  ///< the number of terms of a dot product in a product with A or Aᴴ
};

/// A tested norm that is computed from its definition, and what tells how far the recurrence's gradient is
/// off.
struct RecomputedNorm {
  double norm = 0;
  double gradient_drift = 0;  ///< the distance of both gradients, or of residuals for a definite A, if known
  double residual_drift =
      0;  ///< the distance of both residuals b − Ax, from which a method forms its gradient
  std::optional<double> quadrature{};  ///< if it is computed, too
};

/// Holds the columns of a batch, and knows which of them take part. verdict() decides whether a column is
/// solved. The other reasons to end are facts of the iteration.
class Verdicts {
 public:
  /// numbers: the columns' numbers in B.
  Verdicts(const VerdictRules& rules, const SolveOptions& options, const std::vector<Index>& numbers);

  ColumnState& operator[](Index number) { return columns_[at(number)]; }
  const ColumnState& operator[](Index number) const { return columns_[at(number)]; }
  std::vector<ColumnState>& all() { return columns_; }
  const std::vector<ColumnState>& all() const { return columns_; }
  /// A column with its norms in the original units of A and B.
  ColumnState reported(Index number) const { return (*this)[number].in_given_units(rules_.test); }

  /// The norms of the two tests of ToleranceTest::backward_error, which have no units.
  BackwardErrors backward_errors(Index number) const;

  /// From now on, multiplies A, D and this column of B by these powers of two.
  void set_scale(Index number, const ColumnScale& scale);

  /// Returns γ/δ, the step of conjugate gradients, or 0 for a column that has no step; such a column gets a
  /// reason to end.
  double step(ColumnState& column, double gamma, double delta, bool fits_type) const;
  /// Follows the Gauss-Radau quadrature of a step α of conjugate gradients from a gradient to the next one,
  /// which is `ratio` times as long when squared: with G₀ = 1/μ,
  ///
  ///   gᴴM⁻¹g ≤ G‖g‖²,    G ← (G − α)/(μ(G − α) + ratio)
  ///
  /// (Meurant, Tichý: On computing quadrature-based bounds for the A-norm of the error in conjugate
  /// gradients, Numer. Algorithms 62, 2013). The column keeps μG.
  void follow_quadrature(ColumnState& column, double step, double ratio) const;
  /// Gives a reason to a column that ends after this iteration. `converged` and `stagnated` are only claims
  /// at this point; verify() confirms or rejects them.
  void test(ColumnState& column) const;
  /// Whether a column goes back to the best iterate: if it is corrupted, or has ended unsolved and x has
  /// diverged. In exact arithmetic the least-squares objective never increases, and the residuals of
  /// conjugate gradients exceed their minimum by at most a factor of √κ, where κ < 1/ε.
  bool goes_back_to_best(const ColumnState& column) const;
  /// Whether an unsolved column, whose norms come from their definitions, has an x that is worse than x = 0:
  /// in least squares both the objective and the gradient, elsewhere the residual. For conjugate gradients,
  /// whose residuals may rise, x must be worse by the same factor of √κ, unless A has shown that it is not
  /// definite, or x is longer than any κ lets it be, κ‖b‖/‖A‖.
  bool is_astray(const ColumnState& column) const;
  /// Gives the final verdict, once the norms have been recomputed from their definitions. Returns true if the
  /// column continues: it claimed to be solved but is not, or the guard has found it corrupted, for the first
  /// time in a row.
  bool verify(ColumnState& column, const RecomputedNorm& recomputed, bool stop_asked) const;
  /// A resumed run may have other limits and tolerances. Ends columns, or lets them continue, as the new ones
  /// would have done.
  void judge_anew(ColumnState& column) const;

 private:
  /// √μ of error_bounds().
  double root_of_least_eigenvalue(const ColumnState& column) const;
  /// Turns the quadrature of the recurrence's gradient g' into one of the recomputed g = g' + δ + Aᴴe. Since
  /// ‖M^-½Aᴴ‖ ≤ 1,
  ///
  ///   (gᴴM⁻¹g)^½ ≤ (g'ᴴM⁻¹g')^½ + ‖δ‖/√μ + ‖e‖.
  void add_drift(ColumnState& column, const RecomputedNorm& tested) const;
  /// Returns the verdict of judge(), where the method's norms tell whether x is the solution.
  std::optional<StopReason> verdict(const ColumnState& column, const Rounding& rounding) const;
  VerdictLimits limits_of(const ColumnState& column) const;

  const VerdictRules rules_;
  const SolveOptions& options_;
  std::vector<ColumnState> columns_;
  std::vector<double> given_damps_;
};

}  // namespace gridlops
