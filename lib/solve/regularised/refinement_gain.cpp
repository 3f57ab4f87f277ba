// SPDX-License-Identifier: BSD-3-Clause
#include "solve/regularised/refinement_gain.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>

#include "base/message.hpp"

namespace gridlops {

namespace {

/// Inner iterations end at this fraction of the contraction, so that they do not limit it.
constexpr double inner_share = 0.3;
/// CGLS takes about this fraction of the iterations for a digit that inner iterations take in the first two
/// steps, in the second of which they begin anew.
constexpr double cgls_share = 0.9;
constexpr double smallest_inner_tolerance = 1e-4, largest_inner_tolerance = 0.1;

}  // namespace

void RefinementGain::begin(Index columns) {
  steps_ = reference_ = contraction_ = inner_ = ColumnScalars(columns);
  early_ = late_ = {inner_, inner_};
}

ColumnScalars RefinementGain::inner_tolerances() const {
  return min(max(inner_share * contraction_, smallest_inner_tolerance), largest_inner_tolerance);
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

// CGLS with A takes κ iterations for each factor of e of the gradient, and inner iterations take λ, which is
// larger, since they begin anew in every step. A step with contraction ρ costs a pass over A and λ
// ln(1/(0.3ρ)) over Ã, and comes ln(1/ρ) such factors closer. With c the cost of Ã in units of that of A,
// this saves something while 1 + cλ ln(1/(0.3ρ)) < κ ln(1/ρ).
RefinedColumn RefinementGain::account(Index k, const RefinedOptions& options, double tolerance) const {
  RefinedColumn column{.inner_iterations = static_cast<Index>(inner_[k]), .contraction = contraction_[k]};
  if (early_.folds[k] <= 0) return column;
  const double kappa = cgls_share * early_.iterations[k] / early_.folds[k];
  if (tolerance > 0) column.cgls_iterations = kappa * std::max(std::log(1 / tolerance), 0.0);
  if (options.cost_of_A == 0 || late_.folds[k] <= 0) return column;
  const double c_lambda =
      options.cost_of_approximation / options.cost_of_A * late_.iterations[k] / late_.folds[k];
  if (c_lambda < kappa)
    column.needed_contraction = std::exp(-(1 + c_lambda * std::log(1 / inner_share)) / (kappa - c_lambda));
  column.is_refused = column.contraction > column.needed_contraction;
  return column;
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
