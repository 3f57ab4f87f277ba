// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <new>

#include "gridlops/matrix_view.hpp"
#include "local/skinny_kernels.hpp"

namespace gridlops {

// A complex matrix A is also a real matrix Ã with twice the rows, real and imaginary parts in turn. So
//
//   A x = Ã Re x + i Ã Im x,    Re aᴴy = ãᵀỹ,    Im aᴴy = ãᵀ(−i y)~,
//
// and aᵀy is the same with y̅ and i y̅ in place of y and −i y. A product with r complex columns is therefore
// one of the real kernels with 2 r columns.

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

/// Copies the real column c that represents Y in a transposed or adjoint product.
template <Scalar T>
void copy_real_column(Op op, MatrixView<const T> Y, Index c, Real<T>* to) {
  if constexpr (is_complex<T>) {
    using R = Real<T>;
    const T* const from = Y.column(c / 2);
    const R sign = op == Op::adjoint ? R(1) : R(-1);
    for (Index i = 0; i < Y.rows; ++i) {
      to[2 * i] = c % 2 == 0 ? from[i].real() : from[i].imag();
      to[2 * i + 1] = c % 2 == 0 ? sign * from[i].imag() : -sign * from[i].real();
    }
  } else {
    std::copy_n(Y.column(c), Y.rows, to);
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

/// The kernels of AVX-512 or of the baseline; AVX2 has StripKernels instead.
template <class Real>
const SkinnyKernels<Real>& skinny_kernels(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return skinny_kernels_avx512<Real>();
#endif
  static_cast<void>(set);
  return skinny_kernels_baseline<Real>();
}

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

/// The columns of a product in groups of nearly equal width, counted in real columns.
template <Scalar T>
class Groups {
 public:
  explicit Groups(Index columns) : columns_(columns), count_((columns + most - 1) / most) {}
  Index count() const { return count_; }
  Index begin(Index group) const { return parts<T> * (group * columns_ / count_); }
  Index width(Index group) const { return begin(group + 1) - begin(group); }
  Index columns() const { return parts<T> * columns_; }
  Index group_of(Index column) const {
    Index group = 0;
    while (begin(group + 1) <= column) ++group;
    return group;
  }
  /// Where the share of a group begins if all groups share so much work.
  Index share(Index group, Index work) const { return group * work / count_; }

 private:
  static constexpr Index most = SkinnyKernels<Real<T>>::max_width / parts<T>;
  Index columns_, count_;
};

}  // namespace gridlops
