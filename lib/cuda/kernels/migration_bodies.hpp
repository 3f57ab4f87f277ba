// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>

#include "cuda/kernels/array_kernel_bodies.hpp"
#include "cuda/kernels/complex.hpp"
#include "cuda/kernels/kernel_bodies.hpp"
#include "local/arrays/array_kernels.hpp"

// The work of migration (see migration.hpp) on one element: a batch of traces at a time, of a few columns. A
// column of a matrix of traces has one trace of the batch after the other.

namespace gridlops::cuda {

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
