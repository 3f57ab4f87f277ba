// SPDX-License-Identifier: BSD-3-Clause
#include "solve/ridge/ridge_choice.hpp"

#include <cmath>
#include <numeric>

#include "base/numbers.hpp"
#include "base/square_sum.hpp"

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

}  // namespace gridlops
