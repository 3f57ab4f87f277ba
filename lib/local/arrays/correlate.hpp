// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <complex>
#include <concepts>

#include "base/numbers.hpp"
#include "local/products/kernel_set.hpp"

namespace gridlops {

/// As Correlate, by the processor's best instruction set.
template <std::floating_point R>
void correlate(Index n, R alpha, const R* weights, Index width, const R* x, Index step, R beta, R* y) {
  static const Correlate<R> best = kernel_sets().back().correlate<R>();
  best(n, alpha, weights, width, x, step, beta, y);
}

/// The same for complex x and y, taken as twice as many reals, and complex α and β.
template <class R>
void correlate(Index n, std::complex<R> alpha, const R* weights, Index width, const std::complex<R>* x,
               Index step, std::complex<R> beta, std::complex<R>* y) {
  using T = std::complex<R>;
  if (alpha.imag() == 0 && beta.imag() == 0)
    return correlate(2 * n, alpha.real(), weights, width, reinterpret_cast<const R*>(x), 2 * step,
                     beta.real(), reinterpret_cast<R*>(y));
  constexpr Index block = 64;
  T sums[block];
  for (Index begin = 0; begin < n; begin += block) {
    const Index size = std::min(block, n - begin);
    correlate(2 * size, R(1), weights, width, reinterpret_cast<const R*>(x + begin), 2 * step, R(0),
              reinterpret_cast<R*>(sums));
    for (Index i = 0; i < size; ++i) {
      T& element = y[begin + i];
      element = beta == T(0) ? product(alpha, sums[i]) : product(alpha, sums[i]) + product(beta, element);
    }
  }
}

}  // namespace gridlops
