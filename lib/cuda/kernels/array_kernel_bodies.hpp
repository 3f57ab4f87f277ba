// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "cuda/kernels/complex.hpp"
#include "cuda/kernels/kernel_bodies.hpp"
#include "local/arrays/array_kernels.hpp"

// The work of array kernels on one element: see kernel_bodies.hpp.

namespace gridlops::cuda {

/// a / b for a ≥ 0, b > 0. A GPU divides 64-bit integers in about a hundred instructions, and 32-bit ones in
/// ten.
__host__ __device__ inline Index quotient(Index a, Index b) {
  if (((a | b) >> 32) != 0) return a / b;
  return static_cast<Index>(static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b));
}

/// The lines of a box along one of its outermost directions, as columns of a matrix: the elements that a
/// kernel may touch.
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
      const Index extent = box.extents[static_cast<std::size_t>(d)], behind = quotient(i, extent);
      const Index along = i - behind * extent;
      i = behind;
      x += along * box.from[static_cast<std::size_t>(d)];
      y += along * box.to[static_cast<std::size_t>(d)];
    }
    const T sum = alpha * X.data[x];
    Y.data[y] = is_zero(beta) ? sum : sum + beta * Y.data[y];
  }
};

/// Result i of a product along lines: the slice, the row within those that are computed, and the neighbour.
struct LinePlace {
  Index slice, row, neighbour;

  __host__ __device__ LinePlace(Index i, const LineExtent& extent) {
    const Index line = quotient(i, extent.inner);
    slice = quotient(line, extent.rows.size);
    row = line - slice * extent.rows.size;
    neighbour = i - line * extent.inner;
  }
};

/// The product of a row of a line's band and the elements of column j of X along a dimension.
template <class T>
__host__ __device__ T row_times_line(const BandWeights<RealPart<T>>& A, const RealPart<T>* weights,
                                     const LineExtent& extent, const LinePlace& place, Index row,
                                     MatrixView<const T> X, Index j) {
  const RealPart<T>* const own = weights + A.place_of(place.slice, row, place.neighbour);
  const Range inside = A.inside(row);
  const Index first = place.slice * extent.x_rows.size + row + A.first - extent.x_rows.begin;
  T sum{};
  for (Index k = inside.begin; k < inside.end(); ++k) {
    const RealPart<T> weight = own[k * A.apart()];
    if (weight != 0) sum = sum + times(weight, X((first + k) * extent.inner + place.neighbour, j));
  }
  return sum;
}

template <class T>
struct AddBand {
  T alpha;
  MatrixView<const RealPart<T>> weights;  // one column
  BandWeights<RealPart<T>> A;
  MatrixView<const T> X;
  T beta;
  MatrixView<T> Y;
  LineExtent extent;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(weights);
    visit.reads(X);
    visit.writes(Y);
  }
  __host__ __device__ void operator()(Index i, Index j) const {
    const LinePlace place(i, extent);
    const Index row = extent.rows.begin + place.row;
    const T sum = row_times_line<T>(A, weights.data, extent, place, row, X, j);
    T& y =
        Y((place.slice * extent.y_rows.size + row - extent.y_rows.begin) * extent.inner + place.neighbour, j);
    y = is_zero(beta) ? alpha * sum : alpha * sum + beta * y;
  }
};

/// A few terms of ArrayKernels::add_bands(): the element of Y is read and written once.
template <class T>
struct AddBands {
  static constexpr Index most = 5;
  struct Term {
    MatrixView<const RealPart<T>> weights;  // one column
    BandWeights<RealPart<T>> A;
    LineExtent extent;
  };

  T alpha;
  Index count = 0;
  Term terms[most];
  MatrixView<const T> X;
  T beta;
  MatrixView<T> Y;

  template <class Visitor>
  void operands(Visitor&& visit) {
    for (Index k = 0; k < count; ++k) visit.reads(terms[k].weights);
    visit.reads(X);
    visit.writes(Y);
  }
  __host__ __device__ void operator()(Index i, Index j) const {
    T& y = Y(i, j);
    T sum{};
    if (!is_zero(beta)) sum = beta * y;
    for (Index k = 0; k < count; ++k) {
      const auto& [weights, A, extent] = terms[k];
      LineExtent whole = extent;
      whole.rows = extent.y_rows;
      const LinePlace place(i, whole);
      const Index row = whole.rows.begin + place.row;
      if (extent.rows.begin <= row && row < extent.rows.end())
        sum = sum + alpha * row_times_line<T>(A, weights.data, extent, place, row, X, j);
    }
    y = sum;
  }
};

template <class T>
struct AddRuns {
  T alpha;
  MatrixView<const Index> first, begin;   // one column each
  MatrixView<const RealPart<T>> weights;  // one column; without data, all are 1
  MatrixView<const T> X;
  T beta;
  MatrixView<T> Y;
  LineExtent extent;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(first);
    visit.reads(begin);
    visit.reads(weights);
    visit.reads(X);
    visit.writes(Y);
  }
  __host__ __device__ void operator()(Index i, Index j) const {
    const LinePlace place(i, extent);
    const Index row = extent.rows.begin - extent.y_rows.begin + place.row, column = first.data[row];
    Index from =
        (place.slice * extent.x_rows.size + column - extent.x_rows.begin) * extent.inner + place.neighbour;
    T sum{};
    if (begin.data == nullptr) {
      if (column >= 0) sum = X(from, j);
    } else {
      for (Index k = begin.data[row]; k < begin.data[row + 1]; ++k, from += extent.inner)
        sum = sum + times(weights.data[k], X(from, j));
    }
    T& y = Y((place.slice * extent.y_rows.size + row) * extent.inner + place.neighbour, j);
    y = is_zero(beta) ? alpha * sum : alpha * sum + beta * y;
  }
};

/// The first row of a group, as RowGroups::first_row() has it.
__host__ __device__ inline Index first_row_of(const RowGroups& groups, Index group) {
  const Index slice = quotient(group, groups.inner);
  return group + slice * (groups.count - 1) * groups.inner;
}

template <class T>
struct GroupNorms {
  RowGroups groups;
  MatrixView<const T> X;
  MatrixView<T> N;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(X);
    visit.writes(N);
  }
  __host__ __device__ void operator()(Index g, Index j) const {
    const Index first = first_row_of(groups, g);
    double sum = 0;
    for (Index k = 0; k < groups.count; ++k) sum += squared(X(first + k * groups.inner, j));
    const auto norm = static_cast<RealPart<T>>(std::sqrt(sum));
    if constexpr (is_device_complex<T>) {
      N(g, j) = {norm, 0};
    } else {
      N(g, j) = norm;
    }
  }
};

/// The comparisons keep NaN as NaN.
template <class R>
__host__ __device__ R boxed(BoxKind kind, R t, R v, R x, R lower, R upper) {
  const bool is_low = x <= lower, is_high = x >= upper;
  if (kind == BoxKind::free) return is_low || is_high ? R(0) : v;
  if (kind == BoxKind::chopped) return is_low == is_high || (is_low ? v <= 0 : v >= 0) ? R(0) : v;
  if (kind == BoxKind::reach) {
    const auto longest = static_cast<R>(sizeof(R) == 4 ? 0x1p126 : 0x1p1022);  // of it 1/t is a normal number
    const R reach = v > 0 ? v / (upper - x) : v < 0 ? -v / (x - lower) : v;
    return reach > longest ? longest : reach;
  }
  if (kind == BoxKind::nearest) return x < lower ? lower : x > upper ? upper : x;
  const R way = t * v;
  if (kind == BoxKind::arc) return way < lower - x ? lower - x : way > upper - x ? upper - x : way;
  const R y = x + way, of_x = x < 0 ? -x : x, of_way = way < 0 ? -way : way,
          slack = 4 * (sizeof(R) == 4 ? R(0x1p-23) : R(0x1p-52)) * (of_x < of_way ? of_way : of_x);
  return way < 0 && y <= lower + slack ? lower : way > 0 && y >= upper - slack ? upper : y;
}

template <class T>
struct Boxed {
  BoxKind kind;
  ColumnValues<double> t;
  MatrixView<const T> V, X, lower, upper;
  MatrixView<T> Y;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(V);
    visit.reads(X);
    visit.reads(lower);
    visit.reads(upper);
    visit.writes(Y);
  }
  __host__ __device__ void operator()(Index i, Index j) const {
    const auto factor = static_cast<RealPart<T>>(t.value[j]);
    const T v = V(i, j), x = X(i, j), l = lower(i, j), u = upper(i, j);
    if constexpr (is_device_complex<T>) {
      Y(i, j) = {boxed(kind, factor, v.re, x.re, l.re, u.re), boxed(kind, factor, v.im, x.im, l.im, u.im)};
    } else {
      Y(i, j) = boxed(kind, factor, v, x, l, u);
    }
  }
};

template <class T>
struct ShrinkGroups {
  ColumnValues<double> t;
  RowGroups groups;
  MatrixView<const T> N;
  MatrixView<T> X;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(N);
    visit.writes(X);
  }
  __host__ __device__ void operator()(Index g, Index j) const {
    const double n = magnitude(N(g, j)), factor = n <= t.value[j] ? 0 : (n - t.value[j]) / n;
    const Index first = first_row_of(groups, g);
    for (Index k = 0; k < groups.count; ++k) {
      T& x = X(first + k * groups.inner, j);
      x = times(static_cast<RealPart<T>>(factor), x);
    }
  }
};

}  // namespace gridlops::cuda
