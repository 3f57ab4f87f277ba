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

// Migration (see migration.hpp): a batch of traces at a time, of a few columns. A column of a matrix of
// traces has one trace of the batch after the other.

/// Where a wave arrives in a trace: the sample before it, in the part of its wavelet, its distance from that
/// sample, and its weight. Late waves have no place.
template <class R>
struct Arrival {
  Index place = -1;
  R behind = 0, weight = 1;
};

/// The tables of a batch of traces, and the elements that a kernel may read of them.
template <class R>
struct BatchTables {
  MatrixView<const R> from_sources, to_receivers;
  MatrixView<const TraceColumns> columns;  // one column: of each trace of the batch
  Index samples, sources, receivers, terms, wavelets;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(from_sources);
    visit.reads(to_receivers);
    visit.reads(columns);
  }
  /// The arrival from a point in a trace of the batch.
  __host__ __device__ Arrival<R> arrival(Index trace, Index point) const {
    const TraceColumns of = columns.data[trace];
    const R time = from_sources(point, of.source) + to_receivers(point, of.receiver);
    if (!(time < static_cast<R>(samples - 1))) return {};
    const auto sample = static_cast<Index>(time);
    Index place = sample, first_term = 1;
    if (wavelets > 1) {
      const R width = from_sources(point, sources + of.source) + to_receivers(point, receivers + of.receiver),
              last = static_cast<R>(wavelets), rounded = width + R(0.5);
      const auto number = static_cast<Index>(rounded < last ? rounded : last);
      if (number > 1) place += samples * (number - 1);
      first_term = 2;
    }
    R weight = terms == 0 ? 1 : 0;
    for (Index q = first_term; q < first_term + terms; ++q)
      weight +=
          from_sources(point, q * sources + of.source) * to_receivers(point, q * receivers + of.receiver);
    return {place, time - static_cast<R>(sample), weight};
  }
};

/// Each trace of a batch, for one wavelet after the other, in several shares: strips(k, share) is what one
/// share of the image contributes to sample k. Each thread has a share of a column to itself, so that the
/// order of the sums is fixed.
template <class T>
struct SpreadImage {
  BatchTables<RealPart<T>> tables;
  MatrixView<const T> image;
  MatrixView<T> strips;  // shares · traces for each sample
  Index shares;

  template <class Visitor>
  void operands(Visitor&& visit) {
    tables.operands(visit);
    visit.reads(image);
    visit.writes(strips);
  }
  __host__ __device__ void operator()(Index trace, Index share_of_column) const {
    const Index column = quotient(share_of_column, shares), share = share_of_column - column * shares;
    const Index step = tables.columns.rows * shares;
    T* const strip = strips.column(column) + (share * tables.columns.rows + trace);
    for (Index k = 0; k < tables.samples * tables.wavelets; ++k) strip[k * step] = T{};
    for (Index i = share; i < image.rows; i += shares) {
      const auto [place, behind, weight] = tables.arrival(trace, i);
      if (place < 0) continue;
      const T echo = times(weight, image(i, column));
      T* const sums = strip + place * step;
      sums[0] = sums[0] + times(1 - behind, echo);
      sums[step] = sums[step] + times(behind, echo);
    }
  }
};

/// Sample k of each trace ← the sum of the shares.
template <class T>
struct CollectShares {
  MatrixView<const T> strips;
  Index shares, parts;  // parts: the samples of a trace, for all wavelets
  MatrixView<T> traces;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(strips);
    visit.writes(traces);
  }
  /// Element i of a column's strips of one share, where traces are neighbours.
  __host__ __device__ void operator()(Index i, Index column) const {
    const Index batch = quotient(traces.rows, parts), k = quotient(i, batch), trace = i - k * batch;
    T sum{};
    for (Index share = 0; share < shares; ++share)
      sum = sum + strips((k * shares + share) * batch + trace, column);
    traces(trace * parts + k, column) = sum;
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

/// Convolves the parts of each trace with one wavelet each, and sums them, or correlates each trace with all
/// wavelets: y(k) ← Σⱼ fⱼ x(k ± (c − j)), plus y(k) if it adds.
template <class T>
struct FilterTraces {
  MatrixView<const RealPart<T>> wavelets;  // one in each column
  Index centre, sign, samples, traces;
  bool adds;
  MatrixView<const T> X;
  MatrixView<T> Y;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(wavelets);
    visit.reads(X);
    visit.writes(Y);
  }
  __host__ __device__ void operator()(Index i, Index column) const {
    const Index x_rows = quotient(X.rows, traces), y_rows = quotient(Y.rows, traces);  // of a trace
    const Index trace = quotient(i, y_rows), k = i - trace * y_rows;
    // Either X or Y has several parts.
    const Index part = wavelets.cols == 1 ? 0 : quotient(k, samples), parts_of_X = quotient(x_rows, samples);
    const T* const x = X.column(column) + trace * x_rows;
    T sum{};
    for (Index p = 0; p < parts_of_X; ++p) {
      const RealPart<T>* const f = wavelets.column(part + p);
      for (Index j = 0; j < wavelets.rows; ++j) {
        const Index from = k - part * samples + sign * (centre - j);
        if (0 <= from && from < samples) sum = sum + times(f[j], x[p * samples + from]);
      }
    }
    Y(i, column) = adds ? Y(i, column) + sum : sum;
  }
};

/// image(i) ← image(i) + the samples of the traces at which point i arrives. On request it starts from 0
/// instead.
template <class T>
struct GatherImage {
  BatchTables<RealPart<T>> tables;
  MatrixView<const T> traces;
  bool begins;
  MatrixView<T> image;

  template <class Visitor>
  void operands(Visitor&& visit) {
    tables.operands(visit);
    visit.reads(traces);
    visit.writes(image);
  }
  __host__ __device__ void operator()(Index i, Index column) const {
    T sum{};
    if (!begins) sum = image(i, column);
    for (Index trace = 0; trace < tables.columns.rows; ++trace) {
      const auto [place, behind, weight] = tables.arrival(trace, i);
      if (place < 0) continue;
      const T* const samples = traces.column(column) + (trace * tables.samples * tables.wavelets + place);
      sum = sum + times(weight * (1 - behind), samples[0]);
      sum = sum + times(weight * behind, samples[1]);
    }
    image(i, column) = sum;
  }
};

}  // namespace gridlops::cuda
