// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/kernels/kernels.hpp"

#include <parallel.hpp>

#include <algorithm>
#include <cmath>

#include "cuda/kernels/array_kernel_bodies.hpp"
#include "cuda/kernels/kernel_bodies.hpp"
#include "cuda/kernels/migration_bodies.hpp"

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

template <class T>
cudaError_t ArrayLaunch<T>::box_update(cudaStream_t stream, BoxKind kind, const double* t,
                                       MatrixView<const T> V, MatrixView<const T> X,
                                       MatrixView<const T> lower, MatrixView<const T> upper,
                                       MatrixView<T> Y) {
  return for_columns(stream, "box_update", t, Y.rows, Y.cols,
                     [=](const ColumnValues<double>& values, Range columns) {
                       return Boxed<T>{kind,
                                       values,
                                       V.col_block(columns),
                                       X.col_block(columns),
                                       lower.col_block(columns),
                                       upper.col_block(columns),
                                       Y.col_block(columns)};
                     });
}

/// The number of traces that are migrated at once, of shares of the image, and of columns: enough threads for
/// a GPU, in memory for a bounded number of traces. A column's sums do not depend on the number of columns.
struct MigrationBatch {
  template <class Tables>
  explicit MigrationBatch(const Tables& tables)
      : traces(std::clamp<Index>(tables.traces, 1, std::max<Index>(4096 / tables.wavelets, 1))),
        shares(std::clamp<Index>(16384 / (traces * tables.wavelets), 1, std::max<Index>(tables.points, 1))),
        columns(std::max<Index>(65536 / (traces * tables.wavelets * shares), 1)),
        parts(tables.samples * tables.wavelets) {}
  /// Calls work(columns, traces) for all batches, until a launch fails.
  template <class Work>
  cudaError_t for_each(Index all_columns, Index all_traces, const Work& work) const {
    cudaError_t error = cudaSuccess;
    for (Index c = 0; c < all_columns; c += columns)
      for (Index t = 0; t < all_traces && error == cudaSuccess; t += traces)
        error =
            work(Range{c, std::min(columns, all_columns - c)}, Range{t, std::min(traces, all_traces - t)});
    return error;
  }
  Index traces, shares, columns;
  Index parts;  // of a trace: its samples, for each wavelet
};

/// Launches kernels one after the other, until one fails.
class Launches {
 public:
  explicit Launches(int& count) : count_(count) {}
  template <class Body>
  Launches& add(cudaStream_t stream, const char* name, Index rows, Index cols, const Body& body) {
    if (error_ != cudaSuccess) return *this;
    error_ = for_each_element(stream, name, rows, cols, body);
    ++count_;
    return *this;
  }
  cudaError_t error() const { return error_; }

 private:
  int& count_;
  cudaError_t error_ = cudaSuccess;
};

namespace {

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
Index ArrayLaunch<T>::migration_scratch(const Tables& tables, Index columns) {
  const MigrationBatch batch(tables);
  return std::min(columns, batch.columns) * batch.parts * batch.traces * (batch.shares + 1);
}

template <class T>
cudaError_t ArrayLaunch<T>::demigrate(cudaStream_t stream, const Tables& tables, bool adds,
                                      MatrixView<const T> image, MatrixView<T> data, T* scratch,
                                      int& launches) {
  const MigrationBatch batch(tables);
  return batch.for_each(data.cols, tables.traces, [&](Range columns, Range some) {
    const Index rows = batch.parts * some.size;
    const MatrixView<T> strips(scratch, rows * batch.shares, columns.size);
    const MatrixView<T> spread(scratch + strips.size(), rows, columns.size);
    const MatrixView<T> traces =
        data.block({some.begin * tables.samples, some.size * tables.samples}, columns);
    return Launches(launches)
        .add(stream, "spread_image", some.size, batch.shares * columns.size,
             SpreadImage<T>{batch_of(tables, some), image.col_block(columns), strips, batch.shares})
        .add(stream, "collect_shares", rows, columns.size,
             CollectShares<T>{strips, batch.shares, batch.parts, spread})
        .add(stream, "convolve_traces", traces.rows, columns.size,
             FilterTraces<T>{wavelets_of(tables), tables.centre, 1, tables.samples, some.size, adds, spread,
                             traces})
        .error();
  });
}

template <class T>
cudaError_t ArrayLaunch<T>::migrate(cudaStream_t stream, const Tables& tables, MatrixView<const T> data,
                                    MatrixView<T> image, T* scratch, int& launches) {
  if (tables.traces == 0)
    return Launches(launches).add(stream, "fill", image.rows, image.cols, Fill<T>{T{}, image}).error();
  const MigrationBatch batch(tables);
  return batch.for_each(image.cols, tables.traces, [&](Range columns, Range some) {
    const MatrixView<const T> traces =
        data.block({some.begin * tables.samples, some.size * tables.samples}, columns);
    const MatrixView<T> correlated(scratch, batch.parts * some.size, columns.size);
    return Launches(launches)
        .add(stream, "correlate_traces", correlated.rows, columns.size,
             FilterTraces<T>{wavelets_of(tables), tables.centre, -1, tables.samples, some.size, false, traces,
                             correlated})
        .add(stream, "gather_image", tables.points, columns.size,
             GatherImage<T>{batch_of(tables, some), correlated, some.begin == 0, image.col_block(columns)})
        .error();
  });
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
