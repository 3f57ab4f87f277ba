// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "gridlops/solve/solver.hpp"

namespace gridlops {

/// The norms of one column. While it iterates they are those of the recurrence; in the end they are computed
/// from their definitions.
struct ColumnNorms {
  double tested_norm = 0;    ///< of what the tolerance is for
  double reference = 0;      ///< what the tolerance is relative to: a norm of the data, whatever the guess
  double residual_norm = 0;  ///< ‖b − Ax‖, for the test of the residual ‖b − Ax − D²x‖
  double data_norm = 0;      ///< ‖b‖
  double x_norm = 0;         ///< ‖x‖
  double operator_norm = 0;  ///< ‖A‖ as far as it is known, from below
  double condition = 0;      ///< cond(A) as far as it is known; 0 for methods that do not estimate it
  double damp = 0;           ///< D
  double rounding_norm = 0;  ///< of the method's own test: what rounding alone makes of the tested norm

  bool finite() const;
  /// √(‖b − Ax‖² + D²‖x‖²), the square root of what least squares minimise.
  double damped_residual_norm() const;
};

/// What a verdict compares the norms of one column with.
struct VerdictLimits {
  ToleranceTest test = ToleranceTest::gradient;
  double tolerance = 0;           ///< T
  double absolute_tolerance = 0;  ///< of the method's own test
  double atol = 0, btol = 0;      ///< of the test of the backward error
  bool x_is_correction = false;   ///< of a guess: the norm of their sum, which that test is for, is not known
  double epsilon = 0;             ///< of the elements' type
};

/// The relative errors of norms, as they were computed.
struct Rounding {
  double of_residual = 0;
  double of_gradient = 0;  ///< beside ‖A‖(‖b‖ + ‖A‖‖x‖); 0 while the gradient comes from a recurrence
};

/// Judges whether x solves the problem: returns `converged` if the norms meet the tolerance, `stagnated` if
/// they are what rounding makes of a solution, `non_finite` if one is not a number, and nothing otherwise.
///
/// Rounding keeps ‖Aᴴr − D²x‖ from falling below a few ε(‖A‖‖r‖ + D²‖x‖): such an x minimises the problem of
/// an A that differs by a few ε‖A‖ (Stewart: Research, development, and LINPACK, 1977). An x with ‖r‖ of a
/// few ε‖A‖‖x‖ solves the equations of such an A. A gradient that is computed anew from x is not known better
/// than to ε‖A‖(‖b‖ + ‖A‖‖x‖).
///
/// All three hold for an x that has exploded, too. So the first must be no worse than x = 0, the second must
/// explain b to half of its digits, and the third must have fallen by as much.
std::optional<StopReason> judge(const ColumnNorms& norms, const VerdictLimits& limits,
                                const Rounding& rounding);

/// Whether rounding keeps a recurrence from bringing x closer to a solution, whatever x is. It may begin anew
/// from x, with a residual that is computed from it.
bool is_exhausted(const ColumnNorms& norms, const VerdictLimits& limits);

}  // namespace gridlops
