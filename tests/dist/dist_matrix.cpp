// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dist/dist_matrix.hpp"

#include <utility>

#include "gridlops/base/error.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Whether a matrix's elements can be changed through an lvalue of this type.
template <class Matrix>
concept Writable = requires(Matrix& X) {
  X.set_zero();
}
|| requires(Matrix& X) { X.local()(0, 0) = 1.0F; }
|| std::convertible_to<Matrix&, DistMatrix<float>&> || std::constructible_from<DistMatrix<float>, Matrix>;

template <class Matrix>
using ColumnSlice = decltype(std::declval<Matrix>().column_slice({}, Partition()));
template <class Matrix>
using StackRows = decltype(stack_rows(std::vector<Space>(), 0, std::declval<Matrix>()));

static_assert(Writable<ColumnSlice<DistMatrix<float>&>> && Writable<StackRows<DistMatrix<float>&>>);
static_assert(!Writable<ColumnSlice<const DistMatrix<float>&>>);
static_assert(!Writable<StackRows<const DistMatrix<float>&>>);
static_assert(!Writable<ColumnSlice<ConstDistMatrix<float>&>>);

}  // namespace

TEMPLATE_LIST_TEST_CASE("Fill, gather and scatter agree on every layout", "[dist_matrix]", Scalars) {
  using T = TestType;
  const Whole<T> value = integers<T>(1, 7, 5);
  for (const int variant : {0, 3}) {
    for_each_layout(7, 5, variant, [&](const GridPtr& grid, const Layout& layout) {
      const DistMatrix<T> X = filled(grid, layout, value);
      const int root = grid->shape().size() - 1;
      const std::vector<T> whole = gather(X, root);
      const bool at_root = grid->is_member() && grid->comm().rank() == root;
      CHECK(whole == (at_root ? value.values : std::vector<T>()));

      DistMatrix<T> Y(grid, layout);
      scatter(whole, root, Y);
      CHECK(mismatches(Y, value) == 0);
    });
  }
}

TEST_CASE("Matrices without elements can be filled, gathered and scattered", "[dist_matrix]") {
  for (const Index rows : {Index{0}, Index{3}}) {
    for_each_layout(rows, 3 - rows, 0, [](const GridPtr& grid, const Layout& layout) {
      DistMatrix<double> X(grid, layout);
      X.fill([](Index, Index) { return 1.0; });
      X.set_zero();
      CHECK(gather(X, 0).empty());
      scatter(std::vector<double>(), 0, X);
      CHECK(column_norms(X) == std::vector<double>(static_cast<std::size_t>(layout.col_count()), 0.0));
    });
  }
}

TEST_CASE("A root's array of another size is refused on all ranks", "[dist_matrix]") {
  for (const GridPtr& grid : all_grids()) {
    INFO(describe(*grid));
    if (!grid->is_member()) continue;
    DistMatrix<double> X(grid, blocks_2d(*grid, 4, 3));
    const int root = grid->shape().size() - 1;
    const std::vector<double> whole(grid->comm().rank() == root ? 11 : 12);
    CHECK_THROWS_AS(scatter(whole, root, X), ShapeError);
  }
}

TEMPLATE_LIST_TEST_CASE("Operations on views leave what surrounds them alone", "[dist_matrix]", Scalars) {
  using T = TestType;
  const Whole<T> value = integers<T>(2, 6, 9);
  for_each_layout(6, 9, 3, [&](const GridPtr& grid, const Layout& layout) {
    EmbeddedMatrix<T> X(grid, layout, 2, value), Y(grid, layout, 3, integers<T>(3, 6, 9));
    const std::vector<T> whole = gather(X.matrix(), 0);
    DistMatrix<T> X_view = X.matrix(), Y_view = Y.matrix();
    CHECK(mismatches(X_view, value) == 0);
    scatter(whole, 0, Y_view);
    CHECK(mismatches(Y_view, value) == 0);
    copy(X_view, Y_view);
    Y_view += ColumnScalars(9, 2) * X_view;
    Y_view *= ColumnScalars(9, -1);
    CHECK(mismatches(Y_view, [&](Index i, Index j) { return T(-3) * value(i, j); }) == 0);
    column_dots(X_view, Y_view);
    Y_view.set_zero();
    CHECK(mismatches(Y_view, [](Index, Index) { return T(0); }) == 0);
    CHECK(X.surroundings_untouched());
    CHECK(Y.surroundings_untouched());
  });
}

TEST_CASE("Blocks of a wrong shape are refused where they are", "[dist_matrix]") {
  for (const GridPtr& grid : all_grids()) {
    INFO(describe(*grid));
    std::vector<double> memory(40);
    const Layout layout = replicated(3, 4);
    if (grid->is_member()) {
      CHECK_NOTHROW(DistMatrix<double>(grid, layout, {memory.data(), 3, 4, 3}));
      CHECK_NOTHROW(DistMatrix<double>(grid, layout, {memory.data(), 3, 4, 8}));
      CHECK_THROWS_AS(DistMatrix<double>(grid, layout, {memory.data(), 3, 4, 2}), ShapeError);
      CHECK_THROWS_AS(DistMatrix<double>(grid, layout, {memory.data(), 4, 3, 4}), ShapeError);
    } else {
      CHECK_NOTHROW(DistMatrix<double>(grid, layout, {}));
      CHECK_THROWS_AS(DistMatrix<double>(grid, layout, {memory.data(), 3, 4, 3}), ShapeError);
    }
  }
}

TEST_CASE("Idle ranks own nothing", "[dist_matrix]") {
  for (const GridPtr& grid : all_grids()) {
    if (grid->is_member()) continue;
    INFO(describe(*grid));
    DistMatrix<float> X(grid, replicated(3, 2));
    X.fill([](Index, Index) { return 1.0F; });
    CHECK(X.local().empty());
    CHECK_FALSE(X.owned());
    CHECK(X.rows() == 3);
    CHECK(X.clone().local().empty());
    CHECK(gather(X, 0).empty());
    CHECK(grid->backend()->allocations() == 0);
  }
}

TEMPLATE_LIST_TEST_CASE("A clone has the elements in memory of its own", "[dist_matrix]", Scalars) {
  using T = TestType;
  const Whole<T> value = integers<T>(4, 5, 6);
  for_each_layout(5, 6, 0, [&](const GridPtr& grid, const Layout& layout) {
    DistMatrix<T> X = filled(grid, layout, value);
    DistMatrix<T> Y;
    CHECK((Y.grid() == nullptr && Y.local().empty() && Y.rows() == 0 && Y.cols() == 0));
    Y = X.clone();
    X.set_zero();
    CHECK(Y.layout() == layout);
    CHECK(mismatches(Y, value) == 0);
    const DistMatrix<T> moved = std::move(Y);
    CHECK(mismatches(moved, value) == 0);
  });
}

TEMPLATE_LIST_TEST_CASE("Column-wise sums count copies once", "[dist_matrix]", Scalars) {
  using T = TestType;
  const Whole<T> x = integers<T>(5, 11, 7), y = integers<T>(6, 11, 7);
  std::vector<Accumulator<T>> dots(7, 0);
  std::vector<double> norms(7, 0);
  for (Index j = 0; j < 7; ++j) {
    const auto column = static_cast<std::size_t>(j);
    for (Index i = 0; i < 11; ++i) {
      dots[column] += conjugate(static_cast<Accumulator<T>>(x(i, j))) * static_cast<Accumulator<T>>(y(i, j));
      norms[column] += static_cast<double>(std::norm(x(i, j)));
    }
    norms[column] = std::sqrt(norms[column]);
  }
  for (const int variant : {0, 1, 4}) {
    for_each_layout(11, 7, variant, [&](const GridPtr& grid, const Layout& layout) {
      const DistMatrix<T> X = filled(grid, layout, x), Y = filled(grid, layout, y);
      const TrafficSince traffic(world());
      const auto found_dots = column_dots(X, Y);
      CHECK(traffic.calls() == (grid->is_member() ? 1 : 0));
      const auto found_norms = column_norms(X);
      CHECK(traffic.calls(CommOperation::all_reduce) == (grid->is_member() ? 2 : 0));
      if (!grid->is_member()) return;
      CHECK(found_dots == dots);
      CHECK(found_norms == norms);
    });
  }
}

TEMPLATE_LIST_TEST_CASE("Norms of any order take one reduction, and NaN goes through", "[dist_matrix]",
                        Scalars) {
  using T = TestType;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Whole<T> x = integers<T>(5, 11, 7);
  for (const double order : {0.0, 1.0, 2.0, 3.0, 0.5, infinity}) {
    std::vector<double> expected(7, 0);
    for (Index j = 0; j < 7; ++j) {
      double& norm = expected[static_cast<std::size_t>(j)];
      for (Index i = 0; i < 11; ++i) {
        const auto m = static_cast<double>(std::abs(x(i, j)));
        norm = order == infinity ? std::max(norm, m) : norm + (m == 0 ? 0 : std::pow(m, order));
      }
      if (order != 0 && order != infinity) norm = std::pow(norm, 1 / order);
    }
    for_each_layout(11, 7, 4, [&](const GridPtr& grid, const Layout& layout) {
      DistMatrix<T> X = filled(grid, layout, x);
      const TrafficSince traffic(world());
      const std::vector<double> norms = column_norms(X, order);
      CHECK(traffic.calls() == (grid->is_member() ? 1 : 0));
      X.fill([&](Index i, Index j) { return i == j ? quiet_nan<T>() : x(i, j); });
      const std::vector<double> spoiled = column_norms(X, order);
      if (!grid->is_member()) return;
      CAPTURE(order);
      for (std::size_t j = 0; j < 7; ++j) {
        CHECK(norms[j] == Approx(expected[j]).epsilon(4 * std::numeric_limits<Real<T>>::epsilon()));
        const auto of = static_cast<Index>(j);
        CHECK(
            (order == 0 ? spoiled[j] == expected[j] + (x(of, of) == T(0) ? 1 : 0) : std::isnan(spoiled[j])));
      }
    });
  }
  for (const GridPtr& grid : all_grids()) {
    const DistMatrix<T> X = filled(grid, replicated(3, 2), x);
    CHECK_THROWS_AS(column_norms(X, -1), UsageError);
    CHECK_THROWS_AS(column_norms(X, std::numeric_limits<double>::quiet_NaN()), UsageError);
  }
}

TEST_CASE("Column-wise operations refuse matrices that lie differently, without a message", "[dist_matrix]") {
  const std::vector<GridPtr> grids = all_grids();
  for (const GridPtr& grid : grids) {
    INFO(describe(*grid));
    DistMatrix<double> X(grid, replicated(4, 3)), other_rows(grid, replicated(5, 3)),
        other_columns(grid, replicated(4, 2));
    DistMatrix<double> other_cut(grid, {Cut::uncut(4), Cut::balanced(Axis::grid_rows, 3, *grid)});
    const TrafficSince traffic(world());
    CHECK_THROWS_AS(column_dots(X, other_rows), ShapeError);
    CHECK_THROWS_AS(column_dots(X, other_cut), ShapeError);
    CHECK_THROWS_AS(copy(X, other_cut), ShapeError);
    CHECK_THROWS_AS(other_cut += ColumnScalars(3, 1) * X, ShapeError);
    CHECK_THROWS_AS(other_cut -= 1.0 * X, ShapeError);
    CHECK_THROWS_AS(X += ColumnScalars(2, 1) * X, ShapeError);
    CHECK_THROWS_AS(X *= ColumnScalars(4, 1), ShapeError);
    CHECK_THROWS_AS(update(xpby(X, 1.0, other_rows)), ShapeError);
    CHECK_THROWS_AS(update(scale(1.0, X), xpby(X, ColumnScalars(2, 1), X)), ShapeError);
    CHECK_THROWS_AS(ColumnSums<double>(grid)(norm2(X), dot(X, other_rows)), ShapeError);
    CHECK_THROWS_AS(ColumnSums<double>(grid)(norm2(X), norm2(other_columns)), ShapeError);
    if (grid != grids.front()) {
      DistMatrix<double> elsewhere(grids.front(), replicated(4, 3));
      CHECK_THROWS_AS(copy(X, elsewhere), ShapeError);
    }
    CHECK(traffic.nothing());
  }
}

TEST_CASE("A slice of columns shares its memory and keeps parts where they are", "[dist_matrix]") {
  const Whole<float> value = integers<float>(9, 5, 13);
  for (const int variant : {0, 1, 2, 3, 4}) {
    for_each_layout(5, 13, variant, [&](const GridPtr& grid, const Layout& layout) {
      EmbeddedMatrix<float> memory(grid, layout, 1, value);
      DistMatrix<float> X = memory.matrix();
      // The slice has columns from the middle of every part, and none of every third.
      const Partition& whole = layout.cols.partition;
      std::vector<Index> first, sizes, origins;
      for (int part = 0; part < whole.parts(); ++part) {
        first.push_back(part % 3 == 2 ? whole.size(part) : whole.size(part) / 3);
        sizes.push_back(part % 3 == 2 ? 0 : (whole.size(part) - first.back() + 1) / 2);
        for (Index j = 0; j < sizes.back(); ++j) origins.push_back(whole.begin(part) + first.back() + j);
      }
      const auto origin = [&](Index j) { return origins[static_cast<std::size_t>(j)]; };
      const auto seen = std::as_const(X).column_slice(first, Partition::with_sizes(sizes));
      CHECK(seen.cols() == static_cast<Index>(origins.size()));
      CHECK(mismatches(seen, [&](Index i, Index j) { return value(i, origin(j)); }) == 0);
      CHECK(seen.owned() == X.owned());
      CHECK(column_norms(seen) == column_norms(seen.clone()));

      DistMatrix<float> slice = X.column_slice(first, Partition::with_sizes(sizes));
      slice *= 2;
      const auto expected = [&](Index i, Index j) {
        const bool sliced = std::count(origins.begin(), origins.end(), j) > 0;
        return value(i, j) * (sliced ? 2.0F : 1.0F);
      };
      CHECK(mismatches(X, expected) == 0);
      CHECK(memory.surroundings_untouched());
    });
  }
}

TEST_CASE("Slices of columns that a part does not have are refused", "[dist_matrix]") {
  for (const GridPtr& grid : all_grids()) {
    INFO(describe(*grid));
    DistMatrix<double> X(grid, replicated(2, 4));
    const auto slice = [&](std::vector<Index> first, std::vector<Index> sizes) {
      return X.column_slice(first, Partition::with_sizes(sizes));
    };
    CHECK_NOTHROW(slice({4}, {0}));
    CHECK_THROWS_AS(slice({2}, {3}), ShapeError);
    CHECK_THROWS_AS(slice({-1}, {2}), ShapeError);
    CHECK_THROWS_AS(slice({5}, {0}), ShapeError);
    CHECK_THROWS_AS(slice({0, 1}, {1, 1}), ShapeError);
    CHECK_THROWS_AS(slice({0, 1}, {1}), ShapeError);
  }
}
