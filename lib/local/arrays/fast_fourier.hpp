// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <memory>

#include "gridlops/base/types.hpp"

namespace gridlops {

// Discrete Fourier transforms of single lines in host memory, for float and double.
//
// A line of any length n takes O(n log n) operations. Plans are made at construction. Executions are const
// and thread-safe: threads may use one object at the same time, each with lines and scratch memory of its
// own. The bits of a result depend on n and on the line alone.

/// Lines and scratch memory begin at multiples of this many bytes, so that vector registers can be used.
inline constexpr Index line_alignment = 64;

/// The largest divisor of n ≥ 1 that has none of the prime factors 2, 3 and 5.
constexpr Index rough_part(Index n) {
  for (const Index prime : {2, 3, 5})
    while (n % prime == 0) n /= prime;
  return n;
}

/// The smallest number ≥ n that has the prime factors 2, 3 and 5 only. Lines of such lengths are fast.
constexpr Index fast_length(Index n) {
  while (rough_part(n) > 1) ++n;
  return n;
}

/// Transforms of n complex samples. `in`, `out` and `scratch` must not overlap.
template <class R>
class FastFourier {
 public:
  using Complex = std::complex<R>;

  /// n ≥ 1. Throws std::bad_alloc, and errors of the library that makes the plans, on this rank alone.
  explicit FastFourier(Index n);
  ~FastFourier();
  FastFourier(const FastFourier&) = delete;
  FastFourier& operator=(const FastFourier&) = delete;

  /// How many complex numbers of scratch memory each call needs.
  Index scratch_size() const;
  /// out_k ← Σ_i exp(−2πi·ik/n) in_i.
  void forward(const Complex* in, Complex* out, Complex* scratch) const;
  /// out_i ← Σ_k exp(+2πi·ik/n) in_k.
  void backward(const Complex* in, Complex* out, Complex* scratch) const;

 private:
  struct Plans;
  std::unique_ptr<const Plans> plans_;
};

/// The transform of n real samples, with the frequencies 0 … n/2. The other frequencies are their conjugates.
template <class R>
class RealFourier {
 public:
  using Complex = std::complex<R>;

  explicit RealFourier(Index n);
  ~RealFourier();
  RealFourier(const RealFourier&) = delete;
  RealFourier& operator=(const RealFourier&) = delete;

  Index scratch_size() const;
  /// out_k ← Σ_i exp(−2πi·ik/n) in_i. The imaginary parts of frequencies 0 and n/2 become zero.
  void forward(const R* in, Complex* out, Complex* scratch) const;
  /// out_i ← Σ_k exp(+2πi·ik/n) in_k, summed over all n frequencies. Ignores the imaginary parts of
  /// frequencies 0 and n/2. Leaves anything in `in`.
  void backward(Complex* in, R* out, Complex* scratch) const;

 private:
  struct Plans;
  std::unique_ptr<const Plans> plans_;
};

}  // namespace gridlops
