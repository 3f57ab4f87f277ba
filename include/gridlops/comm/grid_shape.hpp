// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/base/export.hpp"

namespace gridlops {

/// P × Q.
struct GridShape {
  int rows = 1;
  int cols = 1;
  int size() const { return rows * cols; }
  friend bool operator==(GridShape, GridShape) = default;
};

/// "2x3" → {2, 3}. Throws UsageError unless the text is two positive numbers with an x between them.
GRIDLOPS_EXPORT GridShape parse_grid_shape(const std::string& text);

/// The shape with P·Q = ranks, P ≤ Q, and P as close to Q as possible. Throws UsageError unless ranks > 0.
GRIDLOPS_EXPORT GridShape near_square(int ranks);

/// The ranks over which a dimension of a matrix is cut.
enum class Axis {
  grid_rows,       ///< P parts, part i on the ranks of grid row i
  grid_cols,       ///< Q parts, part j on the ranks of grid column j
  all,             ///< P·Q parts in row-major rank order
  all_transposed,  ///< P·Q parts in column-major rank order
  uncut            ///< one part, on every rank
};
GRIDLOPS_EXPORT const char* name_of(Axis axis);

}  // namespace gridlops
