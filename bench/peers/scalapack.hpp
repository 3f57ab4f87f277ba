// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <array>
#include <complex>

// ScaLAPACK and its BLACS have no headers.
extern "C" {
int Csys2blacs_handle(MPI_Comm comm);
void Cfree_blacs_system_handle(int handle);
void Cblacs_gridinit(int* context, const char* order, int rows, int cols);
void Cblacs_gridexit(int context);
int numroc_(const int* size, const int* block, const int* coordinate, const int* first, const int* parts);
void descinit_(int* descriptor, const int* rows, const int* cols, const int* row_block, const int* col_block,
               const int* first_row, const int* first_col, const int* context, const int* stride, int* info);
void psgemm_(const char* op_a, const char* op_b, const int* m, const int* n, const int* k, const float* alpha,
             const float* A, const int* row_a, const int* col_a, const int* descriptor_a, const float* B,
             const int* row_b, const int* col_b, const int* descriptor_b, const float* beta, float* C,
             const int* row_c, const int* col_c, const int* descriptor_c);
void pdgemm_(const char* op_a, const char* op_b, const int* m, const int* n, const int* k,
             const double* alpha, const double* A, const int* row_a, const int* col_a,
             const int* descriptor_a, const double* B, const int* row_b, const int* col_b,
             const int* descriptor_b, const double* beta, double* C, const int* row_c, const int* col_c,
             const int* descriptor_c);
void pcgemm_(const char* op_a, const char* op_b, const int* m, const int* n, const int* k,
             const std::complex<float>* alpha, const std::complex<float>* A, const int* row_a,
             const int* col_a, const int* descriptor_a, const std::complex<float>* B, const int* row_b,
             const int* col_b, const int* descriptor_b, const std::complex<float>* beta,
             std::complex<float>* C, const int* row_c, const int* col_c, const int* descriptor_c);
void pzgemm_(const char* op_a, const char* op_b, const int* m, const int* n, const int* k,
             const std::complex<double>* alpha, const std::complex<double>* A, const int* row_a,
             const int* col_a, const int* descriptor_a, const std::complex<double>* B, const int* row_b,
             const int* col_b, const int* descriptor_b, const std::complex<double>* beta,
             std::complex<double>* C, const int* row_c, const int* col_c, const int* descriptor_c);
}

namespace gridlops::bench::scalapack {

using Descriptor = std::array<int, 9>;
struct ProductSizes {
  int m, n, k;
};

/// C ← op(A) B.
#define GRIDLOPS_BENCH_GEMM(T, routine)                                                                  \
  inline void gemm(const char* op, ProductSizes sizes, const T* A, const Descriptor& a, const T* B,      \
                   const Descriptor& b, T* C, const Descriptor& c) {                                     \
    const int first = 1;                                                                                 \
    const T one(1), zero(0);                                                                             \
    routine(op, "N", &sizes.m, &sizes.n, &sizes.k, &one, A, &first, &first, a.data(), B, &first, &first, \
            b.data(), &zero, C, &first, &first, c.data());                                               \
  }
GRIDLOPS_BENCH_GEMM(float, psgemm_)
GRIDLOPS_BENCH_GEMM(double, pdgemm_)
GRIDLOPS_BENCH_GEMM(std::complex<float>, pcgemm_)
GRIDLOPS_BENCH_GEMM(std::complex<double>, pzgemm_)
#undef GRIDLOPS_BENCH_GEMM

}  // namespace gridlops::bench::scalapack
