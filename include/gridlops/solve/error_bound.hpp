// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops {

/// What bounds errors, besides a report.
struct ErrorBoundOptions {
  PerColumn damp = 0;    ///< D ≥ 0, as it was solved with
  double sigma_min = 0;  ///< σ ≥ 0: no singular value of A is smaller; 0 if A has fewer rows than columns
  double frobenius_norm = 0;  ///< ‖A‖_F or more
  bool is_definite = false;  ///< the report is one of cg(): A is positive semidefinite, with eigenvalues ≥ σ
};

/// The most that each ‖x − x*‖ can be, where x* minimises ‖A x − b‖² + D²‖x‖² (collective over the grid; the
/// same on all members, and empty on idle ranks). With the recomputed gradient g = Aᴴ(b − Ax) − D²x and μ =
/// D² + σ² ≤ λ_min(AᴴA + D²I),
///
///   ‖x − x*‖ ≤ √Q ‖g‖/μ + R,    R = u ((‖A‖_F‖r‖ + D²‖x‖)/μ + (‖A‖_F‖x‖ + ‖b‖)/√μ),    r = b − Ax
///
/// since x* − x = M⁻¹g with M = AᴴA + D²I, and ‖M⁻¹g‖² ≤ gᴴM⁻¹g/μ. Q ≤ 1 is ColumnReport::quadrature if the
/// report is of a solve with this σ, else 1; it is below 1 in reports of cgls(), lsqr(), lsmr() and cg(). R
/// is a model of what rounding hides in g, with u = ε/2: products with A are off by u‖A‖_F times the norm of
/// the vector. Errors of sums of both signs stay below (Higham, Mary: SIAM J. Sci. Comput. 41, 2019); a proof
/// would need the number of terms in front. Infinite if μ = 0, and NaN if norms are. A bound speaks of the
/// problem, whatever the verdict on the column.
///
/// For cg(), where x* solves M x = b: with M = A + D²I, g = b − Mx and μ = D² + σ ≤ λ_min(M),
///
///   ‖x − x*‖ ≤ √Q ‖g‖/μ + u ((‖A‖_F + D²)‖x‖ + ‖b‖)/μ.
///
/// report and X: from a solver with Feature::error_bound, which was given B. Throws ShapeError, on all
/// members, if they do not match, and UsageError if a number is negative or not finite, or the members
/// disagree.
template <Scalar T>
GRIDLOPS_EXPORT std::vector<double> error_bounds(const SolveReport& report, const ConstDistMatrix<T>& B,
                                                 const ConstDistMatrix<T>& X,
                                                 const ErrorBoundOptions& options);

}  // namespace gridlops
