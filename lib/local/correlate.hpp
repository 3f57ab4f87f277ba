// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>

#include "base/numbers.hpp"

namespace gridlops {

/// yᵢ ← α Σₖ wₖ xᵢ₊ₖₛ + β yᵢ for i < n, with step s. A few y at a time stay in registers. An element of x
/// whose weight is zero is not read.
template <Scalar T>
void correlate(Index n, T alpha, const Real<T>* weights, Index width, const T* x, Index step, T beta, T* y) {
  constexpr Index lanes = 256 / Index{sizeof(T)};
  for (Index begin = 0; begin < n; begin += lanes) {
    const Index size = std::min(lanes, n - begin);
    std::array<T, at(lanes)> sums{};
    for (Index k = 0; k < width; ++k) {
      const Real<T> weight = weights[k];
      if (weight == 0) continue;
      const T* const from = x + (begin + k * step);
      if (size == lanes) {
        for (Index i = 0; i < lanes; ++i) sums[at(i)] += weight * from[i];
      } else {
        for (Index i = 0; i < size; ++i) sums[at(i)] += weight * from[i];
      }
    }
    T* const to = y + begin;
    for (Index i = 0; i < size; ++i)
      to[i] = beta == T(0) ? product(alpha, sums[at(i)]) : product(alpha, sums[at(i)]) + product(beta, to[i]);
  }
}

}  // namespace gridlops
