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

  /// y ← α sum + β y for this many vectors from element i on, where sum = Σₖ wₖ xₖ, and x(k) is where xₖ
  /// begins. The sums stay in registers.
  template <std::size_t vectors, class Terms>
  static void add_vectors(Index i, R alpha, const R* weights, Range used, const Terms& x, R beta, R* y) {
    Vector sums[vectors] = {};
    for (Index k = used.begin; k < used.end(); ++k) {
      const R weight = weights[k];
      if (weight == 0) continue;
      const R* const from = x(k) + i;
      for (std::size_t v = 0; v < vectors; ++v)
        sums[v] += weight * load(from + static_cast<Index>(v) * lanes);
    }
    for (std::size_t v = 0; v < vectors; ++v) {
      R* const to = y + i + static_cast<Index>(v) * lanes;
      const Vector result = beta == 0 ? alpha * sums[v] : alpha * sums[v] + beta * load(to);
      std::memcpy(to, &result, sizeof(Vector));
    }
  }

  /// The same for all n elements. sum_at(i) is the sum for a single one.
  template <class Terms, class SumAt>
  static void add(Index n, R alpha, const R* weights, Range used, const Terms& x, const SumAt& sum_at, R beta,
                  R* y) {
    constexpr std::size_t many = 8;
    constexpr Index at_once = static_cast<Index>(many) * lanes;
    Index i = 0;
    for (; i + at_once <= n; i += at_once) add_vectors<many>(i, alpha, weights, used, x, beta, y);
    for (; i + lanes <= n; i += lanes) add_vectors<1>(i, alpha, weights, used, x, beta, y);
    for (; i < n; ++i) {
      const R sum = sum_at(i);
      y[i] = beta == 0 ? alpha * sum : alpha * sum + beta * y[i];
    }
  }

  template <class Terms>
  static R plain_sum(const R* weights, Range used, const Terms& x, Index i) {
    R sum = 0;
    for (Index k = used.begin; k < used.end(); ++k)
      if (weights[k] != 0) sum += weights[k] * x(k)[i];
    return sum;
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
    const auto terms = [=](Index k) { return x + k * step; };
    const auto sum_at = [=](Index i) {
      return step == 1 ? dot(weights, used, x + i) : plain_sum(weights, used, terms, i);
    };
    add(n, alpha, weights, used, terms, sum_at, beta, y);
  }

  static void add_stencil(Index n, R alpha, const R* weights, const Index* offsets, Index count, const R* x,
                          R beta, R* y) {
    const Range used{0, count};
    const auto terms = [=](Index k) { return x + offsets[k]; };
    const auto sum_at = [=](Index i) { return plain_sum(weights, used, terms, i); };
    add(n, alpha, weights, used, terms, sum_at, beta, y);
  }
};

}  // namespace gridlops
