// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/numbers.hpp"
#include "support/problems.hpp"

namespace gridlops::testing {

/// Waves between stations on two lines, in an order that has nothing to do with their places.
template <Scalar T>
struct Waves {
  Index rows, cols;
  double wavelength = 0.3;

  static double place(Index i, Index count) {
    return static_cast<double>(i * 7 % count) / static_cast<double>(count);
  }
  T operator()(Index i, Index j) const {
    const double r = std::hypot(place(i, rows) - place(j, cols), 0.2), phase = 6.2831853 * r / wavelength;
    if constexpr (is_complex<T>) {
      return T(static_cast<Real<T>>(std::cos(phase) / r), static_cast<Real<T>>(std::sin(phase) / r));
    } else {
      return static_cast<T>(std::cos(phase) / r);
    }
  }
  /// The order of the places.
  static std::vector<Index> order(Index count) {
    std::vector<Index> order(at(count));
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(),
                     [count](Index a, Index b) { return place(a, count) < place(b, count); });
    return order;
  }
};

template <Scalar T>
DistMatrix<T> placed(const GridPtr& grid, Index rows, Index cols, const Element<T>& element,
                     int variant = 0) {
  return filled(grid, layout_along(*grid, Axis::grid_rows, Axis::grid_cols, rows, cols, variant), element);
}

/// All of Ã, on every member: its products with the columns of the identity.
template <Scalar T>
Whole<T> elements_of(const LinearOperator<T>& A) {
  const GridPtr& grid = A.domain().grid;
  DistMatrix<T> I(grid, A.domain().layout(A.cols())), columns(grid, A.range().layout(A.cols()));
  I.fill([](Index i, Index j) { return T(i == j ? 1 : 0); });
  A.apply(T(1), I, T(0), columns);
  DistMatrix<T> everywhere(grid, replicated(A.rows(), A.cols()));
  redistribute(columns, everywhere);
  std::vector<T> values = on_host(everywhere);
  values.resize(at(A.rows() * A.cols()));  // on idle ranks
  return {A.rows(), A.cols(), values};
}

}  // namespace gridlops::testing
