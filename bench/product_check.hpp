// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "bench/measure/cases.hpp"
#include "bench/measure/measurement.hpp"
#include "gridlops/local/buffer.hpp"

namespace gridlops::bench {

/// A rank's part of a product of random_product() with random_input(), and the global indices of its rows and
/// columns.
template <Scalar T>
struct LocalProductPart {
  MatrixView<const T> Y;
  std::vector<Index> rows, cols;
};

/// Makes an error safe for maxima: std::max and MPI_MAX may lose a NaN, so NaN becomes infinity.
inline double comparable(double error) {
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

/// ‖Y w − op(A) (X w)‖ / ‖op(A) (X w)‖ for a vector w: the largest of all ranks (collective over the grid).
/// Each rank sums in double precision over all elements of A and X on which its part of Y depends. Where
/// these are more than most_checked elements of A, it checks every step-th row alone. The denominator is the
/// average over all ranks for this many rows, because cancellation may make a single row small.
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
  constexpr Index most_checked = Index{1} << 25;
  const auto most_rows = static_cast<std::size_t>(most_checked / std::max<Index>(inner, 1) + 1);
  // Odd, so that every lane of a tile has its turn.
  const std::size_t step = (part.rows.size() / most_rows) | 1;
  double difference = 0;
  std::array<double, 2> sizes{0, 0};
  auto& [size, rows] = sizes;
  for (std::size_t i = 0; i < part.rows.size(); i += step) {
    ++rows;
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
  const double my_rows = rows;
  what.grid->comm().all_reduce(sizes, ReduceOp::sum);
  const double usual = rows > 0 ? size / rows * my_rows : 0;
  return maximum(*what.grid, comparable(std::sqrt(usual > 0 ? difference / usual : difference)));
}

/// Checks a product Y in a layout of this library.
template <Scalar T>
double product_error(const Case& what, bool adjoint, const DistMatrix<T>& Y) {
  const std::shared_ptr<Backend>& backend = Y.grid()->backend();
  const MatrixView<const T> local = Y.local();
  std::vector<T> values(static_cast<std::size_t>(local.size()));
  if (!values.empty()) {
    const Buffer<T> packed(backend, local.size());  // without gaps
    backend->template kernels<T>().copy(local, packed.matrix(local.rows, local.cols));
    backend->download(packed.data(), values.data(), local.size() * Index{sizeof(T)});
  }
  const auto indices = [](Range range) {
    std::vector<Index> all;
    for (Index i = range.begin; i < range.end(); ++i) all.push_back(i);
    return all;
  };
  return product_error<T>(what, adjoint,
                          {MatrixView<const T>(values.data(), local.rows, local.cols),
                           indices(Y.local_row_range()), indices(Y.local_col_range())});
}

/// The largest product_error() that rounding explains. The errors of a sum's terms are independent, so they
/// grow with the root of the number of terms (Higham, Mary: A new approach to probabilistic rounding error
/// analysis, SIAM J. Sci. Comput. 41, 2019); a wrong element of a row that is checked exceeds it in a product
/// of fewer than a million elements.
template <Scalar T>
double allowed_product_error(const ProductShape& shape, bool adjoint) {
  const auto terms = static_cast<double>(std::max<Index>(adjoint ? shape.rows : shape.cols, 1));
  return 16 * std::sqrt(terms) * std::numeric_limits<Real<T>>::epsilon();
}

}  // namespace gridlops::bench
