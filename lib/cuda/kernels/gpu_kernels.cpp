// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/kernels/gpu_kernels.hpp"

#include <algorithm>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "cuda/device_context.hpp"
#include "cuda/kernels/kernels.hpp"
#include "cuda/on_device.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops::cuda {

namespace {

/// A block without gaps as a single column, which spreads its work evenly over threads.
template <class T>
MatrixView<T> as_column(MatrixView<T> X) {
  return {X.data, X.size(), 1};
}

cublasOperation_t operation(Op op) {
  switch (op) {
    case Op::none:
      return CUBLAS_OP_N;
    case Op::transpose:
      return CUBLAS_OP_T;
    case Op::adjoint:
      break;
  }
  return CUBLAS_OP_C;
}

template <Scalar T>
struct Gemm {
  cublasOperation_t op_a, op_b;
  Index m, n, k;
  T alpha;
  const T* A;
  Index lda;
  const T* B;
  Index ldb;
  T beta;
  T* C;
  Index ldc;
};

void call_blas(cublasHandle_t handle, const Gemm<float>& g) {
  check(cublasSgemm_64(handle, g.op_a, g.op_b, g.m, g.n, g.k, &g.alpha, g.A, g.lda, g.B, g.ldb, &g.beta, g.C,
                       g.ldc),
        "cublasSgemm_64");
}
void call_blas(cublasHandle_t handle, const Gemm<double>& g) {
  check(cublasDgemm_64(handle, g.op_a, g.op_b, g.m, g.n, g.k, &g.alpha, g.A, g.lda, g.B, g.ldb, &g.beta, g.C,
                       g.ldc),
        "cublasDgemm_64");
}
void call_blas(cublasHandle_t handle, const Gemm<std::complex<float>>& g) {
  const cuComplex alpha{g.alpha.real(), g.alpha.imag()}, beta{g.beta.real(), g.beta.imag()};
  check(cublasCgemm_64(handle, g.op_a, g.op_b, g.m, g.n, g.k, &alpha, reinterpret_cast<const cuComplex*>(g.A),
                       g.lda, reinterpret_cast<const cuComplex*>(g.B), g.ldb, &beta,
                       reinterpret_cast<cuComplex*>(g.C), g.ldc),
        "cublasCgemm_64");
}
void call_blas(cublasHandle_t handle, const Gemm<std::complex<double>>& g) {
  const cuDoubleComplex alpha{g.alpha.real(), g.alpha.imag()}, beta{g.beta.real(), g.beta.imag()};
  check(cublasZgemm_64(handle, g.op_a, g.op_b, g.m, g.n, g.k, &alpha,
                       reinterpret_cast<const cuDoubleComplex*>(g.A), g.lda,
                       reinterpret_cast<const cuDoubleComplex*>(g.B), g.ldb, &beta,
                       reinterpret_cast<cuDoubleComplex*>(g.C), g.ldc),
        "cublasZgemm_64");
}

template <class T>
Index leading_dimension(MatrixView<T> A) {
  return std::max<Index>(1, A.cols <= 1 ? A.rows : A.stride);
}

}  // namespace

void* StreamMemory::reserve(Index bytes) {
  if (bytes <= size_) return data_;
  release();
  data_ = context_.memory().allocate(bytes, stream_);
  require<OutOfMemory>(data_ != nullptr, "the GPU has no ", bytes,
                       " bytes left for intermediate results; use more GPUs or fewer right-hand sides at a "
                       "time");
  size_ = bytes;
  return data_;
}

void StreamMemory::release() noexcept {
  context_.memory().release(data_, stream_);
  data_ = nullptr;
  size_ = 0;
}

template <Scalar T>
void CudaKernels<T>::gemm(Op op_a, Op op_b, T alpha, MatrixView<const T> A, MatrixView<const T> B, T beta,
                          MatrixView<T> C) const {
  const Index inner = op_a == Op::none ? A.cols : A.rows;
  if (C.empty()) return;
  if (inner == 0) {
    if (beta == T(0)) return fill(T(0), C);
    return add(beta, C, T(0), C);
  }
  environment_.context.make_current();
  const StreamRegion region(environment_.context.timeline(), "gemm");
  call_blas(environment_.blas,
            Gemm<T>{operation(op_a), operation(op_b), C.rows, C.cols, inner, alpha, A.data,
                    leading_dimension(A), B.data, leading_dimension(B), beta, C.data, leading_dimension(C)});
  ++environment_.launches;
}

template <Scalar T>
void CudaKernels<T>::copy(MatrixView<const T> X, MatrixView<T> Y) const {
  if (X.contiguous() && Y.contiguous()) X = as_column(X), Y = as_column(Y);
  begun(Launch<DeviceScalar<T>>::copy(stream(), on_device(X), on_device(Y)), "the kernel copy");
}

template <Scalar T>
void CudaKernels<T>::fill(T value, MatrixView<T> X) const {
  if (X.contiguous()) X = as_column(X);
  begun(Launch<DeviceScalar<T>>::fill(stream(), scalar(value), on_device(X)), "the kernel fill");
}

template <Scalar T>
void CudaKernels<T>::add(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const {
  if (X.contiguous() && Y.contiguous()) X = as_column(X), Y = as_column(Y);
  begun(Launch<DeviceScalar<T>>::add(stream(), scalar(alpha), on_device(X), scalar(beta), on_device(Y)),
        "the kernel add");
}

template <Scalar T>
void CudaKernels<T>::diagonal_multiply(T alpha, const T* d, bool conjugate_d, MatrixView<const T> X, T beta,
                                       MatrixView<T> Y) const {
  begun(Launch<DeviceScalar<T>>::diagonal_multiply(stream(), scalar(alpha), on_device(d), conjugate_d,
                                                   on_device(X), scalar(beta), on_device(Y)),
        "the kernel diagonal_multiply");
}

template <Scalar T>
template <class Sum>
Sum* CudaKernels<T>::partial(Index rows, Index cols) const {
  return static_cast<Sum*>(
      environment_.partial_sums.reserve(partial_sums(rows) * cols * static_cast<Index>(sizeof(Sum))));
}

template <Scalar T>
void CudaKernels<T>::column_dots(MatrixView<const T> X, MatrixView<const T> Y, Accumulator<T>* dots) const {
  using Sum = Wide<DeviceScalar<T>>;
  begun(Launch<DeviceScalar<T>>::column_dots(stream(), on_device(X), on_device(Y),
                                             partial<Sum>(X.rows, X.cols), on_device(dots)),
        "the kernel column_dots", 2);
}

template <Scalar T>
void CudaKernels<T>::column_norms_squared(MatrixView<const T> X, double* norms) const {
  begun(Launch<DeviceScalar<T>>::column_norms_squared(stream(), on_device(X), partial<double>(X.rows, X.cols),
                                                      norms),
        "the kernel column_norms_squared", 2);
}

template <Scalar T>
void CudaKernels<T>::column_axpy(const T* alpha, MatrixView<const T> X, MatrixView<T> Y) const {
  begun(Launch<DeviceScalar<T>>::column_axpy(stream(), on_device(alpha), on_device(X), on_device(Y)),
        "the kernel column_axpy");
}

template <Scalar T>
void CudaKernels<T>::column_xpby(MatrixView<const T> X, const T* beta, MatrixView<T> Y) const {
  begun(Launch<DeviceScalar<T>>::column_xpby(stream(), on_device(X), on_device(beta), on_device(Y)),
        "the kernel column_xpby");
}

template <Scalar T>
void CudaKernels<T>::column_scale(const T* alpha, MatrixView<T> X) const {
  begun(Launch<DeviceScalar<T>>::column_scale(stream(), on_device(alpha), on_device(X)),
        "the kernel column_scale");
}

template <Scalar T>
void CudaKernels<T>::column_threshold(Threshold kind, const double* t, MatrixView<T> X) const {
  begun(Launch<DeviceScalar<T>>::column_threshold(stream(), kind, t, on_device(X)),
        "the kernel column_threshold");
}

template <Scalar T>
void CudaKernels<T>::column_power_sums(double p, MatrixView<const T> X, double* sums) const {
  begun(Launch<DeviceScalar<T>>::column_power_sums(stream(), p, on_device(X), partial<double>(X.rows, X.cols),
                                                   sums),
        "the kernel column_power_sums", 2);
}

template <Scalar T>
void CudaKernels<T>::clip(double lower, double upper, MatrixView<T> X) const {
  begun(Launch<DeviceScalar<T>>::clip(stream(), lower, upper, on_device(X)), "the kernel clip");
}

#define GRIDLOPS_INSTANTIATE(T) template class CudaKernels<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops::cuda
