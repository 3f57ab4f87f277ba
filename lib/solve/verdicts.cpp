// SPDX-License-Identifier: BSD-3-Clause
#include "solve/verdicts.hpp"

#include <cmath>

namespace gridlops {

Verdicts::Verdicts(const StoppingTests& tests, const SolveOptions& options, double tolerance,
                   const std::vector<Index>& numbers)
    : tests_(tests), options_(options), columns_(numbers.size()) {
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    columns_[k].damp = options.damps.empty() ? options.damp : options.damps[at(numbers[k])];
    columns_[k].tolerance = options.tolerances.empty() ? tolerance : options.tolerances[at(numbers[k])];
  }
}

double Verdicts::step(ColumnState& column, double gamma, double delta, bool fits_type) const {
  if (!std::isfinite(delta) || !std::isfinite(gamma)) {
    column.reason = StopReason::non_finite;
  } else if (delta <= 0 || gamma <= 0 || !fits_type) {
    column.reason = StopReason::breakdown;
  } else if (column.iterations == 0 && tests_.at_rounding_level(column)) {
    column.reason = StopReason::stagnated;  // nothing of b is in the range of A
  } else {
    return gamma / delta;
  }
  return 0;
}

void Verdicts::test(ColumnState& column) const {
  if (column.reason) return;
  if (!column.finite()) {
    column.reason = StopReason::non_finite;
  } else if (tests_.meets_tolerance(column)) {
    column.reason = StopReason::converged;
  } else if (column.iterations > 0 && (tests_.at_rounding_level(column) ||
                                       (tests_.rounding_ends_descent() && column.stopped_falling()))) {
    column.reason = StopReason::stagnated;
  } else if (tests_.beyond_condition_limit(column)) {
    column.reason = StopReason::condition_limit;
  } else if (options_.residual_ratio > 0 &&
             column.residual_norm <= options_.residual_ratio * column.first_residual_norm) {
    column.reason = StopReason::user_stop;
  } else if (column.iterations >= options_.max_iterations) {
    column.reason = StopReason::iteration_limit;
  }
}

bool Verdicts::goes_back_to_best(const ColumnState& column) const {
  return column.reason == StopReason::corrupted ||
         (column.reason == StopReason::stagnated && !tests_.at_rounding_level(column) &&
          column.tested_norm > column.snapshot_norm);
}

bool Verdicts::verify(ColumnState& column, double tested, bool can_restart, bool stop_asked) const {
  if (!std::isfinite(tested)) column.reason = StopReason::non_finite;
  if (column.reason == StopReason::non_finite) return false;
  const bool claimed = column.reason == StopReason::converged;
  column.tested_norm = tested;
  column.residual_norm = column.final_residual_norm;
  if (tests_.meets_tolerance(column)) {
    column.reason = StopReason::converged;
  } else if (column.reason == StopReason::corrupted) {
    if (column.failed_checks > 1 || !can_restart || stop_asked ||
        column.iterations >= options_.max_iterations)
      return false;
    column.reason.reset();
    column.verified_norm = 0;
    return true;
  } else if (claimed) {
    const bool closer = column.verified_norm == 0 || tested < 0.5 * column.verified_norm;
    if (column.iterations >= options_.max_iterations) {
      column.reason = StopReason::iteration_limit;
    } else if (!closer || !can_restart) {
      // Where x is zero after all its steps, they were too small for the elements' type.
      column.reason = column.x_norm == 0 ? StopReason::breakdown : StopReason::stagnated;
    } else if (stop_asked) {
      column.reason = StopReason::user_stop;
    } else {
      column.reason.reset();
      column.verified_norm = tested;
      return true;
    }
  }
  return false;
}

void Verdicts::renew_limit(ColumnState& column) const {
  const bool at_limit = column.iterations >= options_.max_iterations;
  if (column.reason == StopReason::iteration_limit && !at_limit) column.reason.reset();
  if (!column.reason && at_limit) column.reason = StopReason::iteration_limit;
}

}  // namespace gridlops
