// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <memory>
#include <vector>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// Discrete Fourier transforms of n samples in host memory, for float and double. Takes O(n Σ p) time for the
/// prime factors p of n. Not thread-safe.
template <class R>
class FastFourier {
 public:
  /// n ≥ 1.
  explicit FastFourier(Index n);
  ~FastFourier();
  FastFourier(const FastFourier&) = delete;
  FastFourier& operator=(const FastFourier&) = delete;

  /// out_k ← Σ_i exp(−2πi·ik/n) in_i. The arrays must not overlap.
  void forward(const std::complex<R>* in, std::complex<R>* out) const;
  /// out_i ← Σ_k exp(+2πi·ik/n) in_k. The arrays must not overlap.
  void backward(const std::complex<R>* in, std::complex<R>* out) const;

 private:
  struct Plans;
  std::unique_ptr<const Plans> plans_;
};

/// The same for n real samples, with frequencies 0 … n/2. If n is even, transforms them as n/2 complex
/// samples. Has scratch memory.
template <class R>
class RealFourier {
 public:
  /// n ≥ 1.
  explicit RealFourier(Index n);

  /// out_k ← Σ_i exp(−2πi·ik/n) in_i.
  void forward(const R* in, std::complex<R>* out);
  /// The adjoint: out_i ← Re Σ_k exp(+2πi·ik/n) in_k.
  void backward(const std::complex<R>* in, R* out);

 private:
  bool is_even() const { return n_ % 2 == 0; }

  Index n_;
  FastFourier<R> complex_;                         // of n/2 samples if n is even, otherwise of n
  std::vector<std::complex<R>> turns_, in_, out_;  // exp(−2πik/n), k ≤ n/2; and lines for complex_
};

}  // namespace gridlops
