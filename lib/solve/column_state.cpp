// SPDX-License-Identifier: BSD-3-Clause
#include "solve/column_state.hpp"

#include <algorithm>
#include <cmath>

namespace gridlops {

double ColumnState::relative_norm() const { return reference > 0 ? tested_norm / reference : 0; }

bool ColumnState::finite() const {
  return std::isfinite(tested_norm) && std::isfinite(residual_norm) && std::isfinite(x_norm) &&
         std::isfinite(reference);
}

void ColumnState::visit(StateArchive& archive) {
  bool ended = reason.has_value();
  StopReason how = reason.value_or(StopReason::iteration_limit);
  archive.visit(ended, how, iterations, tested_norm, residual_norm, first_residual_norm, x_norm, reference,
                largest_x_norm, data_norm, objective, condition, operator_norm, snapshot_norm, lowest_norm,
                lowest_at, verified_norm, failed_checks, final_residual_norm, final_normal_norm);
  reason = ended ? std::optional(how) : std::nullopt;
}

void ColumnState::begin_descent() {
  lowest_norm = snapshot_norm = tested_norm;
  lowest_at = iterations;
  largest_x_norm = x_norm;
}

void ColumnState::note_descent() {
  largest_x_norm = std::max(largest_x_norm, x_norm);
  if (tested_norm >= 0.9 * lowest_norm) return;
  lowest_norm = tested_norm;
  lowest_at = iterations;
}

bool ColumnState::is_to_be_kept() {
  // A copy of x for every halving costs little, and the best iterate is known to a factor of two.
  if (tested_norm >= 0.5 * snapshot_norm) return false;
  snapshot_norm = tested_norm;
  return true;
}

}  // namespace gridlops
