// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "solve/run/column_state.hpp"

namespace gridlops {

/// Bounds the difference between x and the recurrence of a column. In exact arithmetic r = b − Ax in every
/// iteration. In k iterations, rounding separates them by a few εk(‖A‖ max ‖x‖ + ‖r₀‖) (Greenbaum: Estimating
/// the attainable accuracy of recursively computed residual methods, SIAM J. Matrix Anal. Appl. 18, 1997; van
/// der Vorst, Ye: Residual replacement strategies for Krylov subspace iterative methods for the convergence
/// of true residuals, SIAM J. Sci. Comput. 22, 2000), times the factor by which rounding of a product exceeds
/// ε‖A‖‖x‖: about √m for sums of m terms (Higham, Mary: A new approach to probabilistic rounding error
/// analysis, SIAM J. Sci. Comput. 41, 2019).
///
/// ‖A‖ is estimated before the iterations, because a fault may make them find a norm that A does not have.
/// Reasons: docs/decisions/0031-guard.md.
class Guard {
 public:
  /// A guard that is off.
  Guard() = default;
  /// every: iterations between checks. norm_A: a lower estimate, not finite if A is not. longest_sum: the
  /// number of terms of a dot product in a product with A or Aᴴ.
  Guard(Index every, double norm_A, double epsilon, Index longest_sum);

  bool is_on() const { return every_ > 0; }
  bool is_due(Index iteration) const { return is_on() && iteration % every_ == 0; }
  /// The estimate of diag(w) A of this column.
  double norm_A(const ColumnState& column) const;

  /// The bound, depending on whether the method follows b − Ax. LSQR and LSMR have no r, but their norms stay
  /// within the same bound. For methods that do not follow b − Ax, √ε(‖A‖ max ‖x‖ + ‖r₀‖) is more than was
  /// ever observed while κ < 1/ε.
  double largest_gap(const ColumnState& column, bool follows_residual) const;
  /// More than any method's ‖A‖ can be after these iterations, even if it is a Frobenius norm of k columns.
  double largest_norm(const ColumnState& column) const;

 private:
  double norm_with_damping(const ColumnState& column) const;

  Index every_ = 0;
  double norm_A_ = 0, epsilon_ = 0, rounding_of_sums_ = 0;
};

}  // namespace gridlops
