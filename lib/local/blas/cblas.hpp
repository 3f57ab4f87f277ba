// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>

#include "gridlops/base/types.hpp"
#include "local/blas/cblas_header.hpp"

namespace gridlops::cblas {

/// The integer type of the linked CBLAS: int, or 64 bits wide with the ILP64 interface.
template <class First, class... Others>
First first_parameter(void (*)(First, Others...));
using Int = decltype(first_parameter(&cblas_sscal));

constexpr CBLAS_TRANSPOSE transposition(Op op) {
  switch (op) {
    case Op::none:
      return CblasNoTrans;
    case Op::transpose:
      return CblasTrans;
    case Op::adjoint:
      break;
  }
  return CblasConjTrans;
}

// Gives each operation one name for all four element types. Matrices are column-major; vectors have no gaps.

inline void gemm(Op op_a, Op op_b, Int m, Int n, Int k, float alpha, const float* A, Int lda, const float* B,
                 Int ldb, float beta, float* C, Int ldc) {
  cblas_sgemm(CblasColMajor, transposition(op_a), transposition(op_b), m, n, k, alpha, A, lda, B, ldb, beta,
              C, ldc);
}
inline void gemm(Op op_a, Op op_b, Int m, Int n, Int k, double alpha, const double* A, Int lda,
                 const double* B, Int ldb, double beta, double* C, Int ldc) {
  cblas_dgemm(CblasColMajor, transposition(op_a), transposition(op_b), m, n, k, alpha, A, lda, B, ldb, beta,
              C, ldc);
}
inline void gemm(Op op_a, Op op_b, Int m, Int n, Int k, std::complex<float> alpha,
                 const std::complex<float>* A, Int lda, const std::complex<float>* B, Int ldb,
                 std::complex<float> beta, std::complex<float>* C, Int ldc) {
  cblas_cgemm(CblasColMajor, transposition(op_a), transposition(op_b), m, n, k, &alpha, A, lda, B, ldb, &beta,
              C, ldc);
}
inline void gemm(Op op_a, Op op_b, Int m, Int n, Int k, std::complex<double> alpha,
                 const std::complex<double>* A, Int lda, const std::complex<double>* B, Int ldb,
                 std::complex<double> beta, std::complex<double>* C, Int ldc) {
  cblas_zgemm(CblasColMajor, transposition(op_a), transposition(op_b), m, n, k, &alpha, A, lda, B, ldb, &beta,
              C, ldc);
}

inline void gemv(Op op, Int m, Int n, float alpha, const float* A, Int lda, const float* x, float beta,
                 float* y) {
  cblas_sgemv(CblasColMajor, transposition(op), m, n, alpha, A, lda, x, 1, beta, y, 1);
}
inline void gemv(Op op, Int m, Int n, double alpha, const double* A, Int lda, const double* x, double beta,
                 double* y) {
  cblas_dgemv(CblasColMajor, transposition(op), m, n, alpha, A, lda, x, 1, beta, y, 1);
}
inline void gemv(Op op, Int m, Int n, std::complex<float> alpha, const std::complex<float>* A, Int lda,
                 const std::complex<float>* x, std::complex<float> beta, std::complex<float>* y) {
  cblas_cgemv(CblasColMajor, transposition(op), m, n, &alpha, A, lda, x, 1, &beta, y, 1);
}
inline void gemv(Op op, Int m, Int n, std::complex<double> alpha, const std::complex<double>* A, Int lda,
                 const std::complex<double>* x, std::complex<double> beta, std::complex<double>* y) {
  cblas_zgemv(CblasColMajor, transposition(op), m, n, &alpha, A, lda, x, 1, &beta, y, 1);
}

/// C ← AᴴA + C for the upper triangle of an n × n matrix C, where A has k rows.
inline void add_gram(Int n, Int k, const double* A, Int lda, double* C, Int ldc) {
  cblas_dsyrk(CblasColMajor, CblasUpper, CblasTrans, n, k, 1, A, lda, 1, C, ldc);
}
inline void add_gram(Int n, Int k, const std::complex<double>* A, Int lda, std::complex<double>* C, Int ldc) {
  cblas_zherk(CblasColMajor, CblasUpper, CblasConjTrans, n, k, 1, A, lda, 1, C, ldc);
}

// X ← op(R)⁻¹ X for an upper triangular m × m matrix R and m × n elements of X.

inline void solve_upper(Op op, Int m, Int n, const float* R, Int ldr, float* X, Int ldx) {
  cblas_strsm(CblasColMajor, CblasLeft, CblasUpper, transposition(op), CblasNonUnit, m, n, 1, R, ldr, X, ldx);
}
inline void solve_upper(Op op, Int m, Int n, const double* R, Int ldr, double* X, Int ldx) {
  cblas_dtrsm(CblasColMajor, CblasLeft, CblasUpper, transposition(op), CblasNonUnit, m, n, 1, R, ldr, X, ldx);
}
inline void solve_upper(Op op, Int m, Int n, const std::complex<float>* R, Int ldr, std::complex<float>* X,
                        Int ldx) {
  const std::complex<float> one(1);
  cblas_ctrsm(CblasColMajor, CblasLeft, CblasUpper, transposition(op), CblasNonUnit, m, n, &one, R, ldr, X,
              ldx);
}
inline void solve_upper(Op op, Int m, Int n, const std::complex<double>* R, Int ldr, std::complex<double>* X,
                        Int ldx) {
  const std::complex<double> one(1);
  cblas_ztrsm(CblasColMajor, CblasLeft, CblasUpper, transposition(op), CblasNonUnit, m, n, &one, R, ldr, X,
              ldx);
}

/// X ← X R for an upper triangular n × n matrix R and m × n elements of X.
inline void multiply_by_upper(Int m, Int n, const double* R, Int ldr, double* X, Int ldx) {
  cblas_dtrmm(CblasColMajor, CblasRight, CblasUpper, CblasNoTrans, CblasNonUnit, m, n, 1, R, ldr, X, ldx);
}
inline void multiply_by_upper(Int m, Int n, const std::complex<double>* R, Int ldr, std::complex<double>* X,
                              Int ldx) {
  const std::complex<double> one(1);
  cblas_ztrmm(CblasColMajor, CblasRight, CblasUpper, CblasNoTrans, CblasNonUnit, m, n, &one, R, ldr, X, ldx);
}

}  // namespace gridlops::cblas
