// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dist/column_arithmetic.hpp"

#include <limits>

#define main steepest_descent_main  // the example, with its loop
#include "../../docs/examples/steepest_descent.cpp"
#undef main

#include "support/problems.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index rows = 6, cols = 8;

ColumnScalars scalars_for_columns() {
  ColumnScalars alpha(cols);
  for (Index j = 0; j < cols; ++j) alpha[j] = static_cast<double>(j - 3);
  return alpha;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Columns are added and scaled with factors of their own", "[dist_matrix]", Scalars) {
  using T = TestType;
  const Whole<T> x = integers<T>(7, rows, cols), y = integers<T>(8, rows, cols);
  const ColumnScalars alpha = scalars_for_columns();
  const auto factor = [&alpha](Index j) { return static_cast<T>(static_cast<Real<T>>(alpha[j])); };
  for (const int variant : {0, 2, 5}) {
    for_each_layout(rows, cols, variant, [&](const GridPtr& grid, const Layout& layout) {
      const DistMatrix<T> X = filled(grid, layout, x);
      const TrafficSince traffic(world());
      DistMatrix<T> Y = filled(grid, layout, y);
      Y += alpha * X;
      CHECK(mismatches(Y, [&](Index i, Index j) { return y(i, j) + factor(j) * x(i, j); }) == 0);
      Y *= alpha;
      CHECK(mismatches(Y, [&](Index i, Index j) { return factor(j) * (y(i, j) + factor(j) * x(i, j)); }) ==
            0);
      Y = filled(grid, layout, y);
      Y -= alpha * X;
      CHECK(mismatches(Y, [&](Index i, Index j) { return y(i, j) - factor(j) * x(i, j); }) == 0);
      Y = filled(grid, layout, y);
      update(xpby(X, alpha, Y));
      CHECK(mismatches(Y, [&](Index i, Index j) { return x(i, j) + factor(j) * y(i, j); }) == 0);
      CHECK(traffic.nothing());
    });
  }
}

TEMPLATE_LIST_TEST_CASE("Columns may be added and scaled with one factor for all", "[dist_matrix]", Scalars) {
  using T = TestType;
  const Whole<T> x = integers<T>(7, rows, cols), y = integers<T>(8, rows, cols);
  const T nan(std::numeric_limits<Real<T>>::quiet_NaN());
  for_each_layout(rows, cols, 2, [&](const GridPtr& grid, const Layout& layout) {
    const DistMatrix<T> X = filled(grid, layout, x);
    DistMatrix<T> Y = filled(grid, layout, y), undefined(grid, layout);
    undefined.fill([nan](Index, Index) { return nan; });
    Y += 2 * X;
    Y -= X;
    Y *= 3;
    Y += 0 * undefined;
    CHECK(mismatches(Y, [&](Index i, Index j) { return T(3) * (y(i, j) + x(i, j)); }) == 0);
    update(xpby(X, -1, Y));
    CHECK(mismatches(Y, [&](Index i, Index j) { return x(i, j) - T(3) * (y(i, j) + x(i, j)); }) == 0);
    update(axpy(0, undefined, undefined), xpby(X, 0, undefined));
    CHECK(mismatches(undefined, x) == 0);
  });
}

TEST_CASE("Every column has a threshold of its own", "[dist_matrix]") {
  for_each_layout(rows, cols, 3, [](const GridPtr& grid, const Layout& layout) {
    DistMatrix<double> X(grid, layout);
    X.fill([](Index i, Index j) { return static_cast<double>((i + j) % 2 == 0 ? i : -i); });
    ColumnScalars t(cols);
    for (Index j = 0; j < cols; ++j) t[j] = static_cast<double>(j);
    threshold(Threshold::soft, t, X);
    CHECK(mismatches(X, [](Index i, Index j) {
            const double size = static_cast<double>(std::max<Index>(i - j, 0));
            return (i + j) % 2 == 0 || size == 0 ? size : -size;
          }) == 0);
  });
}

TEMPLATE_LIST_TEST_CASE("Sums of any mixture travel in one reduction, and are right", "[dist_matrix]",
                        Scalars) {
  using T = TestType;
  const Whole<T> x = integers<T>(5, rows, cols), y = integers<T>(6, rows, cols);
  std::vector<double> norms(cols, 0), dots(cols, 0), sizes(cols, 0);
  for (Index j = 0; j < cols; ++j) {
    for (Index i = 0; i < rows; ++i) {
      const auto of = static_cast<std::size_t>(j);
      norms[of] += static_cast<double>(std::norm(x(i, j)));
      dots[of] += static_cast<double>(std::real(conjugate(x(i, j)) * y(i, j)));
      sizes[of] += x(i, j) == T(0) ? 0 : 1;
    }
  }
  const std::vector<double> none(cols, 0);
  for_each_layout(rows, cols, 4, [&](const GridPtr& grid, const Layout& layout) {
    const DistMatrix<T> X = filled(grid, layout, x), Y = filled(grid, layout, y);
    ColumnSums<T> sums(grid);
    const auto [first] = sums(norm2(Y));
    const Index allocations = grid->backend()->allocations();
    const TrafficSince traffic(world());
    std::vector<double> numbers{1, 2};
    // These are more sums than there is room for at once.
    const auto [xx, xy, zeros, again, yx] =
        sums.with(numbers, norm2(X), dot(X, Y), penalty(Threshold::hard, X), norm2(X), dot(Y, X));
    CHECK(traffic.calls() == (grid->is_member() ? 1 : 0));
    DistMatrix<T> Z = X.clone();
    const Index cloned = grid->backend()->allocations();
    Z += xx * Y;
    Z *= xy;
    CHECK(cloned - allocations <= 1);
    CHECK(grid->backend()->allocations() == cloned);
    const bool member = grid->is_member();
    CHECK(xx.values() == (member ? norms : none));
    CHECK(xy.values() == (member ? dots : none));
    CHECK(zeros.values() == (member ? sizes : none));
    CHECK(again.values() == xx.values());
    CHECK(yx.values() == xy.values());
    const double ranks = member ? grid->comm().size() : 1;
    CHECK(numbers == std::vector<double>{ranks, 2 * ranks});
  });
}

TEST_CASE("Sums of columns that are cut and of columns that are not travel together", "[dist_matrix]") {
  const Whole<double> x = integers<double>(5, rows, cols);
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    INFO(describe(*grid));
    const DistMatrix<double> cut =
        filled(grid, layout_along(*grid, Axis::grid_rows, Axis::grid_cols, rows, cols, 0), x);
    const DistMatrix<double> uncut =
        filled(grid, layout_along(*grid, Axis::grid_rows, Axis::uncut, rows, cols, 0), x);
    const auto [of_cut, of_uncut] = ColumnSums<double>(grid)(norm2(cut), norm2(uncut));
    CHECK(of_cut.values() == of_uncut.values());
    const auto other = std::make_shared<ProcessGrid>(*grid, grid->backend());
    CHECK_THROWS_AS(ColumnSums<double>(other)(norm2(cut)), ShapeError);
  }
}

TEST_CASE("Scalars of columns are computed with entry by entry", "[dist_matrix]") {
  const ColumnScalars a(std::vector<double>{3, 0, -8}), b(std::vector<double>{4, 0, 2});
  using Values = std::vector<double>;
  CHECK((a + b).values() == Values{7, 0, -6});
  CHECK((a - b).values() == Values{-1, 0, -10});
  CHECK((2 * a * b).values() == Values{24, 0, -32});
  CHECK((b / 2).values() == Values{2, 0, 1});
  CHECK((-a).values() == Values{-3, 0, 8});
  CHECK(ratio(a, b).values() == Values{0.75, 0, -4});
  CHECK(ratio(1, b).values() == Values{0.25, 0, 0.5});
  CHECK(hypot(a, b).values() == Values{5, 0, std::hypot(8, 2)});
  CHECK(sqrt(b).values() == Values{2, 0, std::sqrt(2.0)});
  CHECK(abs(a).values() == Values{3, 0, 8});
  CHECK(max(a, b).values() == Values{4, 0, 2});
  CHECK(min(a, b).values() == Values{3, 0, -8});
  CHECK(largest(a) == 3);
  CHECK(largest(ColumnScalars()) == 0);
  const ColumnScalars spoiled(std::vector<double>{1, std::nan(""), 2});
  CHECK(std::isnan(largest(spoiled)));
  CHECK(std::isnan(ratio(1, spoiled)[1]));
  CHECK(max(a, spoiled).values() == Values{3, 0, 2});
  CHECK_THROWS_AS(a + ColumnScalars(2), ShapeError);
}

TEMPLATE_LIST_TEST_CASE("A user's own solver takes one reduction an iteration, and no memory",
                        "[dist_matrix]", Scalars) {
  using T = TestType;
  constexpr Index m = 30, n = 9, nrhs = 5;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 2));
  for (const GridPtr& grid : all_grids()) {
    INFO(describe(*grid));
    const auto A = dense_operator(grid, Algorithm::stationary_a, matrix);
    DistMatrix<T> truth(grid, A->domain().layout(nrhs)), X(grid, truth.layout()),
        B(grid, A->range().layout(nrhs));
    truth.fill(random_elements<T>(1));
    A->apply(1, truth, 0, B);
    X.set_zero();
    const double tolerance = sizeof(Real<T>) == 8 ? 1e-10 : 1e-4;
    const auto account = [&](Index iterations) {
      const Index allocations = grid->backend()->allocations();
      const TrafficSince traffic(world());
      const Index taken = steepest_descent(*A, B, X, tolerance, iterations);
      return std::array<Index, 3>{taken, traffic.calls(CommOperation::all_reduce),
                                  grid->backend()->allocations() - allocations};
    };
    account(2);
    const auto few = account(3), many = account(100);
    X -= truth;
    const auto [errors] = ColumnSums<T>(grid)(norm2(X));
    if (!grid->is_member()) continue;
    CHECK(many[0] > few[0]);
    CHECK(many[0] < 100);
    // It ends with a reduction that finds the gradient small.
    CHECK(many[1] - few[1] == many[0] + 1 - few[0]);
    CHECK(many[2] == few[2]);
    // The smallest singular value is 1/2.
    CHECK(std::sqrt(largest(errors)) <= 4 * tolerance);
  }
}
