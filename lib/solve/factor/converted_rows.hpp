// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>

#include "gridlops/local/buffer.hpp"

namespace gridlops {

/// The type of sums, and the bytes of their elements.
constexpr ScalarType type_of_sums(ScalarType type) {
  return type == ScalarType::f32 || type == ScalarType::f64 ? ScalarType::f64 : ScalarType::c128;
}
constexpr Index size_of_sums(ScalarType type) { return size_of(type_of_sums(type)); }

/// Copies of some rows at a time, multiplied by a power of two, in the precision of sums.
template <Scalar T>
class ConvertedRows {
  using Wide = Accumulator<T>;

 public:
  /// The rows that are copied at a time.
  static constexpr Index most = 256;

  ConvertedRows(Index cols, int power) : cols_(cols), scale_(std::ldexp(1.0, power)) {}

  void allocate(const std::shared_ptr<Backend>& backend) { memory_ = Buffer<Wide>(backend, most * cols_); }
  /// Calls use() with the rows, which it may overwrite.
  template <class Use>
  void for_each(MatrixView<const T> rows, const Use& use) const {
    for (Index first = 0; first < rows.rows; first += most) {
      const MatrixView<Wide> wide = memory_.matrix(std::min(most, rows.rows - first), cols_);
      for (Index j = 0; j < cols_; ++j)
        for (Index i = 0; i < wide.rows; ++i) wide(i, j) = scale_ * Wide(rows(first + i, j));
      use(wide);
    }
  }
  bool changes_elements() const { return !std::is_same_v<T, Wide> || scale_ != 1; }

 private:
  Index cols_;
  double scale_;
  Buffer<Wide> memory_;
};

}  // namespace gridlops
