// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <memory>

#include "gridlops/types.hpp"

namespace gridlops {

/// Discrete Fourier transforms of n samples in host memory, for float and double. Time is O(n Σ p) for the
/// prime factors p of n. Not for two threads at a time.
template <class R>
class FastFourier {
 public:
  /// n ≥ 1.
  explicit FastFourier(Index n);
  ~FastFourier();
  FastFourier(const FastFourier&) = delete;
  FastFourier& operator=(const FastFourier&) = delete;

  /// out_k ← Σ_i exp(−2πi·ik/n) in_i. The arrays do not overlap.
  void forward(const std::complex<R>* in, std::complex<R>* out) const;
  /// out_i ← Σ_k exp(+2πi·ik/n) in_k. The arrays do not overlap.
  void backward(const std::complex<R>* in, std::complex<R>* out) const;

 private:
  struct Plans;
  std::unique_ptr<const Plans> plans_;
};

}  // namespace gridlops
