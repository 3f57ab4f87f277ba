// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// Chooses from the scores of dampings, in their order: the first with the best mean over the folds or, with
/// one_standard_error, the largest whose mean is at most one standard error of the best one's folds below
/// that. Scores that are NaN in a fold do not count; nothing if none counts. scores: of fold f and damping d
/// at f + d·folds.
std::optional<Index> choose_alpha(std::span<const double> alphas, std::span<const double> scores,
                                  bool one_standard_error);

}  // namespace gridlops
