// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "gridlops/matrix_view.hpp"
#include "support/catch.hpp"

namespace gridlops::testing {

template <Scalar T>
T not_a_number() {
  const Real<T> nan = std::numeric_limits<Real<T>>::quiet_NaN();
  if constexpr (is_complex<T>) {
    return {nan, nan};
  } else {
    return nan;
  }
}

template <Scalar T>
bool is_nan(T value) {
  return std::isnan(std::real(value)) || std::isnan(std::imag(value));
}

/// A block whose columns are followed by `padding` elements of NaN: who reads them spoils the result, who
/// writes them is found out.
template <Scalar T>
class PaddedMatrix {
 public:
  template <class Function>
  PaddedMatrix(Index rows, Index cols, Index padding, Function&& value)
      : data_(static_cast<std::size_t>((rows + padding) * cols), not_a_number<T>()),
        rows_(rows),
        cols_(cols),
        stride_(rows + padding) {
    for (Index j = 0; j < cols; ++j) {
      for (Index i = 0; i < rows; ++i) view()(i, j) = value(i, j);
    }
  }

  MatrixView<T> view() { return {data_.data(), rows_, cols_, stride_}; }
  MatrixView<const T> view() const { return {data_.data(), rows_, cols_, stride_}; }

  /// Every element is expected(i, j) to within tolerance, and the padding as it was.
  template <class Function>
  void check(Function&& expected, double tolerance = 0) const {
    Index wrong = 0;
    for (Index j = 0; j < cols_; ++j) {
      for (Index i = 0; i < stride_; ++i) {
        const T found = data_[static_cast<std::size_t>(i + j * stride_)];
        const bool good = i < rows_ ? std::abs(found - expected(i, j)) <= tolerance : is_nan(found);
        if (!good && wrong++ == 0) UNSCOPED_INFO("first at (" << i << ", " << j << "): " << found);
      }
    }
    CAPTURE(rows_, cols_, stride_);
    CHECK(wrong == 0);
  }

 private:
  std::vector<T> data_;
  Index rows_, cols_, stride_;
};

}  // namespace gridlops::testing
