// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <type_traits>

#include "base/numbers.hpp"
#include "local/arrays/array_kernels.hpp"
#include "local/threads.hpp"

// Shared by the host's products along a dimension.

namespace gridlops {

/// The elements that correlate() gets at a time. How it sums one depends on how many follow, so these are the
/// same for any number of threads.
inline constexpr Index correlated_at_once = 1024;

/// α sum + β old, where an old element that β cancels is not read.
template <Scalar T>
T updated(T alpha, T sum, T beta, const T& old) {
  const T scaled = product(alpha, sum);
  return beta == T(0) ? scaled : scaled + product(beta, old);
}

/// The weights of a row of a matrix, and the first row of a slice of X that they belong to.
template <class R>
struct WeightedRow {
  const R* weights;
  Index first, width;
};

/// How many slices are computed together, because each sum waits for its last addition.
inline constexpr Index slices_together = 8;

/// Some slices of add_slices(): `count` of them, from x and y on.
template <Scalar T, class RowOf, class Count>
void add_slice_block(T alpha, const RowOf& row_of, Count count, const T* x, T beta, T* y,
                     const LineExtent& extent) {
  const Index x_step = extent.x_rows.size, y_step = extent.y_rows.size;
  for (Index i = extent.rows.begin; i < extent.rows.end(); ++i) {
    const WeightedRow<Real<T>> row = row_of(i);
    T sums[slices_together] = {};
    for (Index k = 0; k < row.width; ++k) {
      const Real<T> weight = row.weights[k];
      if (weight == 0) continue;
      for (Index slice = 0; slice < count; ++slice) sums[slice] += weight * x[slice * x_step + row.first + k];
    }
    for (Index slice = 0; slice < count; ++slice) {
      T& element = y[slice * y_step + i - extent.y_rows.begin];
      element = updated(alpha, sums[slice], beta, element);
    }
  }
}

/// Y ← α A X + β Y for slices without neighbours, where row_of(i) is row i of A, of about this width.
template <Scalar T, class RowOf>
void add_slices(T alpha, const RowOf& row_of, double width, MatrixView<const T> X, T beta, MatrixView<T> Y,
                const LineExtent& extent) {
  constexpr Index together = slices_together;
  const Index blocks = (extent.outer + together - 1) / together;
  const double operations = static_cast<double>(Y.cols * extent.outer * extent.rows.size) * width;
  for_each_of(blocks * Y.cols, operations, [&](Index i) {
    const Index column = i / blocks, slice = i % blocks * together;
    const T* const x = X.column(column) + slice * extent.x_rows.size;
    T* const y = Y.column(column) + slice * extent.y_rows.size;
    const Index count = std::min(together, extent.outer - slice);
    const double each = static_cast<double>(count * extent.rows.size) * width;
    for_ranges(extent.rows.size, together, threads_for(each), [&](int, Range some) {
      LineExtent part = extent;
      part.rows = {extent.rows.begin + some.begin, some.size};
      if (count == together) {
        add_slice_block(alpha, row_of, std::integral_constant<Index, together>(), x, beta, y, part);
      } else {
        add_slice_block(alpha, row_of, count, x, beta, y, part);
      }
    });
  });
}

}  // namespace gridlops
