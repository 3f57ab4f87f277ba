// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cublas_v2.h>

#include <memory>

#include "cuda/device_context.hpp"
#include "gridlops/local/backend.hpp"
#include "local/arrays/array_kernels.hpp"

namespace gridlops::cuda {

/// Device memory that grows on demand, for use in one stream only.
class StreamMemory {
 public:
  StreamMemory(DeviceContext& context, cudaStream_t stream) : context_(context), stream_(stream) {}
  ~StreamMemory() { release(); }
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;

  /// Returns memory for this many bytes, with any content. Throws OutOfMemory on this rank alone.
  void* reserve(Index bytes);
  void release() noexcept;

 private:
  DeviceContext& context_;
  cudaStream_t stream_;
  void* data_ = nullptr;
  Index size_ = 0;
};

/// The state that the kernels of all element types share.
struct KernelEnvironment {
  explicit KernelEnvironment(DeviceContext& context_)
      : context(context_),
        partial_sums(context_, context_.compute()),
        widened(context_, context_.compute()),
        tickets_(context_, context_.compute()) {}
  ~KernelEnvironment() {
    if (blas != nullptr) cublasDestroy(blas);
  }
  KernelEnvironment(const KernelEnvironment&) = delete;
  KernelEnvironment& operator=(const KernelEnvironment&) = delete;

  DeviceContext& context;
  cublasHandle_t blas = nullptr;
  StreamMemory partial_sums, widened;
  Index launches = 0;

  /// `count` zeros, which kernels leave as zeros. Throws OutOfMemory on this rank alone.
  unsigned* tickets(Index count);

  /// The compute stream of the device, which this makes current in the calling thread.
  cudaStream_t stream() {
    context.make_current();
    return context.compute();
  }
  /// Checks the result of this many launches, and counts them.
  void begun(cudaError_t result, const char* what, int count = 1) {
    check(result, what);
    launches += count;
  }

 private:
  StreamMemory tickets_;
  Index zeros_ = 0;
};

/// The transform for a GPU's memory, by cuFFT (see gpu_transform.cpp).
template <Scalar T>
std::unique_ptr<LineTransform<T>> make_gpu_transform(KernelEnvironment& environment,
                                                     const std::shared_ptr<Backend>& backend,
                                                     const FourierLines& lines);

/// The kernels of array operators.
template <Scalar T>
class CudaArrayKernels final : public ArrayKernels<T> {
 public:
  explicit CudaArrayKernels(KernelEnvironment& environment) : environment_(environment) {}

  void add_box(T alpha, const T* x, T beta, T* y, const BoxLoops& box) const override;
  void add_band(T alpha, const BandWeights<Real<T>>& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                const LineExtent& extent) const override;
  void add_bands(T alpha, const std::vector<BandTerm<Real<T>>>& terms, MatrixView<const T> X, T beta,
                 MatrixView<T> Y) const override;
  void add_runs(T alpha, const RunWeights<Real<T>>& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                const LineExtent& extent) const override;
  void group_norms(const RowGroups& groups, MatrixView<const T> X, MatrixView<T> N) const override;
  void shrink_groups(const double* t, const RowGroups& groups, MatrixView<const T> N,
                     MatrixView<T> X) const override;
  void box_update(const BoxUpdate<T>& update) const override;
  Index migration_scratch_bytes(const MigrationTables<Real<T>>& tables, Index columns) const override;
  void demigrate(const MigrationTables<Real<T>>& tables, bool adds, MatrixView<const T> image,
                 MatrixView<T> data, std::byte* scratch) const override;
  void migrate(const MigrationTables<Real<T>>& tables, MatrixView<const T> data, MatrixView<T> image,
               std::byte* scratch) const override;
  std::unique_ptr<LineTransform<T>> line_transform(const std::shared_ptr<Backend>& backend,
                                                   const FourierLines& lines) const override {
    return make_gpu_transform<T>(environment_, backend, lines);
  }

 private:
  KernelEnvironment& environment_;
};

/// The kernels of a GPU, which run in the compute stream of the device.
template <Scalar T>
class CudaKernels final : public Kernels<T> {
 public:
  explicit CudaKernels(KernelEnvironment& environment) : environment_(environment), arrays_(environment) {}

  void gemm(Op op_a, Op op_b, T alpha, MatrixView<const T> A, MatrixView<const T> B, T beta,
            MatrixView<T> C) const override;
  void gemm_batched(Index count, Op op_a, Op op_b, T alpha, MatrixBatch<const T> A, MatrixBatch<const T> B,
                    T beta, MatrixBatch<T> C) const override;
  void reserve_narrow_gemm() const override;
  Index narrow_strip(Index rows) const override;
  void narrow_gemm(Op op, T alpha, std::span<const NarrowMatrix<T>> A, MatrixView<const T> X, T beta,
                   MatrixView<T> Y) const override;
  void copy(MatrixView<const T> X, MatrixView<T> Y) const override;
  void fill(T value, MatrixView<T> X) const override;
  void add(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const override;
  void diagonal_multiply(T alpha, const T* d, bool conjugate_d, MatrixView<const T> X, T beta,
                         MatrixView<T> Y) const override;
  void column_sums(std::span<const ColumnTerm<T>> terms) const override;
  void column_updates(std::span<const BlockUpdate<T>> updates) const override;
  void column_threshold(Threshold kind, const double* t, MatrixView<T> X) const override;
  void clip(double lower, double upper, MatrixView<T> X) const override;
  const ArrayKernels<T>& arrays() const override { return arrays_; }

 private:
  cudaStream_t stream() const { return environment_.stream(); }
  void begun(cudaError_t result, const char* what, int launches = 1) const {
    environment_.begun(result, what, launches);
  }
  KernelEnvironment& environment_;
  CudaArrayKernels<T> arrays_;
};

}  // namespace gridlops::cuda
