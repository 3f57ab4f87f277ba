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

/// The real and the imaginary parts of numbers, the latter of complex ones only.
struct PartsOfNumbers {
  template <Scalar T>
  PartsOfNumbers(const T* numbers, Index count) {
    for (Index k = 0; k < count; ++k) {
      real.push_back(std::real(numbers[k]));
      if constexpr (is_complex<T>) imag.push_back(std::imag(numbers[k]));
    }
  }
  std::vector<long double> real{}, imag{};
};

/// Σ x y, as four sums that need not wait for each other: most of the time of many tests passes here.
inline long double sum_of_products(const long double* x, const long double* y, Index count) {
  long double a = 0, b = 0, c = 0, d = 0;
  Index k = 0;
  for (; k + 3 < count; k += 4) {
    a += x[k] * y[k];
    b += x[k + 1] * y[k + 1];
    c += x[k + 2] * y[k + 2];
    d += x[k + 3] * y[k + 3];
  }
  for (; k < count; ++k) a += x[k] * y[k];
  return (a + b) + (c + d);
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
  const PartsOfNumbers a(rows_of_A.data(), rows * inner), b(B, inner * columns);
  return dense<T>(rows, columns, [&](Index i, Index j) {
    const auto along = [&](const std::vector<long double>& x, const std::vector<long double>& y) {
      return sum_of_products(x.data() + i * inner, y.data() + j * inner, inner);
    };
    Extended<T> sum;
    if constexpr (is_complex<T>) {
      sum = {along(a.real, b.real) - along(a.imag, b.imag), along(a.real, b.imag) + along(a.imag, b.real)};
    } else {
      sum = along(a.real, b.real);
    }
    sum *= extended(alpha);
    if (beta != T(0)) sum += extended(beta) * extended(C[i + j * rows]);
    return rounded<T>(sum);
  });
}

}  // namespace gridlops::testing
