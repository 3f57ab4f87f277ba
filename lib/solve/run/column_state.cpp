// SPDX-License-Identifier: BSD-3-Clause
#include "solve/run/column_state.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace gridlops {

double ColumnState::relative_norm() const { return reference > 0 ? tested_norm / reference : 0; }

ColumnState ColumnState::in_given_units(ToleranceTest test) const {
  ColumnState given = *this;
  const int of_gradient = scale.A + scale.b;
  const int of_test = test == ToleranceTest::residual ? scale.b : of_gradient;
  given.reference = std::ldexp(reference, -of_test);
  given.tested_norm = std::ldexp(tested_norm, -of_test);
  given.operator_norm = std::ldexp(operator_norm, -scale.A);
  given.damped_operator_norm = std::ldexp(damped_operator_norm, -scale.A);
  given.x_norm = std::ldexp(x_norm, -scale.x());
  given.residual_norm = std::ldexp(residual_norm, -scale.b);
  given.first_residual_norm = std::ldexp(first_residual_norm, -scale.b);
  given.final_residual_norm = std::ldexp(final_residual_norm, -scale.b);
  given.final_normal_norm = std::ldexp(final_normal_norm, -of_gradient);
  return given;
}

void ColumnState::visit(StateArchive& archive) {
  bool ended = reason.has_value();
  StopReason how = reason.value_or(StopReason::iteration_limit);
  archive.visit(ended, how, iterations, scale.A, scale.b, scale.damp, tested_norm, reference, residual_norm,
                data_norm, x_norm, operator_norm, damped_operator_norm, condition, rounding_norm,
                first_residual_norm, largest_x_norm, objective, snapshot_norm, snapshot_residual,
                verified_norm, is_stuck, failed_checks, final_residual_norm, final_normal_norm, quadrature,
                has_quadrature);
  reason = ended ? std::optional(how) : std::nullopt;
  constexpr int largest_power = 10000;  // beyond all exponents of doubles
  for (const int power : {scale.A, scale.b, scale.damp}) archive.require(std::abs(power) <= largest_power);
}

void ColumnState::forget_quadrature(bool begins_anew) {
  quadrature = 1;
  has_quadrature = begins_anew;
}

void ColumnState::begin_descent() {
  snapshot_norm = tested_norm;
  snapshot_residual = damped_residual_norm();
  largest_x_norm = x_norm;
}

bool ColumnState::is_to_be_kept() {
  // Copying x at every halving is cheap, and keeps the best iterate to within a factor of two.
  if (tested_norm >= 0.5 * snapshot_norm) return false;
  snapshot_norm = tested_norm;
  snapshot_residual = damped_residual_norm();
  return true;
}

}  // namespace gridlops
