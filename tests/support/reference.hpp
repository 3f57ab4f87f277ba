// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <tuple>
#include <type_traits>
#include <vector>

#include "gridlops/base/random.hpp"
#include "gridlops/base/types.hpp"

namespace gridlops::testing {

/// The element types, for test cases over all of them.
using Scalars = std::tuple<float, double, std::complex<float>, std::complex<double>>;

/// The type in which references are computed.
template <Scalar T>
using Extended = std::conditional_t<is_complex<T>, std::complex<long double>, long double>;

template <Scalar T>
Extended<T> extended(T value) {
  if constexpr (is_complex<T>) {
    return {static_cast<long double>(value.real()), static_cast<long double>(value.imag())};
  } else {
    return value;
  }
}

template <Scalar T>
T rounded(Extended<T> value) {
  if constexpr (is_complex<T>) {
    return T(static_cast<Real<T>>(value.real()), static_cast<Real<T>>(value.imag()));
  } else {
    return static_cast<T>(value);
  }
}

/// An integer in −3 … 3 as a function of the indices; complex T has one in each part. Sums of a few thousand
/// products of them are exact even in single precision, so tests compare results with ==.
template <Scalar T>
T small_integer(std::uint64_t seed, Index i, Index j) {
  const auto integer = [](auto uniform) { return static_cast<Real<T>>(static_cast<int>(uniform * 4)); };
  const auto uniform = counter_random<T>(seed, i, j);
  if constexpr (is_complex<T>) {
    return T(integer(uniform.real()), integer(uniform.imag()));
  } else {
    return integer(uniform);
  }
}

template <Scalar T>
T quiet_nan() {
  const Real<T> nan = std::numeric_limits<Real<T>>::quiet_NaN();
  if constexpr (is_complex<T>) {
    return {nan, nan};
  } else {
    return nan;
  }
}

template <Scalar T>
bool is_nan(T value) {
  return std::isnan(std::real(value)) || std::isnan(std::imag(value));
}

/// The number re + im·i, or re for real T.
template <Scalar T>
T number(double re, double im) {
  if constexpr (is_complex<T>) {
    return {static_cast<Real<T>>(re), static_cast<Real<T>>(im)};
  } else {
    return static_cast<T>(re);
  }
}

/// The m × n matrix of value(i, j). All matrices here are column-major without gaps.
template <Scalar T, class Function>
std::vector<T> dense(Index m, Index n, Function&& value) {
  std::vector<T> A;
  A.reserve(static_cast<std::size_t>(m * n));
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < m; ++i) A.push_back(value(i, j));
  }
  return A;
}

/// op(A) of an m × n matrix.
template <Scalar T>
std::vector<T> reference_op(Op op, const T* A, Index m, Index n) {
  if (op == Op::none) return std::vector<T>(A, A + m * n);
  return dense<T>(n, m, [&](Index i, Index j) {
    const T a = A[j + i * m];
    return op == Op::adjoint ? conjugate(a) : a;
  });
}

/// sum + a b, by the formula for complex numbers: the standard's product, which looks for infinities, takes
/// several times as long.
template <Scalar T>
Extended<T> with_product(Extended<T> sum, T a, T b) {
  if constexpr (is_complex<T>) {
    const Extended<T> x = extended(a), y = extended(b);
    return {sum.real() + (x.real() * y.real() - x.imag() * y.imag()),
            sum.imag() + (x.real() * y.imag() + x.imag() * y.real())};
  } else {
    return sum + extended(a) * extended(b);
  }
}

/// alpha op(A) B + beta C with A m × n and B of `columns` columns, summed in extended precision and rounded
/// once. C may be null if beta is zero.
template <Scalar T>
std::vector<T> reference_product(Op op, T alpha, const T* A, Index m, Index n, const T* B, Index columns,
                                 T beta = T(0), const T* C = nullptr) {
  const Index rows = op == Op::none ? m : n;
  const Index inner = op == Op::none ? n : m;
  const std::vector<T> rows_of_A = dense<T>(inner, rows, [&](Index k, Index i) {
    if (op == Op::none) return A[i + k * m];
    return op == Op::adjoint ? conjugate(A[k + i * m]) : A[k + i * m];
  });
  return dense<T>(rows, columns, [&](Index i, Index j) {
    const T* const row = rows_of_A.data() + i * inner;
    Extended<T> sum{};
    for (Index k = 0; k < inner; ++k) sum = with_product(sum, row[k], B[k + j * inner]);
    sum *= extended(alpha);
    if (beta != T(0)) sum += extended(beta) * extended(C[i + j * rows]);
    return rounded<T>(sum);
  });
}

}  // namespace gridlops::testing
