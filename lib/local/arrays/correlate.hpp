// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <complex>
#include <concepts>

#include "base/numbers.hpp"
#include "local/products/instruction_set.hpp"

namespace gridlops {

/// yᵢ ← α Σₖ wₖ xᵢ₊ₖₛ + β yᵢ for i < n, with step s ≥ 1. An element of x whose weight is zero does not count,
/// even if it is NaN. Elements before the first non-zero weight and after the last are not read.
template <class R>
using Correlate = void (*)(Index n, R alpha, const R* weights, Index width, const R* x, Index step, R beta,
                           R* y);

// One version for each instruction set; call the last two only if the processor supports theirs.
template <class R>
Correlate<R> correlate_baseline();
template <class R>
Correlate<R> correlate_avx2();
template <class R>
Correlate<R> correlate_avx512();

/// The version for the processor's best instruction set.
template <class R>
Correlate<R> best_correlate() {
#if defined(__x86_64__)
  switch (best_instruction_set()) {
    case InstructionSet::avx512:
      return correlate_avx512<R>();
    case InstructionSet::avx2:
      return correlate_avx2<R>();
    case InstructionSet::baseline:
      break;
  }
#endif
  return correlate_baseline<R>();
}

template <std::floating_point R>
void correlate(Index n, R alpha, const R* weights, Index width, const R* x, Index step, R beta, R* y) {
  static const Correlate<R> best = best_correlate<R>();
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
