// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dist/redistribute.hpp"

#include "gridlops/base/error.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

std::vector<Layout> legal_layouts(const ProcessGrid& grid, Index rows, Index cols, int variant) {
  std::vector<Layout> layouts;
  for (const Axis row_axis : all_axes)
    for (const Axis col_axis : all_axes)
      if (legal(row_axis, col_axis))
        layouts.push_back(layout_along(grid, row_axis, col_axis, rows, cols, variant));
  return layouts;
}

/// Counts the elements that rank `from` sends to rank `to` one by one: those that it owns, and that the other
/// has in the new layout.
Index elements_moved(const ProcessGrid& grid, const Layout& before, const Layout& after, int from, int to) {
  const int P = from / grid.cols(), Q = from % grid.cols();
  if (!before.owned_at(grid, P, Q)) return 0;
  const auto common = [](Range a, Range b) {
    Index count = 0;
    for (Index i = a.begin; i < a.end(); ++i) count += b.begin <= i && i < b.end();
    return count;
  };
  const int row = to / grid.cols(), col = to % grid.cols();
  return common(before.row_range(grid, P, Q), after.row_range(grid, row, col)) *
         common(before.col_range(grid, P, Q), after.col_range(grid, row, col));
}

/// Checks that there was one all_to_all, and that it carried only what changes its rank.
template <Scalar T>
void check_traffic(const TrafficSince& traffic, const ProcessGrid& grid, const Layout& before,
                   const Layout& after) {
  CHECK(traffic.calls() == 1);
  CHECK(traffic.calls(CommOperation::all_to_all) == 1);
  const int me = grid.comm().rank();
  Index sent = 0, received = 0;
  for (int other = 0; other < grid.shape().size(); ++other) {
    if (other == me) continue;
    sent += elements_moved(grid, before, after, me, other);
    received += elements_moved(grid, before, after, other, me);
  }
  CHECK(traffic.sent() == sent * Index{sizeof(T)});
  CHECK(traffic.received() == received * Index{sizeof(T)});
  const RankCost cost =
      redistribution_cost(grid, before, after, scalar_type_of<T>, grid.my_row(), grid.my_col());
  CHECK(cost.bytes_sent == sent * Index{sizeof(T)});
  CHECK(cost.bytes_received == received * Index{sizeof(T)});
  const Index kept = elements_moved(grid, before, after, me, me);
  CHECK(cost.workspace_bytes == (sent + received + 2 * kept) * Index{sizeof(T)});
}

/// Redistributes from every legal layout to every other, with all pairs of these coefficients.
template <Scalar T>
void check_all_pairs(Index rows, Index cols, int variant_from, int variant_to,
                     const std::vector<std::pair<T, T>>& coefficients) {
  const Whole<T> x = integers<T>(1, rows, cols), y = integers<T>(2, rows, cols);
  for (const GridPtr& grid : all_grids()) {
    for (const Layout& before : legal_layouts(*grid, rows, cols, variant_from)) {
      for (const Layout& after : legal_layouts(*grid, rows, cols, variant_to)) {
        INFO(describe(*grid) << ": " << before.describe() << " to " << after.describe()
                             << ", cut in variants " << variant_from << " and " << variant_to);
        for (const auto& coefficient : coefficients) {
          const T alpha = coefficient.first, beta = coefficient.second;
          CAPTURE(alpha, beta);
          const bool unread = beta == T(0);
          EmbeddedMatrix<T> X(grid, before, 1, x),
              Y(grid, after, 2, [&](Index i, Index j) { return unread ? quiet_nan<T>() : y(i, j); });
          DistMatrix<T> to = Y.matrix();
          const TrafficSince traffic(world());
          redistribute(alpha, X.matrix(), beta, to);
          if (grid->is_member()) {
            check_traffic<T>(traffic, *grid, before, after);
          } else {
            CHECK(traffic.nothing());
          }
          CHECK(mismatches(to, [&](Index i, Index j) {
                  return alpha * x(i, j) + (unread ? T(0) : beta * y(i, j));
                }) == 0);
          CHECK(mismatches(X.matrix(), x) == 0);
          CHECK(X.surroundings_untouched());
          CHECK(Y.surroundings_untouched());
        }
      }
    }
  }
}

template <Scalar T>
std::vector<std::pair<T, T>> some_coefficients() {
  return {{T(1), T(0)}, {number<T>(2, -1), number<T>(-1, 3)}};
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Every layout can be redistributed to every other", "[redistribute]", Scalars) {
  check_all_pairs<TestType>(7, 5, 0, 0, {{TestType(1), TestType(0)}});
}

TEST_CASE("Redistribution scales and adds", "[redistribute]") {
  using T = std::complex<float>;
  check_all_pairs<T>(6, 4, 0, 0, {{T(2, -1), T(-1, 3)}});
}

TEST_CASE("Redistribution takes and gives uneven blocks, also empty ones", "[redistribute]") {
  check_all_pairs<double>(8, 7, 3, 4, {{-1.0, 2.0}});
}

TEMPLATE_LIST_TEST_CASE("Matrices of all shapes are redistributed between all cuts", "[redistribute][.full]",
                        Scalars) {
  for (int from = 0; from < cut_variants; ++from)
    for (int to = 0; to < cut_variants; ++to)
      check_all_pairs<TestType>(9, 7, from, to, some_coefficients<TestType>());
  for (const auto& shape : {std::pair<Index, Index>{0, 3}, {3, 0}, {1, 1}, {1, 11}, {11, 1}})
    check_all_pairs<TestType>(shape.first, shape.second, 0, 3, some_coefficients<TestType>());
}

TEST_CASE("Copies are the owner's elements after a redistribution in place", "[redistribute]") {
  for (const GridPtr& grid : all_grids()) {
    INFO(describe(*grid));
    DistMatrix<double> X(grid, replicated(3, 4));
    const double mine = grid->is_member() ? grid->comm().rank() : -1;
    X.fill([=](Index i, Index j) { return mine * 100 + static_cast<double>(i + 10 * j); });
    redistribute(X, X);
    CHECK(mismatches(X, [](Index i, Index j) { return static_cast<double>(i + 10 * j); }) == 0);
  }
}

TEST_CASE("Other shapes and other grids are refused on all ranks, without a message", "[redistribute]") {
  const std::vector<GridPtr> grids = all_grids();
  for (const GridPtr& grid : grids) {
    INFO(describe(*grid));
    const DistMatrix<double> X(grid, blocks_2d(*grid, 4, 3));
    DistMatrix<double> more_rows(grid, replicated(5, 3)), transposed(grid, replicated(3, 4));
    const TrafficSince traffic(world());
    CHECK_THROWS_AS(redistribute(X, more_rows), ShapeError);
    CHECK_THROWS_AS(redistribute(X, transposed), ShapeError);
    if (grid != grids.front()) {
      DistMatrix<double> elsewhere(grids.front(), replicated(4, 3));
      CHECK_THROWS_AS(redistribute(X, elsewhere), ShapeError);
    }
    CHECK(traffic.nothing());
  }
}
