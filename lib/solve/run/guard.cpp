// SPDX-License-Identifier: BSD-3-Clause
#include "solve/run/guard.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gridlops {

Guard::Guard(Index every, double norm_A, double epsilon, Index longest_sum)
    : every_(every),
      norm_A_(std::isfinite(norm_A) ? norm_A : std::numeric_limits<double>::infinity()),
      epsilon_(epsilon),
      rounding_of_sums_(epsilon * std::sqrt(static_cast<double>(std::max<Index>(longest_sum, 1)))) {}

double Guard::norm_A(const ColumnState& column) const {
  if (column.weights.largest == 0) return 0;  // also of an A that is not finite
  return std::ldexp(column.weights.largest * norm_A_, column.scale.A);
}

double Guard::norm_with_damping(const ColumnState& column) const {
  return norm_A(column) + std::max(column.damp, column.damp * column.damp);
}

double Guard::largest_gap(const ColumnState& column, bool follows_residual) const {
  // largest_x_norm does not yet include the iterate being checked.
  const double x_norm = std::max(column.largest_x_norm, column.x_norm);
  const double scale = norm_with_damping(column) * x_norm + column.first_residual_norm;
  const double of_rounding = a_few * rounding_of_sums_ * static_cast<double>(column.iterations + 1) * scale;
  return follows_residual ? of_rounding : std::max(of_rounding, std::sqrt(epsilon_) * scale);
}

// After a few steps the estimate is at least a quarter of ‖A‖ unless the largest singular value stands alone,
// far above a very dense spectrum.
double Guard::largest_norm(const ColumnState& column) const {
  constexpr double more_than_estimated = 4;
  return more_than_estimated * std::sqrt(static_cast<double>(column.iterations + 1)) *
         norm_with_damping(column);
}

}  // namespace gridlops
