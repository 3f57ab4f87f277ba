// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "gridlops/io/array_file.hpp"

namespace gridlops {

/// A matrix as its file has it: in boxes of one shape, each in C order, which cover it. Those at its right
/// and lower edges may reach beyond it.
struct MatrixBoxes {
  std::string file{};
  Index rows = 0, cols = 0;      ///< of a box
  Index matrix_cols = 0;         ///< of the matrix
  std::vector<Index> offsets{};  ///< bytes before the first element of each, one row of boxes after the other

  /// How many are side by side.
  Index across() const { return (matrix_cols + cols - 1) / cols; }
  /// The columns of the matrix in the j-th of them.
  Range cols_of(Index j) const { return {j * cols, std::min(cols, matrix_cols - j * cols)}; }
};

/// Where the elements of a matrix are, if its file has them, row after row, as memory would: a NumPy file is
/// one box, a dataset is one, or one for each of its chunks. Not collective. Throws UsageError if they lie
/// otherwise, or are to be converted to another type, with the reason; InputError if the file cannot be read.
MatrixBoxes boxes_of(const std::string& name, const MatrixHeader& header, ScalarType type);

}  // namespace gridlops
