// SPDX-License-Identifier: BSD-3-Clause
#include "solve/column_state.hpp"

#include <cmath>

namespace gridlops {

double ColumnState::relative_norm() const { return reference > 0 ? tested_norm / reference : 0; }

bool ColumnState::finite() const {
  return std::isfinite(tested_norm) && std::isfinite(residual_norm) && std::isfinite(x_norm) &&
         std::isfinite(reference);
}

void ColumnState::begin_descent() {
  lowest_norm = snapshot_norm = tested_norm;
  lowest_at = iterations;
}

bool ColumnState::note_descent() {
  if (tested_norm < 0.9 * lowest_norm) {
    lowest_norm = tested_norm;
    lowest_at = iterations;
  }
  // A copy of x for every halving costs little, and the best iterate is known to a factor of two.
  if (tested_norm >= 0.5 * snapshot_norm) return false;
  snapshot_norm = tested_norm;
  return true;
}

}  // namespace gridlops
