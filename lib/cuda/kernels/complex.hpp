// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include <cmath>
#include <complex>
#include <type_traits>

#include "gridlops/base/types.hpp"

// Scalars as kernels see them. Device code may call few operations of std::complex, so kernels use a type of
// the same layout.

namespace gridlops::cuda {

template <class R>
struct alignas(2 * sizeof(R)) Complex {
  R re, im;
};

template <class T>
struct OnDevice {
  using type = T;
};
template <class R>
struct OnDevice<std::complex<R>> {
  using type = Complex<R>;
};
/// float, double or Complex for the element types of matrices.
template <class T>
using DeviceScalar = typename OnDevice<T>::type;

template <class T>
inline constexpr bool is_device_complex = false;
template <class R>
inline constexpr bool is_device_complex<Complex<R>> = true;

/// The type of its real part.
template <class T>
struct RealPartOf {
  using type = T;
};
template <class R>
struct RealPartOf<Complex<R>> {
  using type = R;
};
template <class T>
using RealPart = typename RealPartOf<T>::type;

/// The type in which sums of T are computed.
template <class T>
using Wide = std::conditional_t<is_device_complex<T>, Complex<double>, double>;

template <class R>
__host__ __device__ Complex<R> operator+(Complex<R> a, Complex<R> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class R>
__host__ __device__ Complex<R> operator*(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class R>
__host__ __device__ Complex<R> times(R factor, Complex<R> z) {
  return {factor * z.re, factor * z.im};
}
template <class R>
requires std::is_floating_point_v<R> __host__ __device__ R times(R factor, R x) { return factor * x; }
template <class R>
__host__ __device__ Complex<R> conjugated(Complex<R> z) {
  return {z.re, -z.im};
}
template <class R>
requires std::is_floating_point_v<R> __host__ __device__ R conjugated(R x) { return x; }

template <class R>
__host__ __device__ bool is_zero(Complex<R> z) {
  return z.re == 0 && z.im == 0;
}
template <class R>
requires std::is_floating_point_v<R> __host__ __device__ bool is_zero(R x) { return x == 0; }

template <class R>
__host__ __device__ Complex<double> widened(Complex<R> z) {
  return {static_cast<double>(z.re), static_cast<double>(z.im)};
}
template <class R>
requires std::is_floating_point_v<R> __host__ __device__ double widened(R x) {
  return static_cast<double>(x);
}

/// |z|² in double precision.
template <class R>
__host__ __device__ double squared(Complex<R> z) {
  const Complex<double> wide = widened(z);
  return wide.re * wide.re + wide.im * wide.im;
}
template <class R>
requires std::is_floating_point_v<R> __host__ __device__ double squared(R x) {
  return widened(x) * widened(x);
}

/// |z| in double precision, where the squares of single precision are exact and do not overflow.
template <class R>
__host__ __device__ double magnitude(Complex<R> z) {
  if constexpr (sizeof(R) < sizeof(double)) {
    return std::sqrt(squared(z));
  } else {
    return std::hypot(z.re, z.im);
  }
}
template <class R>
requires std::is_floating_point_v<R> __host__ __device__ double magnitude(R x) {
  return std::fabs(static_cast<double>(x));
}

template <class R>
__host__ __device__ Complex<R> scaled(double factor, Complex<R> z) {
  return {static_cast<R>(factor) * z.re, static_cast<R>(factor) * z.im};
}

}  // namespace gridlops::cuda
