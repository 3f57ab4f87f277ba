// SPDX-License-Identifier: BSD-3-Clause
#include "solve/run/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gridlops {

bool ColumnNorms::finite() const {
  return std::isfinite(tested_norm) && std::isfinite(residual_norm) && std::isfinite(x_norm) &&
         std::isfinite(reference);
}

double ColumnNorms::damped_residual_norm() const { return std::hypot(residual_norm, damp * x_norm); }

double ColumnNorms::tested_operator_norm() const { return std::max(operator_norm, damped_operator_norm); }

KnownOperator with_weights(const KnownOperator& A, const WeightRange& weights) {
  const bool are_one = weights.least == 1 && weights.largest == 1;
  return {weights.least * A.sigma_min, weights.largest * A.frobenius_norm,
          weights.largest * A.difference_norm, are_one ? A.roundings : A.roundings + 1};
}

double root_of_least_eigenvalue(double damp, const KnownOperator& A, ToleranceTest test) {
  const bool is_definite = test == ToleranceTest::residual;
  return std::hypot(damp, is_definite ? std::sqrt(A.sigma_min) : A.sigma_min);
}

double error_bound(const ColumnNorms& norms, const KnownOperator& A, ToleranceTest test, double epsilon) {
  // Norms are divided by √μ twice, since squares may not fit.
  const double root = root_of_least_eigenvalue(norms.damp, A, test);
  if (root == 0) return std::numeric_limits<double>::infinity();
  const double x = norms.x_norm, r = norms.residual_norm / root, norm_A = A.frobenius_norm / root;
  const double of_gradient = std::sqrt(norms.quadrature) * (norms.tested_norm / root / root),
               of_difference = A.difference_norm / root * (r + std::min(1.0, root / norms.damp / 2) * x),
               in_residual = norm_A * x + norms.data_norm / root,
               in_damping = 2 * std::pow(norms.damp / root, 2) * x,
               in_product = test == ToleranceTest::residual ? in_residual / root : norm_A * r + in_residual;
  const double of_bounds = test == ToleranceTest::projected_gradient ? 2 : 1;
  return of_gradient + of_bounds * (of_difference + epsilon / 2 * (A.roundings * in_product + in_damping));
}

namespace {

/// Of the test of the backward error.
double tested_x_norm(const ColumnNorms& norms, const VerdictLimits& limits) {
  return limits.x_is_correction ? 0 : norms.x_norm;
}

bool meets_tolerance(const ColumnNorms& norms, const VerdictLimits& limits) {
  if (limits.error > 0) {
    if (error_bound(norms, limits.known, limits.test, limits.epsilon) <= limits.error * norms.x_norm)
      return true;
    if (limits.tolerance == 0 && limits.atol == 0 && limits.btol == 0) return false;
  }
  if (limits.test != ToleranceTest::backward_error)
    return norms.tested_norm <= std::max(limits.tolerance * norms.reference, limits.absolute_tolerance);
  const double r = norms.damped_residual_norm(), A = norms.tested_operator_norm();
  return norms.tested_norm == 0 ||
         r <= limits.btol * norms.data_norm + limits.atol * A * tested_x_norm(norms, limits) ||
         norms.tested_norm <= limits.atol * A * r;
}

/// The norms that rounding explains in one column: `rounding` is relative, ‖A‖ is that of the bounds.
struct RoundingBounds {
  const ColumnNorms& norms;
  const double norm_A;

  RoundingBounds(const ColumnNorms& of, const VerdictLimits& limits)
      : norms(of), norm_A(std::min(of.operator_norm, limits.largest_norm)) {}

  bool minimises(double rounding) const {
    return norms.tested_norm <=
           a_few * rounding * (norm_A * norms.residual_norm + norms.damp * norms.damp * norms.x_norm);
  }
  bool solves_equations(double residual, double rounding) const {
    return residual <= a_few * rounding * norm_A * norms.x_norm;
  }
  bool is_rounding_of_gradient(double rounding) const {
    return norms.tested_norm <=
           a_few * rounding *
               (norm_A * (norms.data_norm + norm_A * norms.x_norm) + norms.damp * norms.damp * norms.x_norm);
  }
};

bool at_rounding_level(const ColumnNorms& norms, const VerdictLimits& limits, const Rounding& rounding) {
  const RoundingBounds bounds(norms, limits);
  const double half_the_digits = std::sqrt(limits.epsilon), r = norms.damped_residual_norm();
  switch (limits.test) {
    case ToleranceTest::projected_gradient:
    case ToleranceTest::own:
      return norms.tested_norm <= norms.rounding_norm;
    case ToleranceTest::residual:
      return bounds.solves_equations(norms.tested_norm, rounding.of_residual) &&
             norms.tested_norm <= (limits.residual_never_rises ? 1 : half_the_digits) * norms.data_norm;
    case ToleranceTest::gradient:
    case ToleranceTest::backward_error:
      break;
  }
  if (bounds.solves_equations(r, rounding.of_residual) && r <= half_the_digits * norms.data_norm) return true;
  const bool is_no_worse_than_zero = r <= (1 + a_few * rounding.of_residual) * norms.data_norm,
             has_fallen = norms.tested_norm <= half_the_digits * norms.reference;
  return is_no_worse_than_zero && (bounds.minimises(rounding.of_residual) ||
                                   (has_fallen && (norms.tested_norm <= norms.rounding_norm ||
                                                   bounds.is_rounding_of_gradient(rounding.of_gradient))));
}

}  // namespace

BackwardErrors backward_errors(const ColumnNorms& norms, const VerdictLimits& limits) {
  const double r = norms.damped_residual_norm(), A = norms.tested_operator_norm();
  const auto relative = [](double norm, double reference) { return norm == 0 ? 0 : norm / reference; };
  return {relative(r, norms.data_norm + A * tested_x_norm(norms, limits)),
          relative(norms.tested_norm, A * r)};
}

std::optional<StopReason> judge(const ColumnNorms& norms, const VerdictLimits& limits,
                                const Rounding& rounding) {
  if (!norms.finite()) return StopReason::non_finite;
  if (meets_tolerance(norms, limits)) return StopReason::converged;
  if (at_rounding_level(norms, limits, rounding)) return StopReason::stagnated;
  return std::nullopt;
}

bool is_exhausted(const ColumnNorms& norms, const VerdictLimits& limits) {
  const RoundingBounds bounds(norms, limits);
  switch (limits.test) {
    case ToleranceTest::projected_gradient:
    case ToleranceTest::own:
      return false;
    case ToleranceTest::residual:
      return bounds.solves_equations(norms.tested_norm, limits.epsilon);
    case ToleranceTest::gradient:
    case ToleranceTest::backward_error:
      break;
  }
  return bounds.minimises(limits.epsilon) ||
         bounds.solves_equations(norms.damped_residual_norm(), limits.epsilon);
}

}  // namespace gridlops
