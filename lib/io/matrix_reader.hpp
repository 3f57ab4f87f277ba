// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include "gridlops/io/array_file.hpp"
#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

/// Reads blocks of the matrix in a file into host memory. One rank uses it alone.
template <Scalar T>
class MatrixReader {
 public:
  /// Opens the file. Throws ShapeError if T does not hold all its values, and InputError.
  MatrixReader(const std::string& name, const MatrixHeader& header);

  /// Whether columns are contiguous in the file.
  bool by_columns() const { return by_columns_; }
  /// block ← rows × cols of the matrix, not empty. Throws InputError.
  void read(Range rows, Range cols, MatrixView<T> block) const { read_(rows, cols, block); }

 private:
  bool by_columns_;
  std::function<void(Range rows, Range cols, MatrixView<T> block)> read_;
};

}  // namespace gridlops
