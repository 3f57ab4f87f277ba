// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <vector>

#include "cases.hpp"
#include "measurement.hpp"

namespace gridlops::bench {

/// A rank's part of a product of random_product() with random_input(), and the global indices of its rows and
/// columns.
template <Scalar T>
struct LocalProductPart {
  MatrixView<const T> Y;
  std::vector<Index> rows, cols;
};

/// ‖Y w − op(A) (X w)‖ / ‖op(A) (X w)‖ for some w, with sums over all elements of A and X that this rank's
/// part of Y depends on, in double precision; the largest of any rank (collective over the grid).
template <Scalar T>
double product_error(const Case& what, bool adjoint, const LocalProductPart<T>& part) {
  using Sum = Accumulator<T>;
  const auto wide = [](T value) { return static_cast<Sum>(value); };
  const auto weight = [](Index j) { return 0.5 + std::fmod(0.618 * static_cast<double>(j), 1.0); };
  const Index inner = adjoint ? what.shape.rows : what.shape.cols;
  std::vector<Sum> Xw;
  for (Index k = 0; k < inner; ++k) {
    Sum sum{};
    for (const Index j : part.cols) sum += wide(counter_random<T>(seed_of_input, k, j)) * weight(j);
    Xw.push_back(sum);
  }
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < part.rows.size(); ++i) {
    Sum found{}, expected{};
    for (std::size_t j = 0; j < part.cols.size(); ++j)
      found += wide(part.Y(static_cast<Index>(i), static_cast<Index>(j))) * weight(part.cols[j]);
    for (Index k = 0; k < inner; ++k) {
      const T a = adjoint ? conjugate(element_of_A<T>(what, k, part.rows[i]))
                          : element_of_A<T>(what, part.rows[i], k);
      expected += wide(a) * Xw[static_cast<std::size_t>(k)];
    }
    difference += std::norm(found - expected);
    size += std::norm(expected);
  }
  return maximum(*what.grid, size > 0 ? std::sqrt(difference / size) : std::sqrt(difference));
}

}  // namespace gridlops::bench
