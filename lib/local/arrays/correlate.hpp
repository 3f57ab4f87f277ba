// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <complex>
#include <concepts>
#include <cstdint>
#include <vector>

#include "base/numbers.hpp"
#include "local/tiles/kernel_set.hpp"

namespace gridlops {

/// As Correlate, by the processor's best instruction set.
template <std::floating_point R>
void correlate(Index n, R alpha, const R* weights, Index width, const R* x, Index step, R beta, R* y) {
  static const Correlate<R> best = kernel_sets().back().of<R>().correlate;
  best(n, alpha, weights, width, x, step, beta, y);
}

/// As CorrelateNeighbours and CorrelateRows, by the processor's best instruction set.
template <std::floating_point R>
void correlate_neighbours(Index n, R alpha, const R* weights, Index width, Index apart, const R* x,
                          Index step, R beta, R* y, Index parts = 1) {
  static const CorrelateNeighbours<R> best = kernel_sets().back().of<R>().correlate_neighbours;
  best(n, alpha, weights, width, apart, parts, x, step, beta, y);
}
template <std::floating_point R>
void correlate_rows(Index n, R alpha, const R* weights, Index width, const R* x, R beta, R* y,
                    Index parts = 1) {
  static const CorrelateRows<R> best = kernel_sets().back().of<R>().correlate_rows;
  best(n, alpha, weights, width, parts, x, beta, y);
}

/// As AddStencil, by the processor's best instruction set.
template <std::floating_point R>
void add_stencil(Index n, R alpha, const std::vector<R>& weights, const std::vector<Index>& offsets,
                 const R* x, R beta, R* y) {
  static const AddStencil<R> best = kernel_sets().back().of<R>().add_stencil;
  best(n, alpha, weights.data(), offsets.data(), static_cast<Index>(weights.size()), x, beta, y);
}

/// As FindArrivals, by the processor's best instruction set.
template <std::floating_point R>
void find_arrivals(Index count, const R* s, const R* r, R end, std::int32_t* sample, R* behind) {
  static const FindArrivals<R> best = kernel_sets().back().of<R>().find_arrivals;
  best(count, s, r, end, sample, behind);
}

/// y ← α s + β y for n complex numbers and complex factors, where of_reals(begin, size, α, β, to) does so for
/// real factors, and for `size` numbers s from number `begin` on.
template <class R, class OfReals>
void in_reals(Index n, std::complex<R> alpha, std::complex<R> beta, std::complex<R>* y, OfReals&& of_reals) {
  using T = std::complex<R>;
  if (alpha.imag() == 0 && beta.imag() == 0)
    return of_reals(Index{0}, n, alpha.real(), beta.real(), reinterpret_cast<R*>(y));
  constexpr Index block = 64;
  T sums[block];
  for (Index begin = 0; begin < n; begin += block) {
    const Index size = std::min(block, n - begin);
    of_reals(begin, size, R(1), R(0), reinterpret_cast<R*>(sums));
    for (Index i = 0; i < size; ++i) {
      T& element = y[begin + i];
      element = beta == T(0) ? product(alpha, sums[i]) : product(alpha, sums[i]) + product(beta, element);
    }
  }
}

/// Correlates complex x and y, taken as twice as many reals, and complex α and β. Offsets of a stencil count
/// reals.
template <class R>
void correlate(Index n, std::complex<R> alpha, const R* weights, Index width, const std::complex<R>* x,
               Index step, std::complex<R> beta, std::complex<R>* y) {
  in_reals(n, alpha, beta, y, [=](Index begin, Index size, R a, R b, R* to) {
    correlate(2 * size, a, weights, width, reinterpret_cast<const R*>(x + begin), 2 * step, b, to);
  });
}
template <class R>
void correlate_neighbours(Index n, std::complex<R> alpha, const R* weights, Index width, Index apart,
                          const std::complex<R>* x, Index step, std::complex<R> beta, std::complex<R>* y) {
  in_reals(n, alpha, beta, y, [=](Index begin, Index size, R a, R b, R* to) {
    correlate_neighbours(size, a, weights + begin, width, apart, reinterpret_cast<const R*>(x + begin), step,
                         b, to, Index{2});
  });
}
template <class R>
void correlate_rows(Index n, std::complex<R> alpha, const R* weights, Index width, const std::complex<R>* x,
                    std::complex<R> beta, std::complex<R>* y) {
  in_reals(n, alpha, beta, y, [=](Index begin, Index size, R a, R b, R* to) {
    correlate_rows(size, a, weights + begin * width, width, reinterpret_cast<const R*>(x + begin), b, to,
                   Index{2});
  });
}
template <class R>
void add_stencil(Index n, std::complex<R> alpha, const std::vector<R>& weights,
                 const std::vector<Index>& offsets, const std::complex<R>* x, std::complex<R> beta,
                 std::complex<R>* y) {
  in_reals(n, alpha, beta, y, [&](Index begin, Index size, R a, R b, R* to) {
    add_stencil(2 * size, a, weights, offsets, reinterpret_cast<const R*>(x + begin), b, to);
  });
}

}  // namespace gridlops
