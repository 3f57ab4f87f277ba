// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <new>

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

/// Element k of the real column c that represents X as the right factor of a real product.
template <Scalar T>
Real<T> real_part_of(MatrixView<const T> X, Index k, Index c) {
  if constexpr (is_complex<T>) {
    return c % 2 == 0 ? X(k, c / 2).real() : X(k, c / 2).imag();
  } else {
    return X(k, c);
  }
}

/// Real row k of the real column c that represents Y in a transposed or adjoint product.
template <Scalar T>
Real<T> real_part_of_adjoint(Op op, MatrixView<const T> Y, Index k, Index c) {
  if constexpr (is_complex<T>) {
    const Real<T> part = reinterpret_cast<const Real<T>*>(Y.column(c / 2))[k ^ (c % 2)];
    const bool is_negative = k % 2 == 1 && (op == Op::adjoint) == (c % 2 == 1);
    return is_negative ? -part : part;
  } else {
    return Y(k, c);
  }
}

/// Uninitialised memory, aligned to cache lines.
template <class Real>
class Workspace {
 public:
  explicit Workspace(Index count)
      : memory_(static_cast<Real*>(::operator new[](static_cast<std::size_t>(count) * sizeof(Real), line))) {}
  ~Workspace() { ::operator delete[](memory_, line); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  Real* data() const { return memory_; }

 private:
  static constexpr std::align_val_t line{64};
  Real* memory_;
};

/// y ← α x + β y, without the routine by which std::complex repairs infinities.
template <Scalar T>
void add_scaled(T alpha, T x, T beta, T& y) {
  const auto product = [](T a, T b) {
    if constexpr (is_complex<T>) {
      return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    } else {
      return a * b;
    }
  };
  y = beta == T(0) ? product(alpha, x) : product(alpha, x) + product(beta, y);
}

}  // namespace gridlops
