// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/solve/proximal.hpp"
#include "support/arrays.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Steps of their own for three columns: the last shortens every group to 0.
ColumnScalars own_steps() { return ColumnScalars(std::vector<double>{0.3, 1.1, 40}); }

template <Scalar T>
double length_of(const std::vector<T>& group) {
  long double sum = 0;
  for (const T x : group) sum += std::norm(static_cast<Accumulator<T>>(x));
  return static_cast<double>(std::sqrt(sum));
}

/// x where its group has norm n, after the map with t.
template <Scalar T>
T shortened(T x, double n, double t) {
  return n <= t ? T(0) : x * static_cast<Real<T>>((n - t) / n);
}

constexpr double sigma = 0.7;

}  // namespace

TEMPLATE_LIST_TEST_CASE("The L2,1 norm of a stack has the groups of its members", "[l21_norm]", Scalars) {
  using T = TestType;
  const ColumnScalars tau = own_steps();
  for (const Index members : {1, 2, 3}) {
    const auto element = [](Index k) {
      return [k](Index i, Index j) {
        return j == 1 ? T(0) : random_elements<T>(static_cast<std::uint64_t>(20 + k))(i, j);
      };
    };
    const auto group_norm = [&](Index i, Index j) {
      std::vector<T> group;
      for (Index k = 0; k < members; ++k) group.push_back(element(k)(i, j));
      return length_of(group);
    };
    for_each_layout(13, 3, 0, [&](const GridPtr& grid, const Layout& layout) {
      const Space space{grid, layout.rows, layout.cols.axis};
      const std::vector<Space> spaces(static_cast<std::size_t>(members), space);
      DistMatrix<T> X(grid, stack_spaces(spaces).layout(layout.cols.partition));
      for (Index k = 0; k < members; ++k) {
        DistMatrix<T> rows = stack_rows(spaces, static_cast<std::size_t>(k), X);
        rows.fill(element(k));
      }
      const ProximalPtr<T> f = l21_norm<T>(spaces, sigma);
      const ColumnScalars values = value(*f, X);
      f->prox(tau, X);
      for (Index k = 0; k < members; ++k) {
        const DistMatrix<T> rows = stack_rows(spaces, static_cast<std::size_t>(k), X);
        CHECK(mismatches(
                  rows,
                  [&](Index i, Index j) {
                    return shortened(element(k)(i, j), group_norm(i, j), sigma * tau[j]);
                  },
                  8 * epsilon_of<T>) == 0);
      }
      if (!grid->is_member()) return;
      for (Index j = 0; j < 3; ++j) {
        double sum = 0;
        for (Index i = 0; i < 13; ++i) sum += sigma * group_norm(i, j);
        CHECK(values[j] == Approx(sum).epsilon(16 * epsilon_of<T>));
      }
    });
  }
}

TEMPLATE_TEST_CASE("The L2,1 norm of an array has the groups of its lines, wherever it is cut", "[l21_norm]",
                   float, std::complex<double>) {
  using T = TestType;
  const ColumnScalars tau = own_steps();
  for (const std::vector<Index>& sizes :
       {std::vector<Index>{5, 4, 3}, std::vector<Index>{7}, std::vector<Index>{2, 1, 9}}) {
    for_each_cut(sizes, {0, 1, 2}, [&](const Space& space) {
      for (int dim = 0; dim < space.dims.count(); ++dim) {
        // Elements belong to places of the array, and not to rows.
        const auto at_place = [&](const std::vector<Index>& place, Index j) {
          return random_elements<T>(9)(number_of(space.dims, place), j);
        };
        const auto group_norm = [&](std::vector<Index> place, Index j) {
          std::vector<T> group;
          for (Index k = 0; k < space.dims.size(dim); ++k) {
            place[static_cast<std::size_t>(dim)] = k;
            group.push_back(at_place(place, j));
          }
          return length_of(group);
        };
        DistMatrix<T> X = filled(space.grid, space.layout(3),
                                 [&](Index i, Index j) { return at_place(place_of(space.dims, i), j); });
        const ProximalPtr<T> f = l21_norm_along<T>(space, dim, sigma);
        const ColumnScalars values = value(*f, X);
        f->prox(tau, X);
        CHECK(mismatches(
                  X,
                  [&](Index i, Index j) {
                    const std::vector<Index> place = place_of(space.dims, i);
                    return shortened(at_place(place, j), group_norm(place, j), sigma * tau[j]);
                  },
                  8 * epsilon_of<T>) == 0);
        if (!space.grid->is_member()) continue;
        for (Index j = 0; j < 3; ++j) {
          double sum = 0;
          for (Index i = 0; i < space.dimension(); ++i) {
            const std::vector<Index> place = place_of(space.dims, i);
            if (place[static_cast<std::size_t>(dim)] == 0) sum += sigma * group_norm(place, j);
          }
          CHECK(values[j] == Approx(sum).epsilon(16 * epsilon_of<T>));
        }
      }
    });
  }
}

TEMPLATE_TEST_CASE("What the L2,1 norm maps has the same bits on every grid", "[l21_norm]", double,
                   std::complex<float>) {
  using T = TestType;
  const auto map = [](const GridPtr& grid, int cut) {
    const Space space = array_space(grid, {6, 5}, cut);
    DistMatrix<T> X = filled(grid, space.layout(3), [&](Index i, Index j) {
      return random_elements<T>(9)(number_of(space.dims, place_of(space.dims, i)), j);
    });
    l21_norm_along<T>(space, 0, sigma)->prox(own_steps(), X);
    const Space whole = array_space(grid, {6, 5}, 0, Axis::uncut);
    DistMatrix<T> Y(grid, whole.layout(3));
    identity<T>(whole, space)->apply(T(1), X, T(0), Y);
    return everywhere(Y);
  };
  const std::vector<GridPtr> grids = all_grids();
  const std::vector<T> first = map(grids.front(), 0);
  for (const GridPtr& grid : grids)
    for (const int cut : {0, 1}) {
      const std::vector<T> found = map(grid, cut);
      CHECK((!grid->is_member() || found == first));
    }
}

TEST_CASE("Wrong arguments of L2,1 norms are refused on all ranks", "[l21_norm]") {
  CHECK_THROWS_AS(l21_norm<double>(std::vector<Space>()), ShapeError);
  for (const auto& grid : compact_grids()) {
    const Space space = array_space(grid, {6, 5}, 0), other = array_space(grid, {5, 6}, 0);
    CHECK_THROWS_AS(l21_norm<double>({space, array_space(grid, {4}, 0)}), ShapeError);
    CHECK_THROWS_AS(l21_norm<double>({space, space}, -1), UsageError);
    CHECK_THROWS_AS(l21_norm_along<double>(space, 2), ShapeError);
    CHECK_THROWS_AS(l21_norm_along<double>(space, -1), ShapeError);
    CHECK_THROWS_AS(l21_norm_along<double>(space, 0, std::nan("")), UsageError);
    DistMatrix<double> X(grid, space.layout(2)), Y(grid, other.layout(2)), none(grid, space.layout(0));
    X.set_zero();
    CHECK_THROWS_AS(l21_norm<double>({space, space})->prox(1, X), ShapeError);
    if (grid->is_member()) CHECK_THROWS_AS(value(*l21_norm<double>({space, space}), X), ShapeError);
    l21_norm_along<double>(space, 0)->prox(1, none);
    CHECK(value(*l21_norm_along<double>(space, 0), none).size() == 0);
    if (grid->rows() * grid->cols() > 1)
      CHECK_THROWS_AS(l21_norm_along<double>(space, 1)->prox(1, Y), ShapeError);
  }
}
