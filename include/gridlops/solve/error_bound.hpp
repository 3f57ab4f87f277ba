// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/solve/solver.hpp"
#include "gridlops/solve/weights.hpp"

namespace gridlops {

/// The facts that error_bounds() needs besides a report.
struct ErrorBoundOptions {
  PerColumn damp = 0;    ///< D ≥ 0, as it was solved with
  double sigma_min = 0;  ///< σ ≥ 0: no singular value of A is smaller; 0 if A has fewer rows than columns
  double frobenius_norm = 0;  ///< ‖A‖_F or more; if it is not finite, nor are the bounds
  bool is_definite = false;  ///< the report is one of cg(): A is positive semidefinite, with eigenvalues ≥ σ
  /// ‖A − Ã‖₂ ≥ 0 or more, if the report is of a solve with an approximation Ã, such as a compressed matrix.
  /// 0: it is of one with A.
  double difference_norm = 0;
  /// Of a solve with weights what weigh() says of each column; B is then W∘B, which weigh() made. σ and ‖A‖_F
  /// are those of A, of which diag(w) A has min w and max w times as much. Empty: of one without.
  std::vector<WeightRange> weights{};
};

/// The most that each ‖x − x*‖ can be, where x* minimises ‖A x − b‖² + D²‖x‖² (collective over the grid; the
/// same on all members, and empty on idle ranks). With M = AᴴA + D²I, the gradient g = Aᴴ(b − Ax) − D²x and μ
/// = D² + σ² ≤ λ_min(M), x* − x = M⁻¹g. The bound is the sum of these terms, with r = b − Ax:
///
///   gradient     √Q ‖g‖/μ, since ‖M⁻¹g‖² ≤ gᴴM⁻¹g/μ. g is recomputed from its definition. Q ≤ 1 is
///                ColumnReport::quadrature if the report is of a solve with this σ, else 1; it is below 1 in
///                reports of cgls(), lsqr() and cg(), and contains the distance between g and the gradient of
///                the recurrence, which is computed
///   difference   ‖E‖ (‖r‖/μ + ‖x‖ min(1/√μ, 1/(2D))) for E = A − Ã, where g and r are those of Ã: the
///                gradient of A has Eᴴr − AᴴEx more, and ‖M⁻¹Aᴴ‖ is at most that minimum
///   products     u (‖A‖_F‖r‖/μ + (‖A‖_F‖x‖ + ‖b‖)/√μ): what rounding hides in g, with u = ε/2
///   damping      2u D²‖x‖/μ: the same of D²x
///
/// With weights the products round twice: 2u in their place.
///
/// The last two are a model: products with A are off by u‖A‖_F times the norm of the vector. Errors of sums
/// of both signs stay below (Higham, Mary: SIAM J. Sci. Comput. 41, 2019); a proof would need the number of
/// terms in front. Infinite if μ = 0, and NaN if norms are. A bound speaks of the problem, whatever the
/// verdict on the column. SolveOptions::error tests the same bound.
///
/// For cg(), where x* solves M x = b: with M = A + D²I, g = b − Mx and μ = D² + σ ≤ λ_min(M),
///
///   ‖x − x*‖ ≤ √Q ‖g‖/μ + u ((‖A‖_F + 2D²)‖x‖ + ‖b‖)/μ.
///
/// For bounded(), with the gap G = max gᵀd − μ‖d‖²/2 over all x + d in the box, by which at most f/2 can
/// fall, Q = 2μG/‖φ + β‖². With e, what rounding hides in g, and the energy E² = ‖Ad‖² + D²‖d‖² of d = x* −
/// x, E² ≤ gᵀd + eᵀd ≤ G + E²/2 + eᵀd. So E ≤ √(2G) + 2ω, where eᵀd ≤ ωE, and the bound has the terms above
/// with φ + β for g, and those of the difference and of rounding twice.
///
/// report and X: from a solver with Feature::error_bound, which was given B. Throws ShapeError, on all
/// members, if they do not match, and UsageError if a number is negative, if no matrix with this ‖A‖_F has
/// singular values that are all ≥ σ (σ > ‖A‖_F/√n), if is_definite and difference_norm are both given, if
/// only one of report and options has weights, or if the members disagree.
/// Reasons: docs/decisions/0052-error-bounds.md.
template <Scalar T>
GRIDLOPS_EXPORT std::vector<double> error_bounds(const SolveReport& report, const ConstDistMatrix<T>& B,
                                                 const ConstDistMatrix<T>& X,
                                                 const ErrorBoundOptions& options);

}  // namespace gridlops
