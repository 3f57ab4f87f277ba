// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <span>

#include "cuda/kernels/complex.hpp"
#include "cuda/kernels/kernel_bodies.hpp"
#include "cuda/kernels/sum_bodies.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/local/backend.hpp"
#include "local/arrays/array_kernels.hpp"
#include "local/products/narrow_matrix.hpp"

namespace gridlops::cuda {

/// The number of shares of a sum over the rows: enough blocks of threads for a GPU, where one column has
/// many rows.
inline Index shares_of(Index rows) { return std::clamp<Index>((rows + 1023) / 1024, 1, 1024); }

/// Launches the kernels on `stream`, with one launch each. Where every column has a scalar of its own, which
/// is the host's, there is one launch for as many columns as fit ColumnValues. Shapes are those of
/// Kernels<T>. T is a DeviceScalar.
template <class T>
struct Launch {
  static cudaError_t copy(cudaStream_t stream, MatrixView<const T> X, MatrixView<T> Y);
  static cudaError_t fill(cudaStream_t stream, T value, MatrixView<T> X);
  /// Writes the n numbers of elements of T that are stored in a lower precision.
  static cudaError_t widen(cudaStream_t stream, Index n, Precision from_precision, const std::byte* from,
                           T* to);
  static cudaError_t add(cudaStream_t stream, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y);
  static cudaError_t diagonal_multiply(cudaStream_t stream, T alpha, const T* d, bool conjugate_d,
                                       MatrixView<const T> X, T beta, MatrixView<T> Y);
  static cudaError_t column_sums(cudaStream_t stream, const SumLaunch<T>& sums);
  static cudaError_t column_updates(cudaStream_t stream, const UpdateLaunch<T>& updates);
  static cudaError_t column_threshold(cudaStream_t stream, Threshold kind, const double* t, MatrixView<T> X);
  static cudaError_t clip(cudaStream_t stream, double lower, double upper, MatrixView<T> X);
};

/// Launches the kernels of ArrayKernels<T>.
template <class T>
struct ArrayLaunch {
  static cudaError_t add_box(cudaStream_t stream, T alpha, const T* x, T beta, T* y, const BoxLoops& box);
  static cudaError_t add_band(cudaStream_t stream, T alpha, const BandWeights<RealPart<T>>& A,
                              MatrixView<const T> X, T beta, MatrixView<T> Y, const LineExtent& extent);
  /// Adds the number of launched kernels to `launches`.
  static cudaError_t add_bands(cudaStream_t stream, T alpha, std::span<const BandTerm<RealPart<T>>> terms,
                               MatrixView<const T> X, T beta, MatrixView<T> Y, int& launches);
  static cudaError_t add_runs(cudaStream_t stream, T alpha, const RunWeights<RealPart<T>>& A,
                              MatrixView<const T> X, T beta, MatrixView<T> Y, const LineExtent& extent);

  static cudaError_t group_norms(cudaStream_t stream, const RowGroups& groups, MatrixView<const T> X,
                                 MatrixView<T> N);
  static cudaError_t shrink_groups(cudaStream_t stream, const double* t, const RowGroups& groups,
                                   MatrixView<const T> N, MatrixView<T> X);
  static cudaError_t box_update(cudaStream_t stream, BoxKind kind, const double* t, MatrixView<const T> V,
                                MatrixView<const T> X, MatrixView<const T> lower, MatrixView<const T> upper,
                                MatrixView<T> Y);

  // Processes columns of images and data, a batch of traces at a time, in scratch memory of this many
  // elements. They add the number of launched kernels to `launches`.
  using Tables = MigrationTables<RealPart<T>>;
  static Index migration_scratch(const Tables& tables, Index columns);
  static cudaError_t demigrate(cudaStream_t stream, const Tables& tables, bool adds,
                               MatrixView<const T> image, MatrixView<T> data, T* scratch, int& launches);
  static cudaError_t migrate(cudaStream_t stream, const Tables& tables, MatrixView<const T> data,
                             MatrixView<T> image, T* scratch, int& launches);
};

/// resultᵢ ← the reduction of row i of `contributions`, in the order of its columns, one per rank.
template <class T>
cudaError_t launch_rank_fold(cudaStream_t stream, ReduceOp op, MatrixView<const T> contributions, T* result);

}  // namespace gridlops::cuda
