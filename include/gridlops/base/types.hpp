// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <complex>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace gridlops {

/// The type of sizes and of global and local indices. Only MPI and BLAS calls narrow it, with a check.
using Index = std::int64_t;

/// The four element types of matrices.
template <class T>
concept Scalar = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::complex<float>> ||
    std::same_as<T, std::complex<double>>;

template <class T>
inline constexpr bool is_complex = false;
template <class R>
inline constexpr bool is_complex<std::complex<R>> = true;

namespace detail {
template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};
}  // namespace detail

/// float for f32 and c64, double for f64 and c128.
template <Scalar T>
using Real = typename detail::RealOf<T>::type;

/// The type in which column-wise dot products are summed: double precision, complex if T is.
template <Scalar T>
using Accumulator = std::conditional_t<is_complex<T>, std::complex<double>, double>;

/// An element type as a value, for files, reports and messages.
enum class ScalarType { f32, f64, c64, c128 };
inline constexpr std::array all_scalar_types{ScalarType::f32, ScalarType::f64, ScalarType::c64,
                                             ScalarType::c128};

template <Scalar T>
inline constexpr ScalarType scalar_type_of = std::same_as<T, float>                 ? ScalarType::f32
                                             : std::same_as<T, double>              ? ScalarType::f64
                                             : std::same_as<T, std::complex<float>> ? ScalarType::c64
                                                                                    : ScalarType::c128;

/// Bytes of one element.
constexpr Index size_of(ScalarType type) {
  switch (type) {
    case ScalarType::f32:
      return 4;
    case ScalarType::c128:
      return 16;
    case ScalarType::f64:
    case ScalarType::c64:
      break;
  }
  return 8;
}

constexpr std::string_view name_of(ScalarType type) {
  switch (type) {
    case ScalarType::f32:
      return "f32";
    case ScalarType::f64:
      return "f64";
    case ScalarType::c64:
      return "c64";
    case ScalarType::c128:
      break;
  }
  return "c128";
}

/// Calls `function.template operator()<T>()` for the T that type names, and returns its result.
template <class Function>
decltype(auto) with_scalar_type(ScalarType type, Function&& function) {
  switch (type) {
    case ScalarType::f32:
      return function.template operator()<float>();
    case ScalarType::f64:
      return function.template operator()<double>();
    case ScalarType::c64:
      return function.template operator()<std::complex<float>>();
    case ScalarType::c128:
      break;
  }
  return function.template operator()<std::complex<double>>();
}

/// The form of a factor in a product: A, Aᵀ or Aᴴ. For real types the last two are the same.
enum class Op { none, transpose, adjoint };

/// The complex conjugate; for real T the value itself.
template <Scalar T>
constexpr T conjugate(T value) {
  if constexpr (is_complex<T>) {
    return T(value.real(), -value.imag());
  } else {
    return value;
  }
}

/// A half-open range of global indices [begin, begin + size).
struct Range {
  Index begin = 0;
  Index size = 0;
  constexpr Index end() const { return begin + size; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

/// The indices that lie in both. The size is never negative.
constexpr Range intersect(Range a, Range b) {
  const Index begin = a.begin > b.begin ? a.begin : b.begin;
  const Index end = a.end() < b.end() ? a.end() : b.end();
  return {begin, end > begin ? end - begin : 0};
}

}  // namespace gridlops
