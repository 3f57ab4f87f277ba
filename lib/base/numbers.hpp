// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// An index, converted to a position in a standard container.
constexpr std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// Part k of [0, total), cut into parts whose sizes differ by at most one, larger parts first.
constexpr Range balanced_part(Index total, Index parts, Index k) {
  const Index size = total / parts, larger = total % parts;
  return {k * size + std::min(k, larger), size + (k < larger ? 1 : 0)};
}

/// A real number, rounded to the precision of T and converted to T.
template <Scalar T>
constexpr T to_scalar(double value) {
  return static_cast<T>(static_cast<Real<T>>(value));
}

/// a·b. The product of std::complex calls a routine that repairs infinities, which prevents vectorisation.
template <Scalar T>
constexpr T product(T a, T b) {
  if constexpr (is_complex<T>) {
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  } else {
    return a * b;
  }
}

/// Floating-point operations of the product of an m × n and an n × r matrix.
template <Scalar T>
constexpr double product_flops(Index m, Index n, Index r) {
  return (is_complex<T> ? 8 : 2) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(r);
}

}  // namespace gridlops
