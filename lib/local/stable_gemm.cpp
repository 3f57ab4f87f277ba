// SPDX-License-Identifier: BSD-3-Clause
#include "local/stable_gemm.hpp"

#include <vector>

#include "local/skinny_gemm.hpp"
#include "local/skinny_parts.hpp"

namespace gridlops {

namespace {

/// For matrices too short for a tile of skinny_gemm(): sums down the columns of A, or along its rows.
template <Scalar T>
void multiply_column(Op op, T alpha, MatrixView<const T> A, const T* x, T beta, T* y) {
  if (op == Op::none) {
    std::vector<T> sums(static_cast<std::size_t>(A.rows));
    for (Index k = 0; k < A.cols; ++k)
      for (Index i = 0; i < A.rows; ++i) add_scaled(A(i, k), x[k], T(1), sums[static_cast<std::size_t>(i)]);
    for (Index i = 0; i < A.rows; ++i) add_scaled(alpha, sums[static_cast<std::size_t>(i)], beta, y[i]);
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

template void stable_gemm(Op, float, MatrixView<const float>, MatrixView<const float>, float,
                          MatrixView<float>);
template void stable_gemm(Op, double, MatrixView<const double>, MatrixView<const double>, double,
                          MatrixView<double>);
template void stable_gemm(Op, std::complex<float>, MatrixView<const std::complex<float>>,
                          MatrixView<const std::complex<float>>, std::complex<float>,
                          MatrixView<std::complex<float>>);
template void stable_gemm(Op, std::complex<double>, MatrixView<const std::complex<double>>,
                          MatrixView<const std::complex<double>>, std::complex<double>,
                          MatrixView<std::complex<double>>);

}  // namespace gridlops
