// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/kernels/kernels.hpp"

#include <parallel.hpp>

#include <algorithm>
#include <cmath>

#include "cuda/kernels/array_kernel_bodies.hpp"
#include "cuda/kernels/kernel_bodies.hpp"

namespace gridlops::cuda {

namespace {

/// Launches a kernel for every group of columns whose scalars fit ColumnValues: body(scalars, columns).
template <class Value, class MakeBody>
cudaError_t for_columns(cudaStream_t stream, const char* name, const Value* scalars, Index rows, Index cols,
                        const MakeBody& body) {
  using Values = ColumnValues<Value>;
  for (Index begin = 0; begin < cols; begin += Values::most) {
    const Range columns{begin, std::min(Values::most, cols - begin)};
    Values values{};
    std::copy_n(scalars + begin, columns.size, values.value);
    const cudaError_t error = for_each_element(stream, name, rows, columns.size, body(values, columns));
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace

template <class T>
cudaError_t Launch<T>::copy(cudaStream_t stream, MatrixView<const T> X, MatrixView<T> Y) {
  return for_each_element(stream, "copy", Y.rows, Y.cols, Copy<T>{X, Y});
}

template <class T>
cudaError_t Launch<T>::fill(cudaStream_t stream, T value, MatrixView<T> X) {
  return for_each_element(stream, "fill", X.rows, X.cols, Fill<T>{value, X});
}

template <class T>
cudaError_t Launch<T>::widen(cudaStream_t stream, Index n, Precision from_precision, const std::byte* from,
                             T* to) {
  const MatrixView<RealPart<T>> numbers(reinterpret_cast<RealPart<T>*>(to), n, 1);
  const auto launch = [&](const auto* stored) {
    using Stored = std::remove_cvref_t<decltype(*stored)>;
    return for_each_element(stream, "widen", n, 1, Widen<Stored, RealPart<T>>{{stored, n, 1}, numbers});
  };
  return from_precision == Precision::bfloat16 ? launch(reinterpret_cast<const std::uint16_t*>(from))
                                               : launch(reinterpret_cast<const float*>(from));
}

template <class T>
cudaError_t Launch<T>::add(cudaStream_t stream, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) {
  return for_each_element(stream, "add", Y.rows, Y.cols, Add<T>{alpha, X, beta, Y});
}

template <class T>
cudaError_t Launch<T>::diagonal_multiply(cudaStream_t stream, T alpha, const T* d, bool conjugate_d,
                                         MatrixView<const T> X, T beta, MatrixView<T> Y) {
  return for_each_element(stream, "diagonal_multiply", Y.rows, Y.cols,
                          DiagonalMultiply<T>{alpha, {d, Y.rows, 1}, conjugate_d, X, beta, Y});
}

template <class T>
cudaError_t Launch<T>::column_sums(cudaStream_t stream, const SumLaunch<T>& sums) {
  return sum_columns(stream, "column_sums", sums);
}

template <class T>
cudaError_t Launch<T>::column_updates(cudaStream_t stream, const UpdateLaunch<T>& updates) {
  static_assert(sizeof updates + 2 * sizeof(Index) <= 4096);
  return for_each_element(stream, "column_updates", updates.rows, updates.cols, updates);
}

template <class T>
cudaError_t Launch<T>::column_threshold(cudaStream_t stream, Threshold kind, const double* t,
                                        MatrixView<T> X) {
  return for_columns(stream, "column_threshold", t, X.rows, X.cols,
                     [=](const ColumnValues<double>& values, Range columns) {
                       return ColumnThreshold<T>{kind, values, X.col_block(columns)};
                     });
}

template <class T>
cudaError_t Launch<T>::clip(cudaStream_t stream, double lower, double upper, MatrixView<T> X) {
  return for_each_element(stream, "clip", X.rows, X.cols,
                          Clip<T>{static_cast<RealPart<T>>(lower), static_cast<RealPart<T>>(upper), X});
}

template <class T>
cudaError_t ArrayLaunch<T>::add_box(cudaStream_t stream, T alpha, const T* x, T beta, T* y,
                                    const BoxLoops& box) {
  return for_each_element(stream, "add_box", box.size(), 1,
                          AddBox<T>{alpha, lines_of(x, box, box.from), beta, lines_of(y, box, box.to), box});
}

template <class T>
cudaError_t ArrayLaunch<T>::add_band(cudaStream_t stream, T alpha, const BandWeights<RealPart<T>>& A,
                                     MatrixView<const T> X, T beta, MatrixView<T> Y,
                                     const LineExtent& extent) {
  return for_each_element(stream, "add_band", extent.outer * extent.rows.size * extent.inner, Y.cols,
                          AddBand<T>{alpha, {A.data, A.count(extent.outer), 1}, A, X, beta, Y, extent});
}

template <class T>
cudaError_t ArrayLaunch<T>::add_bands(cudaStream_t stream, T alpha,
                                      std::span<const BandTerm<RealPart<T>>> terms, MatrixView<const T> X,
                                      T beta, MatrixView<T> Y, int& launches) {
  cudaError_t error = cudaSuccess;
  T one{};
  if constexpr (is_device_complex<T>) {
    one.re = 1;
  } else {
    one = 1;
  }
  AddBands<T> body{alpha, 0, {}, X, beta, Y};
  for (std::size_t k = 0; k < terms.size() && error == cudaSuccess; ++k) {
    const auto& [A, extent] = terms[k];
    body.terms[body.count++] = {{A.data, A.count(extent.outer), 1}, A, extent};
    if (body.count < body.most && k + 1 < terms.size()) continue;
    error = for_each_element(stream, "add_bands", Y.rows, Y.cols, body);
    ++launches;
    body.count = 0;
    body.beta = one;
  }
  return error;
}

template <class T>
cudaError_t ArrayLaunch<T>::add_runs(cudaStream_t stream, T alpha, const RunWeights<RealPart<T>>& A,
                                     MatrixView<const T> X, T beta, MatrixView<T> Y,
                                     const LineExtent& extent) {
  const Index ends = A.begin == nullptr ? 0 : A.rows + 1;
  return for_each_element(
      stream, "add_runs", extent.outer * extent.rows.size * extent.inner, Y.cols,
      AddRuns<T>{
          alpha, {A.first, A.rows, 1}, {A.begin, ends, 1}, {A.weights, A.elements, 1}, X, beta, Y, extent});
}

template <class T>
cudaError_t ArrayLaunch<T>::group_norms(cudaStream_t stream, const RowGroups& groups, MatrixView<const T> X,
                                        MatrixView<T> N) {
  return for_each_element(stream, "group_norms", N.rows, N.cols, GroupNorms<T>{groups, X, N});
}

template <class T>
cudaError_t ArrayLaunch<T>::shrink_groups(cudaStream_t stream, const double* t, const RowGroups& groups,
                                          MatrixView<const T> N, MatrixView<T> X) {
  return for_columns(stream, "shrink_groups", t, N.rows, N.cols,
                     [=](const ColumnValues<double>& values, Range columns) {
                       return ShrinkGroups<T>{values, groups, N.col_block(columns), X.col_block(columns)};
                     });
}

namespace {

/// The number of traces that are migrated at once, and of shares of the image: enough threads for a GPU, in
/// memory for a bounded number of traces.
struct MigrationBatch {
  template <class Tables>
  explicit MigrationBatch(const Tables& tables)
      : traces(std::clamp<Index>(tables.traces, 1, std::max<Index>(4096 / tables.wavelets, 1))),
        shares(std::clamp<Index>(16384 / (traces * tables.wavelets), 1, std::max<Index>(tables.points, 1))) {}
  Index traces, shares;
};

template <class Tables>
auto batch_of(const Tables& tables, Range traces) {
  using R = std::remove_cvref_t<decltype(*tables.wavelet)>;
  return BatchTables<R>{{tables.from_sources, tables.points, tables.sources * tables.layers()},
                        {tables.to_receivers, tables.points, tables.receivers * tables.layers()},
                        {tables.columns + traces.begin, traces.size, 1},
                        tables.samples,
                        tables.sources,
                        tables.receivers,
                        tables.terms,
                        tables.wavelets};
}
template <class Tables>
auto wavelets_of(const Tables& tables) {
  using R = std::remove_cvref_t<decltype(*tables.wavelet)>;
  return MatrixView<const R>(tables.wavelet, tables.length, tables.wavelets);
}

}  // namespace

template <class T>
Index ArrayLaunch<T>::migration_scratch(const Tables& tables) {
  const MigrationBatch batch(tables);
  return tables.samples * tables.wavelets * batch.traces * (batch.shares + 1);
}

template <class T>
cudaError_t ArrayLaunch<T>::demigrate(cudaStream_t stream, const Tables& tables, bool adds,
                                      MatrixView<const T> image, MatrixView<T> data, T* scratch,
                                      int& launches) {
  const MigrationBatch batch(tables);
  const Index samples = tables.samples, parts = samples * tables.wavelets;
  cudaError_t error = cudaSuccess;
  const auto launched = [&](cudaError_t result) {
    error = result;
    ++launches;
    return result == cudaSuccess;
  };
  for (Index c = 0; c < data.cols; ++c) {
    for (Index begin = 0; begin < tables.traces; begin += batch.traces) {
      const Range some{begin, std::min(batch.traces, tables.traces - begin)};
      const MatrixView<T> strips(scratch, parts * some.size * batch.shares, 1);
      const MatrixView<T> spread(scratch + strips.rows, parts, some.size);
      const MatrixView<T> traces(data.column(c) + begin * samples, samples, some.size);
      if (!launched(for_each_element(
              stream, "spread_image", some.size, batch.shares,
              SpreadImage<T>{
                  batch_of(tables, some), {image.column(c), tables.points, 1}, strips, batch.shares})) ||
          !launched(for_each_element(stream, "collect_shares", parts, some.size,
                                     CollectShares<T>{strips, batch.shares, spread})) ||
          !launched(for_each_element(
              stream, "convolve_traces", samples, some.size,
              FilterTraces<T>{wavelets_of(tables), tables.centre, 1, samples, adds, spread, traces})))
        return error;
    }
  }
  return error;
}

template <class T>
cudaError_t ArrayLaunch<T>::migrate(cudaStream_t stream, const Tables& tables, MatrixView<const T> data,
                                    MatrixView<T> image, T* scratch, int& launches) {
  const MigrationBatch batch(tables);
  const Index samples = tables.samples, parts = samples * tables.wavelets;
  cudaError_t error = cudaSuccess;
  const auto launched = [&](cudaError_t result) {
    error = result;
    ++launches;
    return result == cudaSuccess;
  };
  for (Index c = 0; c < image.cols; ++c) {
    const MatrixView<T> sums(image.column(c), tables.points, 1);
    if (tables.traces == 0 && !launched(Launch<T>::fill(stream, T{}, sums))) return error;
    for (Index begin = 0; begin < tables.traces; begin += batch.traces) {
      const Range some{begin, std::min(batch.traces, tables.traces - begin)};
      const MatrixView<const T> traces(data.column(c) + begin * samples, samples, some.size);
      const MatrixView<T> correlated(scratch, parts, some.size);
      if (!launched(for_each_element(
              stream, "correlate_traces", parts, some.size,
              FilterTraces<T>{wavelets_of(tables), tables.centre, -1, samples, false, traces, correlated})) ||
          !launched(for_each_element(stream, "gather_image", tables.points, 1,
                                     GatherImage<T>{batch_of(tables, some), correlated, begin == 0, sums})))
        return error;
    }
  }
  return error;
}

template <class T>
cudaError_t launch_rank_fold(cudaStream_t stream, ReduceOp op, MatrixView<const T> contributions, T* result) {
  return for_each_element(stream, "rank_fold", contributions.rows, 1,
                          RankFold<T>{op, contributions, {result, contributions.rows, 1}});
}

template struct Launch<float>;
template struct Launch<double>;
template struct Launch<Complex<float>>;
template struct Launch<Complex<double>>;
template struct ArrayLaunch<float>;
template struct ArrayLaunch<double>;
template struct ArrayLaunch<Complex<float>>;
template struct ArrayLaunch<Complex<double>>;

template cudaError_t launch_rank_fold(cudaStream_t, ReduceOp, MatrixView<const float>, float*);
template cudaError_t launch_rank_fold(cudaStream_t, ReduceOp, MatrixView<const double>, double*);
template cudaError_t launch_rank_fold(cudaStream_t, ReduceOp, MatrixView<const std::int32_t>, std::int32_t*);
template cudaError_t launch_rank_fold(cudaStream_t, ReduceOp, MatrixView<const std::int64_t>, std::int64_t*);

}  // namespace gridlops::cuda
