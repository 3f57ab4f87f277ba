// SPDX-License-Identifier: BSD-3-Clause
#include "solve/ridge/ridge_choice.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/numbers.hpp"
#include "base/square_sum.hpp"
#include "gridlops/solve/ridge.hpp"

namespace gridlops {

std::optional<Index> choose_alpha(std::span<const double> alphas, std::span<const double> scores,
                                  bool one_standard_error) {
  const std::size_t folds = alphas.empty() ? 0 : scores.size() / alphas.size();
  const auto count = static_cast<double>(folds);
  const auto mean = [&](std::size_t d) {
    const auto of_folds = scores.subspan(d * folds, folds);
    return std::accumulate(of_folds.begin(), of_folds.end(), 0.0) / count;
  };
  std::optional<std::size_t> best;
  for (std::size_t d = 0; d < alphas.size(); ++d)
    if (!std::isnan(mean(d)) && (!best || mean(d) > mean(*best))) best = d;
  if (!best || !one_standard_error || folds < 2)
    return best ? std::optional<Index>(static_cast<Index>(*best)) : std::nullopt;
  SquareSum deviations;
  for (const double score : scores.subspan(*best * folds, folds)) deviations.add(score - mean(*best));
  const double standard_error = deviations.root() / std::sqrt((count - 1) * count);
  std::size_t chosen = *best;
  for (std::size_t d = 0; d < alphas.size(); ++d)
    if (alphas[d] > alphas[chosen] && mean(d) >= mean(*best) - standard_error) chosen = d;
  return static_cast<Index>(chosen);
}

SharedDampings::SharedDampings(const RidgeOptions& options)
    : alphas_(options.alphas), one_standard_error_(options.one_standard_error) {}

void SharedDampings::add(Index group, std::span<const double> fold_scores) {
  Group& to = groups_[group];
  ++to.columns;
  to.sums.resize(fold_scores.size());
  std::transform(fold_scores.begin(), fold_scores.end(), to.sums.begin(), to.sums.begin(), std::plus<>());
}

Index SharedDampings::chosen(Index group) const {
  const Group& of = groups_.at(group);
  std::vector<double> means = of.sums;
  for (double& mean : means) mean /= static_cast<double>(of.columns);
  // No damping has a score only if rows are predicted from themselves alone: the largest has least of that.
  const auto largest = std::max_element(alphas_.begin(), alphas_.end());
  return choose_alpha(alphas_, means, one_standard_error_).value_or(largest - alphas_.begin());
}

}  // namespace gridlops
