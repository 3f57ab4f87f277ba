// SPDX-License-Identifier: BSD-3-Clause
#include "solve/regularised/refinement_gain.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>

#include "base/message.hpp"

namespace gridlops {

namespace {

/// Inner iterations end at this fraction of the contraction, so that they do not limit it.
constexpr double inner_share = 0.3;
/// CGLS takes about this fraction of the iterations for a digit that inner iterations take in the first two
/// steps, in the second of which they begin anew.
constexpr double cgls_share = 0.9;
constexpr double smallest_inner_tolerance = 1e-4, largest_inner_tolerance = 0.1;

double inner_tolerance(double contraction) {
  return std::clamp(inner_share * contraction, smallest_inner_tolerance, largest_inner_tolerance);
}

/// ln(1/factor), but no more than double precision can show, and none for a factor above 1.
double factors_of_e(double factor) {
  return std::log(1 / std::clamp(factor, std::numeric_limits<double>::epsilon(), 1.0));
}

}  // namespace

void RefinementGain::begin(Index columns) {
  steps_ = reference_ = contraction_ = inner_ = ColumnScalars(columns);
  early_ = late_ = {inner_, inner_};
}

ColumnScalars RefinementGain::inner_tolerances() const {
  ColumnScalars tolerances = contraction_;
  for (double& each : tolerances.values()) each = inner_tolerance(each);
  return tolerances;
}

void RefinementGain::count_inner(const ColumnScalars& steps) {
  for (Index k = 0; k < steps.size(); ++k)
    if (steps[k] > 0) ++now_[k];
}

void RefinementGain::end_inner(const ColumnScalars& from, const ColumnScalars& to) {
  inner_ += now_;
  for (Index k = 0; k < from.size(); ++k) {
    const double folds = to[k] > 0 && to[k] < from[k] ? 0.5 * std::log(from[k] / to[k]) : 0;
    const auto add = [&](Rate& rate) {
      rate.iterations[k] += now_[k];
      rate.folds[k] += folds;
    };
    if (steps_[k] < 2) add(early_);
    if (steps_[k] >= 1) add(late_);
  }
}

// The first step takes out what A and Ã have in common, so it says least: later ones are compared with the
// second as soon as there is a third.
void RefinementGain::add_step(const ColumnScalars& reduction) {
  for (Index k = 0; k < reduction.size(); ++k) {
    const double compared = std::max(steps_[k] - 1, 1.0);
    if (steps_[k] > 0 && reference_[k] > 0 && reduction[k] > 0)
      contraction_[k] = std::pow(reduction[k] / reference_[k], 0.5 / compared);
    if (steps_[k] < 2) reference_[k] = reduction[k];
    ++steps_[k];
  }
}

RefinedColumn RefinementGain::account(Index k, double tolerance) const {
  return {.inner_iterations = static_cast<Index>(inner_[k]),
          .contraction = contraction_[k],
          .cgls_iterations = cgls_share * early_[k] * factors_of_e(tolerance)};
}

// Inner iterations take λ for each factor of e of the gradient. For L such factors there are L/ln(1/ρ) steps
// with contraction ρ, of which each costs a pass over A and λ ln(1/(0.3ρ)) over Ã. With c the cost of Ã in
// units of that of A, they cost as much as N iterations of CGLS if L (1 + cλ ln(1/(0.3ρ))) = N ln(1/ρ).
// Contractions rise from step to step, so that this takes about twice as much as it seems at first. What has
// been spent does not count.
double RefinementGain::needed_contraction(Index k, const RefinedOptions& options, double tolerance,
                                          double left) const {
  const double c_lambda = options.cost_of_approximation / options.cost_of_A * late_[k],
               L = factors_of_e(left), N = account(k, tolerance).cgls_iterations / 2;
  if (c_lambda * L >= N) return 0;
  const double needed = std::exp(-L * (1 + c_lambda * std::log(1 / inner_share)) / (N - c_lambda * L));
  return needed < smallest_inner_tolerance ? 0 : needed;  // no step leaves less than inner iterations do
}

std::string refusal(const std::vector<RefinedColumn>& columns) {
  const RefinedColumn* worst = nullptr;
  Index refused = 0;
  for (const RefinedColumn& column : columns) {
    if (!column.is_refused) continue;
    ++refused;
    if (worst == nullptr ||
        column.contraction * worst->needed_contraction > worst->contraction * column.needed_contraction)
      worst = &column;
  }
  if (worst == nullptr) return "";
  const std::string measured =
      message(std::setprecision(3), refused, refused == 1 ? " column costs" : " columns cost",
              " more than by cgls with A: a step leaves ", worst->contraction, " of the error");
  if (worst->needed_contraction == 0)
    return message(measured, ", and at what this approximation costs, none could leave little enough");
  return message(std::setprecision(3), measured, ", and must leave less than ", worst->needed_contraction,
                 "; the difference between A and its approximation must be ",
                 worst->contraction / worst->needed_contraction, " times smaller");
}

}  // namespace gridlops
