// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/problems.hpp"

namespace gridlops::testing {

/// Right-hand sides: a random one, half of it, one of another size, zeros, and random ones of other sizes.
template <Scalar T>
Element<T> right_hand_sides() {
  const Element<T> random = random_elements<T>(11);
  return [=](Index i, Index j) {
    if (j == 3) return T(0);
    const Real<T> size = j == 2 ? Real<T>(1e-3) : j > 3 ? Real<T>(100) : Real<T>(1);
    return j == 1 ? Real<T>(0.5) * random(i, 0) : size * random(i, j);
  };
}

/// The x that minimises ‖A x − b‖² + D²‖x‖², with ‖x‖ and ‖b − Ax‖. With D = 0 it is the shortest.
template <Scalar T>
struct Filtered {
  std::vector<Accumulator<T>> x;
  double x_norm = 0, residual_norm = 0;

  Filtered(const KnownSpectrum<T>& A, const std::vector<double>& values, const Element<T>& b, Index column,
           double damp)
      : x(static_cast<std::size_t>(A.cols())) {
    double squares = 0, outside = 0, rest = 0;
    for (Index i = 0; i < A.rows(); ++i) outside += std::norm(Accumulator<T>(b(i, column)));
    for (Index k = 0; k < static_cast<Index>(values.size()); ++k) {
      const double value = values[static_cast<std::size_t>(k)];
      Accumulator<T> dot = 0;
      for (Index i = 0; i < A.rows(); ++i)
        dot += conjugate(Accumulator<T>(A.left(i, k))) * Accumulator<T>(b(i, column));
      outside -= std::norm(dot);
      if (value == 0) {
        rest += std::norm(dot);
        continue;
      }
      const double filter = value * value / (value * value + damp * damp);
      rest += std::norm((1 - filter) * dot);
      squares += std::norm(filter / value * dot);
      for (Index j = 0; j < A.cols(); ++j)
        x[static_cast<std::size_t>(j)] += filter / value * dot * Accumulator<T>(A.right(j, k));
    }
    x_norm = std::sqrt(squares);
    residual_norm = std::sqrt(rest + std::max(outside, 0.0));
  }
};

template <Scalar T>
DistMatrix<T> filled(const Space& space, Index columns, const Element<T>& element) {
  DistMatrix<T> B(space.grid, space.layout(columns));
  B.fill(element);
  return B;
}

}  // namespace gridlops::testing
