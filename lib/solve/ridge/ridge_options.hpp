// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/solve/ridge.hpp"

namespace gridlops {

/// The rows of each fold; those with a number below zero are in a last one, which is not predicted.
struct Folds {
  std::vector<Index> of_row;
  std::vector<Index> sizes;
  std::vector<Index> labels;  ///< what the caller calls those that are predicted, in ascending order
  Index predicted() const { return static_cast<Index>(labels.size()); }
  Index all() const { return static_cast<Index>(sizes.size()); }
};
/// Without labels, all rows are in one fold, which is not predicted.
Folds folds_of(Index rows, const RidgeOptions& options);

/// Whether all rows are predicted from all others by one model.
inline bool predicts_all(const RidgeOptions& options) {
  return options.validation == RidgeValidation::leave_one_out || options.validation == RidgeValidation::gcv;
}

/// The weight of each row, which is 1 unless the options say.
std::vector<double> weights_of(Index rows, const RidgeOptions& options);

/// Throws UsageError or ShapeError if the options do not fit each other, or an A and B of these shapes.
void require_options(const RidgeOptions& options, Index rows, Index cols, Index nrhs);

/// The columns of all ranks that are worked on at a time: by default as many as fit into 256 MiB of each.
Index ridge_batch(Index nrhs, Index bytes_of_column, Index asked, int ranks);

}  // namespace gridlops
