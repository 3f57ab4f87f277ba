// SPDX-License-Identifier: BSD-3-Clause
// Declares what lib/cuda calls of cuBLAS, for machines without the toolkit.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

struct cublasContext;
using cublasHandle_t = cublasContext*;
enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_INVALID_VALUE = 7
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C };

struct alignas(8) cuComplex {
  float x, y;
};
struct alignas(16) cuDoubleComplex {
  double x, y;
};

extern "C" {
const char* cublasGetStatusName(cublasStatus_t status);
const char* cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);

cublasStatus_t cublasSgemm_64(cublasHandle_t, cublasOperation_t, cublasOperation_t, std::int64_t m,
                              std::int64_t n, std::int64_t k, const float* alpha, const float* A,
                              std::int64_t lda, const float* B, std::int64_t ldb, const float* beta, float* C,
                              std::int64_t ldc);
cublasStatus_t cublasDgemm_64(cublasHandle_t, cublasOperation_t, cublasOperation_t, std::int64_t m,
                              std::int64_t n, std::int64_t k, const double* alpha, const double* A,
                              std::int64_t lda, const double* B, std::int64_t ldb, const double* beta,
                              double* C, std::int64_t ldc);
cublasStatus_t cublasCgemm_64(cublasHandle_t, cublasOperation_t, cublasOperation_t, std::int64_t m,
                              std::int64_t n, std::int64_t k, const cuComplex* alpha, const cuComplex* A,
                              std::int64_t lda, const cuComplex* B, std::int64_t ldb, const cuComplex* beta,
                              cuComplex* C, std::int64_t ldc);
cublasStatus_t cublasZgemm_64(cublasHandle_t, cublasOperation_t, cublasOperation_t, std::int64_t m,
                              std::int64_t n, std::int64_t k, const cuDoubleComplex* alpha,
                              const cuDoubleComplex* A, std::int64_t lda, const cuDoubleComplex* B,
                              std::int64_t ldb, const cuDoubleComplex* beta, cuDoubleComplex* C,
                              std::int64_t ldc);

cublasStatus_t cublasSgemmStridedBatched_64(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                            std::int64_t m, std::int64_t n, std::int64_t k,
                                            const float* alpha, const float* A, std::int64_t lda,
                                            long long step_A, const float* B, std::int64_t ldb,
                                            long long step_B, const float* beta, float* C, std::int64_t ldc,
                                            long long step_C, std::int64_t count);
cublasStatus_t cublasDgemmStridedBatched_64(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                            std::int64_t m, std::int64_t n, std::int64_t k,
                                            const double* alpha, const double* A, std::int64_t lda,
                                            long long step_A, const double* B, std::int64_t ldb,
                                            long long step_B, const double* beta, double* C, std::int64_t ldc,
                                            long long step_C, std::int64_t count);
cublasStatus_t cublasCgemmStridedBatched_64(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                            std::int64_t m, std::int64_t n, std::int64_t k,
                                            const cuComplex* alpha, const cuComplex* A, std::int64_t lda,
                                            long long step_A, const cuComplex* B, std::int64_t ldb,
                                            long long step_B, const cuComplex* beta, cuComplex* C,
                                            std::int64_t ldc, long long step_C, std::int64_t count);
cublasStatus_t cublasZgemmStridedBatched_64(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                            std::int64_t m, std::int64_t n, std::int64_t k,
                                            const cuDoubleComplex* alpha, const cuDoubleComplex* A,
                                            std::int64_t lda, long long step_A, const cuDoubleComplex* B,
                                            std::int64_t ldb, long long step_B, const cuDoubleComplex* beta,
                                            cuDoubleComplex* C, std::int64_t ldc, long long step_C,
                                            std::int64_t count);
}
