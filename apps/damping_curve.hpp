// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/communicator.hpp"
#include "gridlops/solver.hpp"

namespace gridlops::program {

/// How a damping is chosen from those of a sweep.
enum class DampingRule { none, lcurve, discrepancy, gcv };
/// The name as in --choose.
const char* name_of(DampingRule rule);

/// The solution with one damping.
struct CurvePoint {
  double damp = 0;
  double residual_norm = 0;  ///< ‖b − Ax‖
  double x_norm = 0;         ///< ‖x‖
  StopReason reason = StopReason::converged;
  /// For gcv an estimate of trace(I − A(AᴴA + D²I)⁻¹Aᴴ), NaN if there is none.
  double free_dimensions = std::numeric_limits<double>::quiet_NaN();
  /// What the rule compares: the curvature, or the GCV function. NaN where it is not known.
  double merit = std::numeric_limits<double>::quiet_NaN();
};

/// What a sweep found.
struct DampingCurve {
  DampingRule rule = DampingRule::none;
  double noise = 0;                ///< of discrepancy: the norm of the noise in b
  std::vector<CurvePoint> points;  ///< in the order of the columns
  std::optional<Index> chosen;
  std::string remark;  ///< why nothing was chosen, or what to think of the choice

  /// What merits are: "curvature" or "gcv"; empty if the rule has none.
  const char* merit_name() const;
  bool lacks_choice() const { return rule != DampingRule::none && !chosen; }
};

/// Chooses by the rule, and notes merits. Only columns that were solved count.
///
/// lcurve: the largest curvature of log ‖x‖ over log ‖b − Ax‖ (Hansen, O'Leary: The use of the L-curve in the
/// regularization of discrete ill-posed problems, SIAM J. Sci. Comput. 14, 1993). Between D and D + dD
/// ‖b − Ax‖² changes by −D² times what ‖x‖² does, so that the curvature follows from the first derivative of
/// ‖x‖² alone (Hansen: The L-curve and its use in the numerical treatment of inverse problems, 2001, eq. 14),
/// which is taken by differences of neighbours. D > 0, and the ends have none.
///
/// discrepancy: the largest D with ‖b − Ax‖ ≤ noise (Morozov 1966).
///
/// gcv: the smallest ‖b − Ax‖²/trace(I − A(AᴴA + D²I)⁻¹Aᴴ)² (Golub, Heath, Wahba: Generalized
/// cross-validation as a method for choosing a good ridge parameter, Technometrics 21, 1979). D > 0.
void choose_damping(DampingCurve& curve);

/// The curve as a table, a line for each damping, with the choice.
std::string curve_text(const DampingCurve& curve);

/// Writes the curve as CSV, unless the path is empty (collective). Throws OutputError on all ranks.
void write_curve(Communicator& world, const std::string& path, const DampingCurve& curve);

}  // namespace gridlops::program
