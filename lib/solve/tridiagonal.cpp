// SPDX-License-Identifier: BSD-3-Clause
#include "solve/tridiagonal.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace gridlops {

namespace {

int eigenvalues_above(const Tridiagonal& matrix, double x) {
  int count = 0;
  double pivot = 1;
  for (std::size_t i = 0; i < matrix.diagonal.size(); ++i) {
    const double coupling = i == 0 ? 0 : matrix.off_diagonal[i - 1] * matrix.off_diagonal[i - 1];
    pivot = matrix.diagonal[i] - x - (coupling == 0 ? 0 : coupling / pivot);
    if (pivot == 0) pivot = -1e-300;
    if (pivot > 0) ++count;
  }
  return count;
}

}  // namespace

Interval eigenvalue_bounds(const Tridiagonal& matrix) {
  Interval bounds;
  for (std::size_t i = 0; i < matrix.diagonal.size(); ++i) {
    const double left = i > 0 ? std::abs(matrix.off_diagonal[i - 1]) : 0;
    const double right = i < matrix.off_diagonal.size() ? std::abs(matrix.off_diagonal[i]) : 0;
    const double low = matrix.diagonal[i] - left - right, high = matrix.diagonal[i] + left + right;
    bounds = i == 0 ? Interval{low, high} : Interval{std::min(bounds.low, low), std::max(bounds.high, high)};
  }
  return bounds;
}

double eigenvalue(const Tridiagonal& matrix, int k, Interval within) {
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = 0.5 * (within.low + within.high);
    (eigenvalues_above(matrix, middle) >= k ? within.low : within.high) = middle;
  }
  return within.high;
}

}  // namespace gridlops
