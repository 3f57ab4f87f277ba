// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "local/tiles/kernel_set.hpp"

namespace gridlops {

/// correlate() with vectors of Isa::vector_bytes. Isa is a type local to the source compiled for the
/// instruction set, so that the linker keeps its code apart.
template <class Isa, class R>
class CorrelateLoops {
 public:
  static void correlate(Index n, R alpha, const R* weights, Index width, const R* x, Index step, R beta,
                        R* y) {
    if (n == 0) return;
    Range used{0, width};
    while (used.size > 0 && weights[used.begin] == 0) ++used.begin, --used.size;
    while (used.size > 0 && weights[used.end() - 1] == 0) --used.size;
    const auto terms = [=](Index k) { return x + k * step; };
    if (step > lanes || lanes % step != 0) return add_terms(n, alpha, weights, used, terms, beta, y);
    // Weights whose elements of x are a vector apart meet the same vectors.
    const Index apart = lanes / step;
    add(
        n, alpha, beta, y,
        [=](auto& sums, Index i) {
          for (Index k = used.begin; k < std::min(used.begin + apart, used.end()); ++k)
            add_weights(sums, weights + k, (used.end() - k + apart - 1) / apart, apart, terms(k) + i);
        },
        [=](Index i) { return step == 1 ? dot(weights, used, x + i) : plain_sum(weights, used, terms, i); });
  }

  static void correlate_neighbours(Index n, R alpha, const R* weights, Index width, Index apart, Index parts,
                                   const R* x, Index step, R beta, R* y) {
    parts == 1 ? add_neighbours<1>(n, alpha, weights, width, apart, x, step, beta, y)
               : add_neighbours<2>(n, alpha, weights, width, apart, x, step, beta, y);
  }

  static void correlate_rows(Index n, R alpha, const R* weights, Index width, Index parts, const R* x, R beta,
                             R* y) {
    parts == 1 ? add_rows<1>(n, alpha, weights, width, x, beta, y)
               : add_rows<2>(n, alpha, weights, width, x, beta, y);
  }

  static void add_stencil(Index n, R alpha, const R* weights, const Index* offsets, Index count, const R* x,
                          R beta, R* y) {
    add_terms(
        n, alpha, weights, {0, count}, [=](Index k) { return x + offsets[k]; }, beta, y);
  }

 private:
  using Vector [[gnu::vector_size(Isa::vector_bytes)]] = R;
  static constexpr Index lanes = Isa::vector_bytes / static_cast<Index>(sizeof(R));

  using Half [[gnu::vector_size(Isa::vector_bytes / 2)]] = R;

  static Vector load(const R* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof(Vector));
    return vector;
  }

  /// sums[v] ← sums[v] + Σₘ wₘ x[v + m], all vectors, for M weights that are `apart` from each other. Each
  /// vector of x is loaded once.
  template <std::size_t M, std::size_t V>
  static void add_together(Vector (&sums)[V], const R* weights, Index apart, const R* x) {
    Vector w[M];
    for (std::size_t m = 0; m < M; ++m) w[m] = Vector{} + weights[static_cast<Index>(m) * apart];
#pragma GCC unroll 16
    for (std::size_t j = 0; j + 1 < V + M; ++j) {
      const Vector from = load(x + static_cast<Index>(j) * lanes);
#pragma GCC unroll 8
      for (std::size_t m = 0; m < M; ++m)
        if (m <= j && j - m < V) Isa::add_product(w[m], from, sums[j - m]);
    }
  }

  /// Adds any number of weights, some of which may be 0.
  template <std::size_t V>
  static void add_weights(Vector (&sums)[V], const R* weights, Index count, Index apart, const R* x) {
    for (Index group = 0; count > 0; count -= group, weights += group * apart, x += group * lanes) {
      group = 0;
      while (group < std::min<Index>(count, most_together) && weights[group * apart] != 0) ++group;
      add_group<most_together>(sums, weights, group, apart, x);
      group = std::max<Index>(group, 1);  // one weight is 0
    }
  }
  /// Adds up to M weights that are not 0.
  static constexpr std::size_t most_together = 6;
  template <std::size_t M, std::size_t V>
  static void add_group(Vector (&sums)[V], const R* weights, Index count, Index apart, const R* x) {
    if constexpr (M > 0) {
      if (count == M) return add_together<M>(sums, weights, apart, x);
      add_group<M - 1>(sums, weights, count, apart, x);
    }
  }

  /// y ← α sum + β y for the elements of a vector from `first` on.
  static void update(R alpha, Vector sum, R beta, R* y, Index first = 0) {
    const Vector result = beta == 0 ? alpha * sum : alpha * sum + beta * load(y);
    if (first == 0) {
      std::memcpy(y, &result, sizeof(Vector));
    } else {
      for (Index lane = first; lane < lanes; ++lane) y[lane] = result[lane];
    }
  }

  /// Does so for n elements. add_sums(sums, i) adds to vectors, which stay in registers, what belongs to
  /// element i and those that follow; sum_at(i) is the sum of a single one.
  template <class AddSums, class SumAt>
  static void add(Index n, R alpha, R beta, R* y, const AddSums& add_sums, const SumAt& sum_at) {
    Index i = 0;
    const auto add_from = [&]<std::size_t V>(std::integral_constant<std::size_t, V>, Index begin) {
      Vector sums[V] = {};
      add_sums(sums, begin);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < V; ++v) {
        const Index first = begin + static_cast<Index>(v) * lanes;
        if (i <= first) {
          update(alpha, sums[v], beta, y + first);
        } else if (i < first + lanes) {
          update(alpha, sums[v], beta, y + first, i - first);
        }
      }
      i = begin + static_cast<Index>(V) * lanes;
    };
    // The last vectors end at n, and so may overlap those before. Elements that are done are not written
    // again.
    const auto add_vectors = [&](auto vectors) {
      constexpr Index size = static_cast<Index>(vectors()) * lanes;
      while (i + size <= n) add_from(vectors, i);
      if (i < n && size <= n && (vectors() == 1 || n - i > size / 2)) add_from(vectors, n - size);
    };
    add_vectors(std::integral_constant<std::size_t, 8>());
    add_vectors(std::integral_constant<std::size_t, 4>());
    add_vectors(std::integral_constant<std::size_t, 2>());
    add_vectors(std::integral_constant<std::size_t, 1>());
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

  /// The weights of a vector of numbers, of which `parts` that follow each other share one.
  template <int parts>
  static Vector load_weights(const R* from) {
    if constexpr (parts == 1) {
      return load(from);
    } else {
      Half half;
      std::memcpy(&half, from, sizeof(Half));
      return each_twice(half, std::make_integer_sequence<int, lanes>());
    }
  }
  template <int... lane>
  static Vector each_twice(const Half& half, std::integer_sequence<int, lane...>) {
    return __builtin_shufflevector(half, half, (lane / 2)...);
  }

  template <int parts>
  static void add_neighbours(Index n, R alpha, const R* weights, Index width, Index apart, const R* x,
                             Index step, R beta, R* y) {
    add(
        parts * n, alpha, beta, y,
        [=]<std::size_t V>(Vector(&sums)[V], Index i) {
          for (Index k = 0; k < width; ++k) {
            const R *const w = weights + (k * apart + i / parts), *const from = x + (parts * k * step + i);
#pragma GCC unroll 8
            for (std::size_t v = 0; v < V; ++v) {
              const Index first = static_cast<Index>(v) * lanes;
              const Vector weight = load_weights<parts>(w + first / parts);
              Isa::add_product(weight, weight != 0 ? load(from + first) : Vector{}, sums[v]);
            }
          }
        },
        [=](Index i) {
          R sum = 0;
          for (Index k = 0; k < width; ++k) {
            const R weight = weights[k * apart + i / parts];
            if (weight != 0) sum += weight * x[parts * k * step + i];
          }
          return sum;
        });
  }

  template <int parts>
  static void add_rows(Index n, R alpha, const R* weights, Index width, const R* x, R beta, R* y) {
    for (Index i = 0; i < n; ++i, weights += width, x += parts, y += parts) {
      R sums[2];
      set_dots<parts>(sums, weights, width, x);
      for (int part = 0; part < parts; ++part)
        y[part] = beta == 0 ? alpha * sums[part] : alpha * sums[part] + beta * y[part];
    }
  }

  /// Computes Σₖ wₖ xₖ for a single y of this many parts; the vectors run along the weights and x.
  template <int parts>
  static void set_dots(R* all, const R* weights, Index width, const R* x) {
    Vector sums = {};
    Index k = 0;
    for (; k + lanes / parts <= width; k += lanes / parts) {
      const Vector weight = load_weights<parts>(weights + k);
      sums += weight != 0 ? weight * load(x + parts * k) : Vector{};
    }
    for (int part = 0; part < parts; ++part) {
      all[part] = 0;
      for (Index j = k; j < width; ++j)
        if (weights[j] != 0) all[part] += weights[j] * x[parts * j + part];
      for (Index lane = part; lane < lanes; lane += parts) all[part] += sums[lane];
    }
  }
  static R dot(const R* weights, Range used, const R* x) {
    R sum = 0;
    set_dots<1>(&sum, weights + used.begin, used.size, x + used.begin);
    return sum;
  }

  /// Sums of terms wₖ xₖ, where x(k) is where xₖ begins.
  template <class Terms>
  static void add_terms(Index n, R alpha, const R* weights, Range used, const Terms& x, R beta, R* y) {
    add(
        n, alpha, beta, y,
        [=](auto& sums, Index i) {
          for (Index k = used.begin; k < used.end(); ++k)
            if (weights[k] != 0) add_together<1>(sums, weights + k, 0, x(k) + i);
        },
        [=](Index i) { return plain_sum(weights, used, x, i); });
  }
};

}  // namespace gridlops
