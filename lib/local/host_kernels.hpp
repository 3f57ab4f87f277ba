// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/local/backend.hpp"
#include "local/arrays/array_kernels.hpp"

namespace gridlops {

/// The largest integer that BLAS accepts.
Index blas_limit();

/// C ← α op_a(A) op_b(B) + β C by BLAS calls in which no dimension exceeds limit. Throws UsageError if a
/// leading dimension does.
template <Scalar T>
void host_gemm(Op op_a, Op op_b, T alpha, MatrixView<const T> A, MatrixView<const T> B, T beta,
               MatrixView<T> C, Index limit);

template <Scalar T>
class HostKernels final : public Kernels<T> {
 public:
  void gemm(Op op_a, Op op_b, T alpha, MatrixView<const T> A, MatrixView<const T> B, T beta,
            MatrixView<T> C) const override;
  void gemm_batched(Index count, Op op_a, Op op_b, T alpha, MatrixBatch<const T> A, MatrixBatch<const T> B,
                    T beta, MatrixBatch<T> C) const override;
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
  const ArrayKernels<T>& arrays() const override { return host_array_kernels<T>(); }
};

}  // namespace gridlops
