// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "cuda/complex.hpp"
#include "local/array_kernels.hpp"

// What kernels of arrays do to one element: see kernel_bodies.hpp.

namespace gridlops::cuda {

/// The lines of a box along one of its outermost directions, as columns of a matrix: what a kernel may touch.
template <class T>
MatrixView<T> lines_of(T* data, const BoxLoops& box, const std::array<Index, BoxLoops::most>& strides) {
  if (box.count == 0) return {data, 1, 1};
  Index rows = 1;
  for (int d = 1; d < box.count; ++d)
    rows += (box.extents[static_cast<std::size_t>(d)] - 1) * strides[static_cast<std::size_t>(d)];
  if (rows <= strides[0]) return {data, rows, box.extents[0], strides[0]};
  return {data, rows + (box.extents[0] - 1) * strides[0], 1};
}

template <class T>
struct AddBox {
  T alpha;
  MatrixView<const T> X;  // from the first element of the box to its last
  T beta;
  MatrixView<T> Y;
  BoxLoops box;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(X);
    visit.writes(Y);
  }
  __host__ __device__ void operator()(Index i, Index) const {
    Index x = 0, y = 0;
    for (int d = box.count - 1; d >= 0; --d) {
      const Index along = i % box.extents[static_cast<std::size_t>(d)];
      i /= box.extents[static_cast<std::size_t>(d)];
      x += along * box.from[static_cast<std::size_t>(d)];
      y += along * box.to[static_cast<std::size_t>(d)];
    }
    const T sum = alpha * X.data[x];
    Y.data[y] = is_zero(beta) ? sum : sum + beta * Y.data[y];
  }
};

template <class T>
struct AddBand {
  T alpha;
  MatrixView<const RealPart<T>> weights;  // one column
  BandWeights<RealPart<T>> A;
  MatrixView<const T> X;
  T beta;
  MatrixView<T> Y;
  BandExtent extent;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(weights);
    visit.reads(X);
    visit.writes(Y);
  }
  __host__ __device__ void operator()(Index i, Index j) const {
    const Index neighbour = i % extent.inner;
    const Index row = extent.rows.begin + i / extent.inner % extent.rows.size;
    const Index slice = i / extent.inner / extent.rows.size;
    const RealPart<T>* const own = weights.data + A.set_of(row) * A.width;
    T sum{};
    for (Index k = 0; k < A.width; ++k) {
      if (own[k] == 0) continue;
      const Index at = slice * extent.x_rows.size + row + A.first + k - extent.x_rows.begin;
      sum = sum + times(own[k], X(at * extent.inner + neighbour, j));
    }
    T& y = Y((slice * extent.y_rows.size + row - extent.y_rows.begin) * extent.inner + neighbour, j);
    y = is_zero(beta) ? alpha * sum : alpha * sum + beta * y;
  }
};

}  // namespace gridlops::cuda
