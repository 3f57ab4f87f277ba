// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstring>

#include "local/products/kernel_set.hpp"

namespace gridlops {

/// correlate() with vectors of Isa::vector_bytes. Isa is a type local to the source compiled for the
/// instruction set, so that the linker keeps its code apart.
template <class Isa, class R>
struct CorrelateLoops {
  using Vector [[gnu::vector_size(Isa::vector_bytes)]] = R;
  static constexpr Index lanes = Isa::vector_bytes / static_cast<Index>(sizeof(R));

  static Vector load(const R* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof(Vector));
    return vector;
  }

  /// y ← α sum + β y for this many vectors from y on, where sum = Σₖ wₖ x₍ₖₛ₎. The sums stay in registers.
  template <std::size_t vectors>
  static void add_vectors(R alpha, const R* weights, Range used, const R* x, Index step, R beta, R* y) {
    Vector sums[vectors] = {};
    for (Index k = used.begin; k < used.end(); ++k) {
      const R weight = weights[k];
      if (weight == 0) continue;
      for (std::size_t v = 0; v < vectors; ++v)
        sums[v] += weight * load(x + k * step + static_cast<Index>(v) * lanes);
    }
    for (std::size_t v = 0; v < vectors; ++v) {
      const Vector result =
          beta == 0 ? alpha * sums[v] : alpha * sums[v] + beta * load(y + static_cast<Index>(v) * lanes);
      std::memcpy(y + static_cast<Index>(v) * lanes, &result, sizeof(Vector));
    }
  }

  /// Σₖ wₖ xₖ: for a single y, the vectors run along the weights and x.
  static R dot(const R* weights, Range used, const R* x) {
    Vector sums = {};
    Index k = used.begin;
    for (; k + lanes <= used.end(); k += lanes) {
      const Vector weight = load(weights + k);
      sums += weight != 0 ? weight * load(x + k) : Vector{};
    }
    R sum = 0;
    for (; k < used.end(); ++k)
      if (weights[k] != 0) sum += weights[k] * x[k];
    for (Index lane = 0; lane < lanes; ++lane) sum += sums[lane];
    return sum;
  }

  static void correlate(Index n, R alpha, const R* weights, Index width, const R* x, Index step, R beta,
                        R* y) {
    Range used{0, width};
    while (used.size > 0 && weights[used.begin] == 0) ++used.begin, --used.size;
    while (used.size > 0 && weights[used.end() - 1] == 0) --used.size;
    constexpr std::size_t many = 8;
    constexpr Index at_once = static_cast<Index>(many) * lanes;
    Index i = 0;
    for (; i + at_once <= n; i += at_once) add_vectors<many>(alpha, weights, used, x + i, step, beta, y + i);
    for (; i + lanes <= n; i += lanes) add_vectors<1>(alpha, weights, used, x + i, step, beta, y + i);
    for (; i < n; ++i) {
      R sum = 0;
      if (step == 1) {
        sum = dot(weights, used, x + i);
      } else {
        for (Index k = used.begin; k < used.end(); ++k)
          if (weights[k] != 0) sum += weights[k] * x[i + k * step];
      }
      y[i] = beta == 0 ? alpha * sum : alpha * sum + beta * y[i];
    }
  }
};

}  // namespace gridlops
