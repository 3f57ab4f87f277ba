// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops {

/// How to choose a damping from a sweep (SolveOptions::damp) whose columns are one right-hand side.
enum class DampingRule {
  none,
  /// The largest curvature of log ‖x‖ over log ‖b − Ax‖ (Hansen, O'Leary: The use of the L-curve in the
  /// regularization of discrete ill-posed problems, SIAM J. Sci. Comput. 14, 1993). From D to D + dD, the
  /// change of ‖b − Ax‖² is −D² times the change of ‖x‖². The curvature therefore follows from the first
  /// derivative of ‖x‖² alone (Hansen: The L-curve and its use in the numerical treatment of inverse
  /// problems, 2001, eq. 14), computed here by differences of neighbours. D > 0; the two ends have no
  /// curvature.
  lcurve,
  /// The largest D with ‖b − Ax‖ ≤ the norm of the noise (Morozov 1966).
  discrepancy,
  /// The smallest ‖b − Ax‖²/trace(I − A(AᴴA + D²I)⁻¹Aᴴ)² (Golub, Heath, Wahba: Generalized cross-validation
  /// as a method for choosing a good ridge parameter, Technometrics 21, 1979). D = 0 counts unless A then
  /// fits any data, which leaves 0/0; the remark says so.
  gcv
};
/// The name used by --choose: "lcurve", …
GRIDLOPS_EXPORT const char* name_of(DampingRule rule);

/// The solution for one damping.
struct CurvePoint {
  double damp = 0;
  double residual_norm = 0;  ///< ‖b − Ax‖
  double x_norm = 0;         ///< ‖x‖
  StopReason reason = StopReason::converged;
  /// For gcv, trace(I − A(AᴴA + D²I)⁻¹Aᴴ), or an estimate; NaN if there is none.
  double free_dimensions = std::numeric_limits<double>::quiet_NaN();
  /// The value that the rule compares: the curvature, or the GCV function. NaN if unknown.
  double merit = std::numeric_limits<double>::quiet_NaN();
  /// The most that ‖x − x*‖ can be, see error_bounds(); NaN where it was not asked for.
  double error_bound = std::numeric_limits<double>::quiet_NaN();
};

/// The result of a sweep.
struct DampingCurve {
  DampingRule rule = DampingRule::none;
  double noise = 0;                ///< for discrepancy: the norm of the noise in b
  std::vector<CurvePoint> points;  ///< in the order of the columns
  std::optional<Index> chosen;     ///< the chosen column; none if the rule cannot choose
  std::string remark;              ///< why the rule chose nothing, or a caveat about the choice

  bool lacks_choice() const { return rule != DampingRule::none && !chosen; }
};

/// Applies the rule to the points again, and sets their merits. Considers only columns that were solved. Not
/// collective.
GRIDLOPS_EXPORT void choose_damping(DampingCurve& curve);

/// Element `row` of a vector of ±1, the same on all ranks and in all runs. For gcv, append to the columns of
/// b as many columns as there are dampings, each equal to this vector, and list the dampings twice in damps.
GRIDLOPS_EXPORT double gcv_probe(Index row);

/// The curve of a sweep, with the choice (collective over the grid; the same on all members, and without
/// points on idle ranks). damps: one for each column of b. report and X: from a least-squares solver, or from
/// cg() for discrepancy. noise: for discrepancy. Throws ShapeError on all members if the columns of X or of
/// the report do not match damps, and UsageError if the members disagree, or a damping is negative or NaN.
///
/// For gcv the trace is estimated from the columns of gcv_probe(). A random z of independent ±1 has trace M =
/// E zᴴMz (Girard: A fast "Monte-Carlo cross-validation" procedure for large least squares problems with
/// noisy data, Numer. Math. 56, 1989; Hutchinson: A stochastic estimator of the trace of the influence matrix
/// for Laplacian smoothing splines, Commun. Statist. Simul. 18, 1989). With r = z − Ax of the damped solution
/// x for z, zᴴ(I − A(AᴴA + D²I)⁻¹Aᴴ)z = zᴴr = ‖r‖² + D²‖x‖², since Aᴴr = D²x. This is the minimum of the
/// objective, so the error of x enters squared. All D share one z, which keeps the curve smooth.
/// Reasons: docs/decisions/0032-sweeps.md.
template <Scalar T>
GRIDLOPS_EXPORT DampingCurve damping_curve(const std::vector<double>& damps, const SolveReport& report,
                                           const ConstDistMatrix<T>& X,
                                           DampingRule rule = DampingRule::lcurve, double noise = 0);

}  // namespace gridlops
