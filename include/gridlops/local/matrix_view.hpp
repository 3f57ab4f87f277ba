// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>

#include "gridlops/base/export.hpp"
#include "gridlops/base/types.hpp"

namespace gridlops {

/// A column-major block that someone else owns: element (i, j) is at data[i + j·stride], where stride (the
/// leading dimension) is ≥ rows. T may be const. The memory belongs to some Backend; element access and
/// iteration work on host memory only. A view without elements may have a null pointer.
template <class T>
struct MatrixView {
  T* data = nullptr;
  Index rows = 0;
  Index cols = 0;
  Index stride = 0;

  constexpr MatrixView() = default;
  constexpr MatrixView(T* data_, Index rows_, Index cols_, Index stride_)
      : data(data_), rows(rows_), cols(cols_), stride(stride_) {}
  /// A block without gaps between columns.
  constexpr MatrixView(T* data_, Index rows_, Index cols_) : MatrixView(data_, rows_, cols_, rows_) {}

  constexpr operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, cols, stride};
  }

  constexpr bool empty() const { return rows == 0 || cols == 0; }
  /// Whether all elements lie one after the other, so that the block is also an array of rows·cols elements.
  constexpr bool contiguous() const { return stride == rows || cols <= 1 || rows == 0; }
  constexpr Index size() const { return rows * cols; }

  constexpr T& operator()(Index i, Index j) const { return data[i + j * stride]; }
  constexpr T* column(Index j) const { return data + j * stride; }

  constexpr MatrixView block(Range row_range, Range col_range) const {
    // An empty block must not point outside the array that it was cut from.
    T* origin =
        row_range.size == 0 || col_range.size == 0 ? data : data + row_range.begin + col_range.begin * stride;
    return {origin, row_range.size, col_range.size, stride};
  }
  constexpr MatrixView row_block(Range range) const { return block(range, {0, cols}); }
  constexpr MatrixView col_block(Range range) const { return block({0, rows}, range); }
};

/// to ← fromᵀ, without conjugation. Both are in host memory and must not overlap. Not collective; throws
/// ShapeError, on this rank alone, unless `to` is from.cols × from.rows.
///
/// Converts between row-major and column-major blocks: a row-major block of m × n elements, whose rows begin
/// `stride` elements apart, is the transpose of the view {data, n, m, stride}.
///
///   transpose<double>({data, n, m, stride}, X.local());
template <Scalar T>
GRIDLOPS_EXPORT void transpose(MatrixView<const T> from, MatrixView<T> to);

}  // namespace gridlops
