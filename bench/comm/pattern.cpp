// SPDX-License-Identifier: BSD-3-Clause
#include "bench/comm/pattern.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gridlops/base/random.hpp"

namespace gridlops::bench {

namespace {

constexpr Index period = 1009;

/// For products, one rank has ±3 and all others ±1, so a product over any number of ranks stays small.
double number_of(ReduceOp reduction, std::uint64_t seed, int rank, int ranks, Index i) {
  const double random = counter_uniform(seed, rank, i);
  if (reduction != ReduceOp::prod) return std::floor(8 * (random + 1));
  return (random < 0 ? -1 : 1) * (i % ranks == rank ? 3 : 1);
}

double combine(ReduceOp reduction, double a, double b) {
  switch (reduction) {
    case ReduceOp::sum:
      return a + b;
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      break;
  }
  return std::max(a, b);
}

Pattern::Row combined(ReduceOp reduction, Pattern::Row a, const Pattern::Row& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = combine(reduction, a[i], b[i]);
  return a;
}

}  // namespace

Pattern::Pattern(int ranks, Index seed, ReduceOp reduction) {
  for (int rank = 0; rank < ranks; ++rank) {
    Row& row = rows_.emplace_back();
    for (Index i = 0; i < period; ++i)
      row.push_back(number_of(reduction, static_cast<std::uint64_t>(seed), rank, ranks, i));
    reduced_ = rank == 0 ? row : combined(reduction, std::move(reduced_), row);
  }
  for (int rank = 0; rank < ranks; ++rank)
    pairs_.push_back(combined(reduction, of(rank), of((rank + ranks - 1) % ranks)));
}

}  // namespace gridlops::bench
