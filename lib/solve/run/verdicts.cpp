// SPDX-License-Identifier: BSD-3-Clause
#include "solve/run/verdicts.hpp"

#include <algorithm>
#include <cmath>

namespace gridlops {

namespace {

bool is_least_squares(ToleranceTest test) {
  return test == ToleranceTest::gradient || test == ToleranceTest::backward_error;
}

}  // namespace

Verdicts::Verdicts(const VerdictRules& rules, const SolveOptions& options, const std::vector<Index>& numbers)
    : rules_(rules), options_(options), columns_(numbers.size()) {
  const PerColumn tolerance = tolerance_of(options, rules.type);
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    given_damps_.push_back(options.damp[numbers[k]]);
    columns_[k].damp = given_damps_[k];
    columns_[k].tolerance = tolerance[numbers[k]];
  }
}

VerdictLimits Verdicts::limits_of(const ColumnState& column) const {
  return {.test = rules_.test,
          .tolerance = column.tolerance,
          .absolute_tolerance = rules_.absolute_tolerance,
          .atol = options_.atol.value_or(column.tolerance),
          .btol = options_.btol.value_or(column.tolerance),
          .error = options_.error,
          .known = with_weights({std::ldexp(options_.sigma_min, column.scale.A),
                                 std::ldexp(options_.frobenius_norm.value_or(0), column.scale.A)},
                                column.weights),
          .x_is_correction = rules_.x_is_correction,
          .residual_never_rises = rules_.residual_never_rises,
          .largest_norm = std::ldexp(rules_.largest_norm, column.scale.A),
          .epsilon = rules_.epsilon};
}

std::optional<StopReason> Verdicts::verdict(const ColumnState& column, const Rounding& rounding) const {
  const bool may_be_solved = column.iterations > 0 || rules_.judges_start;
  if (!may_be_solved && column.finite()) return std::nullopt;
  return judge(column, limits_of(column), rounding);
}

BackwardErrors Verdicts::backward_errors(Index number) const {
  const ColumnState& column = (*this)[number];
  return gridlops::backward_errors(column, limits_of(column));
}

void Verdicts::set_scale(Index number, const ColumnScale& scale) {
  ColumnState& column = (*this)[number];
  column.scale = scale;
  column.damp = std::ldexp(given_damps_[at(number)], scale.damp);
}

double Verdicts::step(ColumnState& column, double gamma, double delta, bool fits_type) const {
  if (!std::isfinite(delta) || !std::isfinite(gamma)) {
    column.reason = StopReason::non_finite;
  } else if (delta <= 0 || gamma <= 0 || !fits_type) {
    column.reason = StopReason::breakdown;
  } else if (column.iterations == 0) {
    // ‖A‖ is now better known than at the start. If no part of b is in the range of A, this shows now.
    column.reason = verdict(column, {rules_.epsilon});
  }
  return column.reason ? 0 : gamma / delta;
}

double Verdicts::root_of_least_eigenvalue(const ColumnState& column) const {
  return gridlops::root_of_least_eigenvalue(column.damp, limits_of(column).known, rules_.test);
}

// Where the step is nearly as long as it can be, 1/μ at first, rounding must not make what is left too small.
void Verdicts::follow_quadrature(ColumnState& column, double step, double ratio) const {
  if (column.reason || !column.has_quadrature) return;
  const double root = root_of_least_eigenvalue(column),
               left = column.quadrature - (1 - a_few * rules_.epsilon) * (root * step * root);
  if (root > 0 && left > 0 && std::isfinite(left) && std::isfinite(ratio)) {
    column.quadrature = left / (left + ratio);
  } else {
    column.forget_quadrature();
  }
}

void Verdicts::add_drift(ColumnState& column, const RecomputedNorm& tested) const {
  if (tested.quadrature) column.quadrature = *tested.quadrature;
  if (tested.quadrature || column.quadrature == 1) return;
  const double drift = std::max(tested.gradient_drift, std::abs(tested.norm - column.tested_norm)) +
                       root_of_least_eigenvalue(column) * tested.residual_drift,
               root = (std::sqrt(column.quadrature) * column.tested_norm + drift) / tested.norm;
  column.quadrature = root < 1 ? root * root : 1;
}

void Verdicts::test(ColumnState& column) const {
  if (column.reason) return;
  column.reason = verdict(column, {rules_.epsilon});
  if (column.reason) return;
  // The recomputed norms will tell whether this is a solution.
  if (column.iterations > 0 && !column.is_stuck && is_exhausted(column, limits_of(column)))
    column.reason = StopReason::stagnated;
  if (column.reason) return;
  if (options_.condition_limit > 0 && column.condition >= options_.condition_limit) {
    column.reason = StopReason::condition_limit;
  } else if (options_.residual_ratio > 0 &&
             column.residual_norm <= options_.residual_ratio * column.first_residual_norm) {
    column.reason = StopReason::user_stop;
  } else if (column.iterations >= options_.max_iterations) {
    column.reason = StopReason::iteration_limit;
  }
}

bool Verdicts::goes_back_to_best(const ColumnState& column) const {
  if (column.reason == StopReason::corrupted) return true;
  if (column.reason != StopReason::iteration_limit && column.reason != StopReason::breakdown) return false;
  const double half_the_digits = std::sqrt(rules_.epsilon);
  const bool has_risen = is_least_squares(rules_.test) &&
                         column.damped_residual_norm() > (1 + half_the_digits) * column.snapshot_residual;
  return column.tested_norm * (has_risen ? 1 : half_the_digits) > column.snapshot_norm;
}

bool Verdicts::is_astray(const ColumnState& column) const {
  if (is_unscaled(rules_.test) || column.iterations == 0 || is_solved(*column.reason) ||
      column.reason == StopReason::non_finite)
    return false;
  const double of_zero = rules_.x_is_correction ? column.first_residual_norm : column.data_norm,
               half_the_digits = std::sqrt(rules_.epsilon);
  if (is_least_squares(rules_.test) && column.tested_norm <= column.reference) return false;
  const double found = is_least_squares(rules_.test) ? column.damped_residual_norm() : column.tested_norm;
  const bool may_rise = rules_.test == ToleranceTest::residual && !rules_.residual_never_rises &&
                        column.reason != StopReason::breakdown &&
                        rules_.epsilon * column.operator_norm * column.x_norm <= of_zero;
  return may_rise ? found * half_the_digits > of_zero : found > (1 + half_the_digits) * of_zero;
}

bool Verdicts::verify(ColumnState& column, const RecomputedNorm& recomputed, bool stop_asked) const {
  add_drift(column, recomputed);
  const double tested = column.tested_norm = recomputed.norm;
  column.residual_norm = column.final_residual_norm;
  if (column.reason == StopReason::non_finite) return false;
  const auto judged = [&](const Rounding& rounding) {
    const std::optional<StopReason> reason = verdict(column, rounding);
    if (reason) column.reason = reason;
    return reason.has_value();
  };
  if (judged({rules_.epsilon})) return false;
  const bool claimed = is_solved(*column.reason);
  if (!claimed && (column.reason != StopReason::corrupted || column.failed_checks > 1)) return false;
  const bool comes_closer = column.verified_norm == 0 || tested < 0.5 * column.verified_norm;
  // A correction much longer than the corrected x cannot be made more accurate; another correction starts
  // from there.
  const bool may_go_on =
      !stop_asked && column.iterations < options_.max_iterations && (comes_closer || !rules_.x_is_correction);
  // The sums of a product round like random numbers (Higham, Mary: SIAM J. Sci. Comput. 41, 2019).
  const double of_sums = rules_.epsilon * std::sqrt(static_cast<double>(rules_.longest_sum));
  if (claimed && !comes_closer && judged({of_sums, of_sums})) return false;
  // Nothing of b may be in the range of A, to rounding. The recurrence then begins with b again and again,
  // and its v is 0, from which nobody learns how large A is.
  const bool sees_nothing = is_least_squares(rules_.test) && !rules_.x_is_correction && column.x_norm == 0;
  if (claimed && !comes_closer && sees_nothing) {
    column.reason = StopReason::stagnated;
    return false;
  }
  if (!may_go_on) {
    if (claimed) column.reason = stop_asked ? StopReason::user_stop : StopReason::iteration_limit;
    return false;
  }
  column.is_stuck = claimed && !comes_closer;
  column.verified_norm = claimed ? tested : 0;
  column.reason.reset();
  column.forget_quadrature(true);
  return true;
}

void Verdicts::judge_anew(ColumnState& column) const {
  // The others went back to an earlier x, or would end in the same way again.
  if (column.reason == StopReason::corrupted || column.reason == StopReason::breakdown ||
      column.reason == StopReason::non_finite)
    return;
  const bool has_stagnated = column.reason == StopReason::stagnated;
  column.reason.reset();
  test(column);
  // A method may know of rounding what these norms do not tell.
  if (!column.reason && has_stagnated) column.reason = StopReason::stagnated;
}

}  // namespace gridlops
