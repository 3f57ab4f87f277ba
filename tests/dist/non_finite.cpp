// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dist/dist_matrix.hpp"

#include <limits>

#include "support/grids.hpp"

using namespace gridlops;
using namespace gridlops::testing;

TEMPLATE_TEST_CASE("The first element that is not finite is found, by columns, on every layout", "", float,
                   std::complex<double>) {
  using T = TestType;
  constexpr Index m = 7, n = 5;
  const auto infinity = std::numeric_limits<Real<T>>::infinity();
  for (const GridPtr& grid : all_grids()) {
    for (const Axis rows : all_axes) {
      for (const Axis cols : all_axes) {
        if (!legal(rows, cols)) continue;
        const Layout layout{Cut::balanced(rows, m, *grid), Cut::balanced(cols, n, *grid)};
        DistMatrix<T> X(grid, layout);
        X.fill([](Index i, Index j) { return T(static_cast<Real<T>>(i + j)); });
        CHECK_FALSE(find_non_finite(X));
        // The last one by columns is the first by rows.
        X.fill([&](Index i, Index j) {
          const bool bad = (i == 5 && j == 2) || (i == 3 && j == 3) || (i == 6 && j == 2);
          return bad ? T(-infinity) : T(0);
        });
        const std::optional<NonFiniteElement> found = find_non_finite(X);
        CAPTURE(describe(*grid), layout.describe());
        REQUIRE(found.has_value() == grid->is_member());
        if (!found) continue;
        CHECK(found->row == 5);
        CHECK(found->col == 2);
        CHECK(found->value.real() == -std::numeric_limits<double>::infinity());
        const int row = found->rank / grid->cols(), col = found->rank % grid->cols();
        const Range its_rows = layout.row_range(*grid, row, col),
                    its_cols = layout.col_range(*grid, row, col);
        CHECK((its_rows.begin <= 5 && 5 < its_rows.end() && its_cols.begin <= 2 && 2 < its_cols.end()));
      }
    }
    const DistMatrix<T> nothing(grid, Layout{Cut::balanced(Axis::all, 0, *grid), Cut::uncut(n)});
    CHECK_FALSE(find_non_finite(nothing));
  }
}

TEST_CASE("NaN in an imaginary part is found") {
  const GridPtr grid = all_grids().back();
  DistMatrix<std::complex<float>> X(grid, Layout{Cut::balanced(Axis::all, 4, *grid), Cut::uncut(1)});
  X.fill([](Index i, Index) {
    return std::complex<float>(1, i == 2 ? std::numeric_limits<float>::quiet_NaN() : 0);
  });
  const auto found = find_non_finite(X);
  REQUIRE(found.has_value() == grid->is_member());
  if (found) CHECK((found->row == 2 && std::isnan(found->value.imag()) && found->value.real() == 1));
}

TEST_CASE("An element that is not finite is found in a long column, of which pieces are searched") {
  const GridPtr grid = all_grids().front();
  constexpr Index rows = (1 << 17) + 3;
  DistMatrix<float> X(grid, Layout{Cut::uncut(rows), Cut::uncut(2)});
  for (const Index wrong : {Index{0}, Index{(1 << 16) - 1}, Index{1 << 16}, rows - 1}) {
    X.fill([&](Index i, Index j) {
      return i == wrong && j == 1 ? std::numeric_limits<float>::infinity() : static_cast<float>(i);
    });
    const auto found = find_non_finite(X);
    REQUIRE(found.has_value() == grid->is_member());
    if (found) CHECK((found->row == wrong && found->col == 1));
  }
}
