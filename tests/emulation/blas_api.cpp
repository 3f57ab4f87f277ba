// SPDX-License-Identifier: BSD-3-Clause
// Implements cuBLAS's functions with the host's CBLAS.
#include <cublas_v2.h>

#include <cblas.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "emulation/device.hpp"
#include "emulation/report.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
  int device = emulation::current_device();
};

namespace {

using emulation::Region;
using Size = std::int64_t;

CBLAS_TRANSPOSE transposition(cublasOperation_t op) {
  return op == CUBLAS_OP_N ? CblasNoTrans : op == CUBLAS_OP_T ? CblasTrans : CblasConjTrans;
}

template <class T>
Region block(const T* data, Size rows, Size cols, Size stride, bool written) {
  return {data,
          static_cast<std::size_t>(rows) * sizeof(T),
          static_cast<std::size_t>(stride) * sizeof(T),
          static_cast<std::size_t>(cols),
          written,
          alignof(T)};
}

/// Products of `count` blocks, each `step` elements behind the one before.
template <class T>
struct Gemm {
  cublasOperation_t op_a, op_b;
  Size m, n, k;
  T alpha;
  const T* A;
  Size lda;
  const T* B;
  Size ldb;
  T beta;
  T* C;
  Size ldc;
  Size step_A = 0, step_B = 0, step_C = 0, count = 1;
};

template <class T>
T one() {
  if constexpr (std::is_floating_point_v<T>) {
    return 1;
  } else {
    return {1, 0};
  }
}
bool is_zero(float x) { return x == 0; }
bool is_zero(double x) { return x == 0; }
template <class Complex>
bool is_zero(Complex z) {
  return z.x == 0 && z.y == 0;
}

/// As on the hardware, a column's bits do not depend on what its neighbours hold. OpenBLAS' complex gemm for
/// AVX2 does not give that.
template <class T, class Gemv>
bool multiply_by_columns(const Gemm<T>& g, const Gemv& gemv) {
  if (g.op_b != CUBLAS_OP_N || g.k == 0) return false;
  const bool plain = g.op_a == CUBLAS_OP_N;
  for (Size j = 0; j < g.n; ++j)
    gemv(CblasColMajor, transposition(g.op_a), static_cast<int>(plain ? g.m : g.k),
         static_cast<int>(plain ? g.k : g.m), &g.alpha, g.A, static_cast<int>(g.lda), g.B + j * g.ldb, 1,
         &g.beta, g.C + j * g.ldc, 1);
  return true;
}

void multiply(const Gemm<float>& g) {
  cblas_sgemm(CblasColMajor, transposition(g.op_a), transposition(g.op_b), static_cast<int>(g.m),
              static_cast<int>(g.n), static_cast<int>(g.k), g.alpha, g.A, static_cast<int>(g.lda), g.B,
              static_cast<int>(g.ldb), g.beta, g.C, static_cast<int>(g.ldc));
}
void multiply(const Gemm<double>& g) {
  cblas_dgemm(CblasColMajor, transposition(g.op_a), transposition(g.op_b), static_cast<int>(g.m),
              static_cast<int>(g.n), static_cast<int>(g.k), g.alpha, g.A, static_cast<int>(g.lda), g.B,
              static_cast<int>(g.ldb), g.beta, g.C, static_cast<int>(g.ldc));
}
void multiply(const Gemm<cuComplex>& g) {
  if (multiply_by_columns(g, cblas_cgemv)) return;
  cblas_cgemm(CblasColMajor, transposition(g.op_a), transposition(g.op_b), static_cast<int>(g.m),
              static_cast<int>(g.n), static_cast<int>(g.k), &g.alpha, g.A, static_cast<int>(g.lda), g.B,
              static_cast<int>(g.ldb), &g.beta, g.C, static_cast<int>(g.ldc));
}
void multiply(const Gemm<cuDoubleComplex>& g) {
  if (multiply_by_columns(g, cblas_zgemv)) return;
  cblas_zgemm(CblasColMajor, transposition(g.op_a), transposition(g.op_b), static_cast<int>(g.m),
              static_cast<int>(g.n), static_cast<int>(g.k), &g.alpha, g.A, static_cast<int>(g.lda), g.B,
              static_cast<int>(g.ldb), &g.beta, g.C, static_cast<int>(g.ldc));
}

/// On the hardware they do depend on the number of columns, and may depend on leading dimensions and
/// alignment. So these decide where the sum over k is cut in two.
template <class T>
void multiply_as_shaped(Gemm<T> g) {
  if (g.k < 2) return multiply(g);
  const auto odd = [](const T* data) { return reinterpret_cast<std::uintptr_t>(data) / sizeof(T) % 2; };
  const auto shape = static_cast<std::uintptr_t>(g.n) + 3 * static_cast<std::uintptr_t>(g.lda % 2) +
                     5 * static_cast<std::uintptr_t>(g.ldb % 2) + 7 * odd(g.A) + 11 * odd(g.B);
  const Size first = 1 + static_cast<Size>(shape % static_cast<std::uintptr_t>(g.k - 1)), all = g.k;
  g.k = first;
  multiply(g);
  g.A += first * (g.op_a == CUBLAS_OP_N ? g.lda : 1);
  g.B += first * (g.op_b == CUBLAS_OP_N ? 1 : g.ldb);
  g.k = all - first;
  g.beta = one<T>();
  multiply(g);
}

template <class T>
cublasStatus_t enqueue(cublasHandle_t handle, const char* name, Gemm<T> g) {
  if (emulation::enter(name)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const Size rows_A = g.op_a == CUBLAS_OP_N ? g.m : g.k, cols_A = g.op_a == CUBLAS_OP_N ? g.k : g.m;
  const Size rows_B = g.op_b == CUBLAS_OP_N ? g.k : g.n, cols_B = g.op_b == CUBLAS_OP_N ? g.n : g.k;
  if (g.m < 0 || g.n < 0 || g.k < 0 || g.lda < std::max<Size>(1, rows_A) ||
      g.ldb < std::max<Size>(1, rows_B) || g.ldc < std::max<Size>(1, g.m))
    return CUBLAS_STATUS_INVALID_VALUE;
  emulation::Device& gpu = emulation::device();
  emulation::require_current(handle->device, name, ": the handle");
  std::vector<Region> regions;
  for (Size i = 0; i < g.count; ++i) {
    regions.push_back(block(g.A + i * g.step_A, rows_A, cols_A, g.lda, false));
    regions.push_back(block(g.B + i * g.step_B, rows_B, cols_B, g.ldb, false));
    regions.push_back(block(g.C + i * g.step_C, g.m, g.n, g.ldc, true));
  }
  gpu.enqueue({handle->stream}, name, regions, [g, &gpu]() mutable {
    g.A = gpu.memory.alias(g.A);
    g.B = gpu.memory.alias(g.B);
    g.C = gpu.memory.alias(g.C);
    for (Size i = 0; i < g.count; ++i) {
      // Some releases of OpenBLAS read C all the same.
      if (is_zero(g.beta))
        for (Size j = 0; j < g.n; ++j) std::fill_n(g.C + j * g.ldc, g.m, T{});
      multiply_as_shaped(g);
      g.A += g.step_A;
      g.B += g.step_B;
      g.C += g.step_C;
    }
    return true;
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

const char* cublasGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_EMULATED";
}
const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "invalid value" : "emulated error";
}
cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  if (emulation::enter("cublasCreate")) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasContext;
  ++emulation::device().blas_handles;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  if (emulation::enter("cublasDestroy")) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  --emulation::device().blas_handles;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  if (emulation::enter("cublasSetStream")) return CUBLAS_STATUS_NOT_INITIALIZED;
  emulation::require_current(handle->device, "cublasSetStream: the handle");
  emulation::require_current(stream->device, "cublasSetStream: the stream");
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Size m,
                              Size n, Size k, const float* alpha, const float* A, Size lda, const float* B,
                              Size ldb, const float* beta, float* C, Size ldc) {
  return enqueue(handle, "cublasSgemm_64",
                 Gemm<float>{op_a, op_b, m, n, k, *alpha, A, lda, B, ldb, *beta, C, ldc});
}
cublasStatus_t cublasSgemmStridedBatched_64(cublasHandle_t handle, cublasOperation_t op_a,
                                            cublasOperation_t op_b, Size m, Size n, Size k,
                                            const float* alpha, const float* A, Size lda, long long step_A,
                                            const float* B, Size ldb, long long step_B, const float* beta,
                                            float* C, Size ldc, long long step_C, Size count) {
  return enqueue(
      handle, "cublasSgemmStridedBatched_64",
      Gemm<float>{op_a, op_b, m, n, k, *alpha, A, lda, B, ldb, *beta, C, ldc, step_A, step_B, step_C, count});
}
cublasStatus_t cublasDgemm_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Size m,
                              Size n, Size k, const double* alpha, const double* A, Size lda, const double* B,
                              Size ldb, const double* beta, double* C, Size ldc) {
  return enqueue(handle, "cublasDgemm_64",
                 Gemm<double>{op_a, op_b, m, n, k, *alpha, A, lda, B, ldb, *beta, C, ldc});
}
cublasStatus_t cublasDgemmStridedBatched_64(cublasHandle_t handle, cublasOperation_t op_a,
                                            cublasOperation_t op_b, Size m, Size n, Size k,
                                            const double* alpha, const double* A, Size lda, long long step_A,
                                            const double* B, Size ldb, long long step_B, const double* beta,
                                            double* C, Size ldc, long long step_C, Size count) {
  return enqueue(handle, "cublasDgemmStridedBatched_64",
                 Gemm<double>{op_a, op_b, m, n, k, *alpha, A, lda, B, ldb, *beta, C, ldc, step_A, step_B,
                              step_C, count});
}
cublasStatus_t cublasCgemm_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Size m,
                              Size n, Size k, const cuComplex* alpha, const cuComplex* A, Size lda,
                              const cuComplex* B, Size ldb, const cuComplex* beta, cuComplex* C, Size ldc) {
  return enqueue(handle, "cublasCgemm_64",
                 Gemm<cuComplex>{op_a, op_b, m, n, k, *alpha, A, lda, B, ldb, *beta, C, ldc});
}
cublasStatus_t cublasCgemmStridedBatched_64(cublasHandle_t handle, cublasOperation_t op_a,
                                            cublasOperation_t op_b, Size m, Size n, Size k,
                                            const cuComplex* alpha, const cuComplex* A, Size lda,
                                            long long step_A, const cuComplex* B, Size ldb, long long step_B,
                                            const cuComplex* beta, cuComplex* C, Size ldc, long long step_C,
                                            Size count) {
  return enqueue(handle, "cublasCgemmStridedBatched_64",
                 Gemm<cuComplex>{op_a, op_b, m, n, k, *alpha, A, lda, B, ldb, *beta, C, ldc, step_A, step_B,
                                 step_C, count});
}
cublasStatus_t cublasZgemm_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Size m,
                              Size n, Size k, const cuDoubleComplex* alpha, const cuDoubleComplex* A,
                              Size lda, const cuDoubleComplex* B, Size ldb, const cuDoubleComplex* beta,
                              cuDoubleComplex* C, Size ldc) {
  return enqueue(handle, "cublasZgemm_64",
                 Gemm<cuDoubleComplex>{op_a, op_b, m, n, k, *alpha, A, lda, B, ldb, *beta, C, ldc});
}
cublasStatus_t cublasZgemmStridedBatched_64(cublasHandle_t handle, cublasOperation_t op_a,
                                            cublasOperation_t op_b, Size m, Size n, Size k,
                                            const cuDoubleComplex* alpha, const cuDoubleComplex* A, Size lda,
                                            long long step_A, const cuDoubleComplex* B, Size ldb,
                                            long long step_B, const cuDoubleComplex* beta, cuDoubleComplex* C,
                                            Size ldc, long long step_C, Size count) {
  return enqueue(handle, "cublasZgemmStridedBatched_64",
                 Gemm<cuDoubleComplex>{op_a, op_b, m, n, k, *alpha, A, lda, B, ldb, *beta, C, ldc, step_A,
                                       step_B, step_C, count});
}

}  // extern "C"
