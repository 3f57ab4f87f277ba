// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <optional>

#include "gridlops/solve/error_bound.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops {

/// How many roundings count as one, where rounding might explain what is seen.
inline constexpr double a_few = 10;

/// The norms of one column. They come from the recurrence while the column iterates, and from their
/// definitions at the end.
struct ColumnNorms {
  double tested_norm = 0;    ///< the norm that the tolerance applies to
  double reference = 0;      ///< the reference of the tolerance: a norm of the data, whatever the guess
  double residual_norm = 0;  ///< ‖b − Ax‖; with the residual test, ‖b − Ax − D²x‖
  double data_norm = 0;      ///< ‖b‖
  double x_norm = 0;         ///< ‖x‖
  /// The best known lower bound of ‖A‖, or of its Frobenius norm, from which bounds of rounding follow. Least
  /// squares have no damping in it; methods that add D² to A have ‖A + D²I‖.
  double operator_norm = 0;
  double damped_operator_norm = 0;  ///< the same of [A; D·I], where the method's test refers to it; else 0
  double condition = 0;             ///< the best known estimate of cond(A); 0 for methods without one
  double damp = 0;                  ///< D
  double rounding_norm = 0;  ///< the tested norm that rounding alone produces, as far as the method knows it
  double quadrature = 1;     ///< for bounds of errors, see ColumnReport::quadrature

  bool finite() const;
  /// √(‖b − Ax‖² + D²‖x‖²), the square root of the least-squares objective.
  double damped_residual_norm() const;
  /// ‖A‖ of the test of the backward error and of the report.
  double tested_operator_norm() const;
};

/// Facts of A that the caller knows, for bounds of errors.
struct KnownOperator {
  double sigma_min = 0;        ///< no singular value is smaller; with the residual test, no eigenvalue
  double frobenius_norm = 0;   ///< ‖A‖_F or more
  double difference_norm = 0;  ///< ‖A − Ã‖ or more, where the norms are those of a solve with Ã
  int roundings = 1;           ///< of a number in a product with A, and in b
};
/// The same of diag(w) A: a weight that is not 1 rounds a product, and b, once more.
KnownOperator with_weights(const KnownOperator& A, const WeightRange& weights);

/// Throws UsageError unless a number of these can be one, for an operator of this shape.
void require_usable(const ErrorBoundOptions& options, Index rows, Index cols);
/// Throws UsageError if no matrix of this shape and this ‖A‖_F has a singular value as large as sigma_min for
/// its smallest. A norm that is 0, as frobenius_norm() has it on idle ranks, or not finite excludes nothing.
void require_possible(double sigma_min, double frobenius_norm, Index rows, Index cols);
/// √μ of error_bounds().
double root_of_least_eigenvalue(double damp, const KnownOperator& A, ToleranceTest test);
/// The sum of the terms of error_bounds(), from norms in units in which their products with ‖A‖ are finite;
/// epsilon: of the elements' type. Everything that bounds an error calls this.
double error_bound(const ColumnNorms& norms, const KnownOperator& A, ToleranceTest test, double epsilon);

/// The values with which a verdict compares the norms of one column.
struct VerdictLimits {
  ToleranceTest test = ToleranceTest::gradient;
  double tolerance = 0;           ///< T
  double absolute_tolerance = 0;  ///< for the method's own test
  double atol = 0, btol = 0;      ///< for the test of the backward error
  double error = 0;               ///< relative to ‖x‖; 0: not tested
  KnownOperator known{};          ///< for `error`
  bool x_is_correction = false;   ///< x corrects a guess; the norm of their sum, for that test, is not known
  /// No residual is longer than the one before, so that x cannot explode.
  bool residual_never_rises = false;
  /// The most that ‖A‖ may count in bounds of rounding.
  double largest_norm = std::numeric_limits<double>::infinity();
  double epsilon = 0;  ///< of the elements' type
};

/// The relative errors of the computed norms.
struct Rounding {
  double of_residual = 0;
  double of_gradient = 0;  ///< relative to ‖A‖(‖b‖ + ‖A‖‖x‖); 0 while the gradient comes from a recurrence
};

/// The norms that ToleranceTest::backward_error compares with atol and btol, without these: the errors
/// relative to A and b of the damped system, for which x is a solution.
struct BackwardErrors {
  double of_residual = 0;  ///< ‖r‖/(‖b‖ + ‖A‖‖x‖)
  double of_gradient = 0;  ///< ‖Aᴴr‖/(‖A‖‖r‖)
};
BackwardErrors backward_errors(const ColumnNorms& norms, const VerdictLimits& limits);

/// Judges whether x solves the problem. Returns `converged` if the norms meet the tolerance, `stagnated` if
/// they are as small as rounding allows for a solution, `non_finite` if one is not a number, and nothing
/// otherwise.
///
/// Rounding keeps ‖Aᴴr − D²x‖ from falling below a few ε(‖A‖‖r‖ + D²‖x‖): such an x minimises the problem of
/// an A that differs by a few ε‖A‖ (Stewart: Research, development, and LINPACK, 1977). An x whose ‖r‖ is a
/// few ε‖A‖‖x‖ solves the equations of such an A. A gradient recomputed from x is accurate only to ε‖A‖(‖b‖ +
/// ‖A‖‖x‖).
///
/// All three conditions also hold for an x that has exploded. For the first, x must therefore be no worse
/// than x = 0; for the second, it must explain b to half of its digits, unless no residual is longer than the
/// one before; for the third, the gradient must have fallen by as much.
/// Reasons: docs/decisions/0037-verdicts.md.
std::optional<StopReason> judge(const ColumnNorms& norms, const VerdictLimits& limits,
                                const Rounding& rounding);

/// Whether rounding keeps a recurrence from bringing x closer to a solution, whatever x is. The method may
/// restart from x, with a residual computed from it.
bool is_exhausted(const ColumnNorms& norms, const VerdictLimits& limits);

}  // namespace gridlops
