// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

// A complex matrix A is also a real matrix Ã with twice the rows, real and imaginary parts in turn. So
//
//   A x = Ã Re x + i Ã Im x,    Re aᴴy = ãᵀỹ,    Im aᴴy = ãᵀ(−i y)~,
//
// and aᵀy is the same with y̅ and i y̅ in place of y and −i y. A product with r complex columns is therefore
// a product of the real kernels with 2 r columns.

template <Scalar T>
inline constexpr int parts = is_complex<T> ? 2 : 1;

template <Scalar T>
MatrixView<const Real<T>> real_view(MatrixView<const T> A) {
  return {reinterpret_cast<const Real<T>*>(A.data), parts<T> * A.rows, A.cols, parts<T> * A.stride};
}
template <Scalar T>
MatrixView<Real<T>> real_view(MatrixView<T> A) {
  return {reinterpret_cast<Real<T>*>(A.data), parts<T> * A.rows, A.cols, parts<T> * A.stride};
}

/// yᵢ ← α x(i) + β yᵢ for i < n, without the routine by which std::complex repairs infinities.
template <Scalar T, class Values>
void add_scaled(T alpha, const Values& x, T beta, T* y, Index n) {
  const auto product = [](T a, T b) {
    if constexpr (is_complex<T>) {
      return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    } else {
      return a * b;
    }
  };
  if (beta != T(0)) {
    for (Index i = 0; i < n; ++i) y[i] = product(alpha, x(i)) + product(beta, y[i]);
  } else if (alpha != T(1)) {
    for (Index i = 0; i < n; ++i) y[i] = product(alpha, x(i));
  } else {
    for (Index i = 0; i < n; ++i) y[i] = x(i);
  }
}

}  // namespace gridlops
