// SPDX-License-Identifier: BSD-3-Clause
// To be loaded before BLAS: on rank 1 an element of A changes its sign at the tenth product.
#include <cblas.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

extern "C" void cblas_dgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE op_a, CBLAS_TRANSPOSE op_b, blasint m,
                            blasint n, blasint k, double alpha, const double* A, blasint lda, const double* B,
                            blasint ldb, double beta, double* C, blasint ldc) {
  static const auto real = reinterpret_cast<decltype(&cblas_dgemm)>(dlsym(RTLD_NEXT, "cblas_dgemm"));
  static int calls = 0;
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  // A fault does not ask whether memory may be written.
  if (++calls == 10 && rank != nullptr && std::string_view(rank) == "1") const_cast<double*>(A)[3] = -A[3];
  real(order, op_a, op_b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}
