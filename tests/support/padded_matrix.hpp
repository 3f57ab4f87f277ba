// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <vector>

#include "gridlops/local/matrix_view.hpp"
#include "support/catch.hpp"
#include "support/reference.hpp"

namespace gridlops::testing {

/// A block with `padding` elements of NaN after each column. Code that reads them spoils its result, and the
/// check finds code that writes them.
template <Scalar T>
class PaddedMatrix {
 public:
  template <class Function>
  PaddedMatrix(Index rows, Index cols, Index padding, Function&& value)
      : data_(static_cast<std::size_t>((rows + padding) * cols), quiet_nan<T>()),
        rows_(rows),
        cols_(cols),
        stride_(rows + padding) {
    for (Index j = 0; j < cols; ++j) {
      for (Index i = 0; i < rows; ++i) view()(i, j) = value(i, j);
    }
  }

  MatrixView<T> view() { return {data_.data(), rows_, cols_, stride_}; }
  MatrixView<const T> view() const { return {data_.data(), rows_, cols_, stride_}; }

  /// Checks that every element is expected(i, j) to within tolerance, and that the padding is unchanged.
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

/// A factor that is neither 0 nor 1, with an imaginary part for complex T.
template <Scalar T>
T general() {
  return number<T>(is_complex<T> ? 2 : -2, -3);
}

template <Scalar T>
PaddedMatrix<T> integers(std::uint64_t seed, Index rows, Index cols, Index padding) {
  return {rows, cols, padding, [=](Index i, Index j) { return small_integer<T>(seed, i, j); }};
}

/// A matrix of numbers with inexact sums.
template <Scalar T>
PaddedMatrix<T> fractions(std::uint64_t seed, Index rows, Index cols, Index padding) {
  return {rows, cols, padding, [=](Index i, Index j) { return counter_random<T>(seed, i, j); }};
}

/// An output that must not be read.
template <Scalar T>
PaddedMatrix<T> nothing(Index rows, Index cols, Index padding) {
  return {rows, cols, padding, [](Index, Index) { return quiet_nan<T>(); }};
}

}  // namespace gridlops::testing
