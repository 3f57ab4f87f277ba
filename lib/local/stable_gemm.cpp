// SPDX-License-Identifier: BSD-3-Clause
#include "local/stable_gemm.hpp"

#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "local/skinny_gemm.hpp"
#include "local/skinny_parts.hpp"

namespace gridlops {

namespace {

/// Multiplies matrices that are too short for a tile of skinny_gemm(), by sums along the rows of A or down
/// its columns.
template <Scalar T>
void multiply_column(Op op, T alpha, MatrixView<const T> A, const T* x, T beta, T* y) {
  if (op == Op::none) {
    std::vector<T> sums(static_cast<std::size_t>(A.rows));
    for (Index k = 0; k < A.cols; ++k)
      for (Index i = 0; i < A.rows; ++i) add_scaled(A(i, k), x[k], T(1), sums[at(i)]);
    for (Index i = 0; i < A.rows; ++i) add_scaled(alpha, sums[at(i)], beta, y[i]);
    return;
  }
  for (Index k = 0; k < A.cols; ++k) {
    T sum{};
    for (Index i = 0; i < A.rows; ++i) {
      if constexpr (is_complex<T>) {
        add_scaled(op == Op::adjoint ? std::conj(A(i, k)) : A(i, k), x[i], T(1), sum);
      } else {
        add_scaled(A(i, k), x[i], T(1), sum);
      }
    }
    add_scaled(alpha, sum, beta, y[k]);
  }
}

}  // namespace

template <Scalar T>
void stable_gemm(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y) {
  if (Y.empty()) return;
  if (skinny_gemm_takes<T>(op, A.rows, A.cols, Y.cols))
    return skinny_gemm(op, alpha, A, X, beta, Y, kernel_choice().set);
  for (Index j = 0; j < Y.cols; ++j) multiply_column(op, alpha, A, X.column(j), beta, Y.column(j));
}

#define GRIDLOPS_INSTANTIATE(T) \
  template void stable_gemm(Op, T, MatrixView<const T>, MatrixView<const T>, T, MatrixView<T>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
