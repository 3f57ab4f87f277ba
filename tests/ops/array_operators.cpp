// SPDX-License-Identifier: BSD-3-Clause
// Compares operators on arrays, cut in many ways, with formulas for their elements.
#include "gridlops/ops/array_operators.hpp"

#include <array>
#include <cmath>

#include "gridlops/base/error.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "support/arrays.hpp"
#include "support/catch.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

using Kind = Derivative::Kind;

/// (D x)ᵢ for x = eⱼ, written from the definition for whole vectors: what a derivative of n samples is.
using Samples = std::vector<double>;
Samples unit(Index n, Index j) {
  Samples x(static_cast<std::size_t>(n));
  x[static_cast<std::size_t>(j)] = 1;
  return x;
}
Samples first_derivative_of(const Samples& x, Kind kind, int order, bool edge, double d) {
  const int n = static_cast<int>(x.size());
  Samples y(x.size());
  const auto X = [&](int i) { return x[static_cast<std::size_t>(i)]; };
  const auto set = [&](int i, double value) {
    if (0 <= i && i < n) y[static_cast<std::size_t>(i)] = value / d;
  };
  if (kind == Kind::forward) {
    for (int i = 0; i < n - 1; ++i) set(i, X(i + 1) - X(i));
  } else if (kind == Kind::backward) {
    for (int i = 1; i < n; ++i) set(i, X(i) - X(i - 1));
  } else if (order == 3) {
    for (int i = 1; i < n - 1; ++i) set(i, (X(i + 1) - X(i - 1)) / 2);
    if (edge && n > 1) set(0, X(1) - X(0)), set(n - 1, X(n - 1) - X(n - 2));
  } else {
    for (int i = 2; i < n - 2; ++i)
      set(i, X(i - 2) / 12 - 2 * X(i - 1) / 3 + 2 * X(i + 1) / 3 - X(i + 2) / 12);
    if (edge && n > 3) {
      set(0, X(1) - X(0)), set(1, (X(2) - X(0)) / 2);
      set(n - 1, X(n - 1) - X(n - 2)), set(n - 2, (X(n - 1) - X(n - 3)) / 2);
    }
  }
  return y;
}
Samples second_derivative_of(const Samples& x, Kind kind, bool edge, double d) {
  const int n = static_cast<int>(x.size());
  Samples y(x.size());
  const auto X = [&](int i) { return x[static_cast<std::size_t>(i)]; };
  const auto second = [&](int i) { return (X(i) - 2 * X(i + 1) + X(i + 2)) / (d * d); };
  const auto set = [&](int i, double value) { y[static_cast<std::size_t>(i)] = value; };
  for (int i = 0; i < n - 2; ++i)
    set(kind == Kind::forward ? i : kind == Kind::backward ? i + 2 : i + 1, second(i));
  if (kind == Kind::centered && edge && n > 2) set(0, second(0)), set(n - 1, second(n - 3));
  return y;
}

template <class Derive>
auto matrix_of(Index n, Derive&& derive) {
  std::vector<Samples> columns;
  for (Index j = 0; j < n; ++j) columns.push_back(derive(unit(n, j)));
  return [columns](Index i, Index j) {
    return columns[static_cast<std::size_t>(j)][static_cast<std::size_t>(i)];
  };
}

}  // namespace

TEST_CASE("Derivatives have the rows of their definition, for every number of samples", "[array_operators]") {
  for (Index n = 0; n < 12; ++n) {
    for (const Kind kind : {Kind::forward, Kind::backward, Kind::centered}) {
      for (const bool edge : {false, true}) {
        for (const int order : {3, 5}) {
          if (order == 5 && edge && n < 4) continue;  // one row would be at both ends
          CAPTURE(n, static_cast<int>(kind), edge, order);
          const Band first = first_derivative(n, {kind, 0.4, edge, order});
          const Band second = second_derivative(n, {kind, 0.4, edge});
          const auto expected_first =
              matrix_of(n, [&](const Samples& x) { return first_derivative_of(x, kind, order, edge, 0.4); });
          const auto expected_second =
              matrix_of(n, [&](const Samples& x) { return second_derivative_of(x, kind, edge, 0.4); });
          for (Index i = 0; i < n; ++i) {
            for (Index j = 0; j < n; ++j) {
              CHECK(first(i, j) == Approx(expected_first(i, j)));
              CHECK(second(i, j) == Approx(expected_second(i, j)));
              CHECK(first.transposed()(j, i) == first(i, j));
              CHECK(second.transposed().transposed()(i, j) == second(i, j));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("A convolution is that of its definition", "[array_operators]") {
  const std::vector<double> filter{1, -2, 4, 8, -16};
  for (const Index n : {0, 1, 3, 9}) {
    for (const Index centre : {0, 2, 4}) {
      const Band band = convolution(n, filter, centre);
      for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < n; ++j) {
          const Index k = i + centre - j;
          CHECK(band(i, j) == (0 <= k && k < 5 ? filter[static_cast<std::size_t>(k)] : 0));
        }
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Bands along a dimension are right however the array is cut", "[array_operators]",
                        Scalars) {
  using T = TestType;
  const double tolerance = 200 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
  for_each_cut({5, 3, 4}, {0, 3, 1}, [&](const Space& space) {
    for (int dim = 0; dim < 3; ++dim) {
      CAPTURE(dim);
      const Index n = space.dims.size(dim);
      // A stencil wider than most blocks, and rows at the ends that differ from those between.
      const Band band = dim == 0   ? first_derivative(n, {Kind::centered, 2, true, 5})
                        : dim == 1 ? convolution(n, {1, 2, 3, 4, 5}, 1)
                                   : second_derivative(n, {Kind::forward, 0.5});
      check_elements<T>(*band_operator<T>(space, dim, band), along<T>(space, space, dim, band), tolerance);
    }
  });
}

TEST_CASE("A long array has rows between its ends on every rank, and a short one has none",
          "[array_operators]") {
  for (const GridPtr& grid : all_grids()) {
    for (const Index n : {64, 4, 1, 0}) {
      CAPTURE(describe(*grid), n);
      const Space space = array_space(grid, {n}, 0);
      const Band band = first_derivative(n, {Kind::centered, 1, true, 5});
      check_elements<double>(*band_operator<double>(space, 0, band), along<double>(space, space, 0, band),
                             1e-14);
    }
  }
}

TEST_CASE("Columns of arrays may be cut, too", "[array_operators]") {
  for (const GridPtr& grid : all_grids()) {
    for (const auto& [rows, columns] :
         {std::pair{Axis::grid_rows, Axis::grid_cols}, std::pair{Axis::grid_cols, Axis::grid_rows}}) {
      const Space space = array_space(grid, {7, 2}, 0, rows, columns);
      const Band band = second_derivative(7);
      check_elements<float>(*band_operator<float>(space, 0, band), along<float>(space, space, 0, band), 1e-5);
    }
  }
}

TEST_CASE("A stack of equal arrays is an array with a dimension more", "[array_operators]") {
  for_each_cut({4, 6}, {0, 4}, [&](const Space& space) {
    const Space stack = stack_spaces({space, space, space});
    REQUIRE(stack.dims.sizes() == std::vector<Index>{3, 4, 6});
    const auto value = [](const Dims& dims, Index k, Index row) {
      std::vector<Index> place = place_of(dims, row);
      if (place.size() == 2) place.insert(place.begin(), k);
      return static_cast<double>(100 * place[0] + 10 * place[1] + place[2]);
    };
    DistMatrix<double> X =
        filled(space.grid, stack.layout(1), [&](Index i, Index) { return value(stack.dims, 0, i); });
    const std::vector<Space> members{space, space, space};
    for (const Index k : {0, 1, 2})
      CHECK(mismatches(stack_rows(members, static_cast<std::size_t>(k), X),
                       [&](Index i, Index) { return value(space.dims, k, i); }) == 0);

    // Stacks of stacks, damping, and a stack of one.
    const Space two = stack_spaces({space, space});
    CHECK(stack_spaces({two, space}) == stack);
    CHECK(stack_spaces({two, space}).dims == stack.dims);
    CHECK(stack_spaces({two, two}).dims.sizes() == std::vector<Index>{2, 2, 4, 6});
    CHECK(stack_spaces({two, two}) == stack_spaces({stack, space}));
    CHECK(damped(gradient<double>(space, {1, 1}), 2.0)->range().dims == stack.dims);
    CHECK(vertical_stack<double>({band_operator<double>(space, 0, second_derivative(4))})->range() == space);
    CHECK(stack_spaces({space}).dims == space.dims);

    // No array holds what these hold.
    const Space other = array_space(space.grid, {4, 5}, 0, space.rows.axis);
    const Space vectors{space.grid, space.rows};
    CHECK(stack_spaces({space, other}).dims.count() == 0);
    CHECK(stack_spaces({space, vectors}).dims.count() == 0);
    CHECK(stack_spaces({stack, array_space(space.grid, {4, 6, 1}, 0, space.rows.axis)}).dims.count() == 0);
    const Space most = array_space(space.grid, {1, 2, 1, 4, 6}, 3, space.rows.axis);
    CHECK(stack_spaces({most, most}).dims.count() == 0);
  });
}

TEST_CASE("Stacks of arrays in different orders are not added", "[array_operators]") {
  for (const GridPtr& grid : all_grids()) {
    if (grid->shape().size() < 2) continue;
    const Space first = array_space(grid, {4, 8}, 0), second = array_space(grid, {4, 8}, 1);
    if (first.rows != second.rows) continue;
    const OperatorPtr<double> a = identity<double>(first), b = identity<double>(second, first);
    CHECK_THROWS_AS(sum(vertical_stack<double>({a, a}), vertical_stack<double>({b, b})), ShapeError);
  }
}

TEMPLATE_LIST_TEST_CASE("A Laplacian of large slices is the sum of its derivatives", "[array_operators]",
                        Scalars) {
  using T = TestType;
  // On one rank slices have several pieces, which begin and end within lines.
  const std::vector<Index> sizes{5, 67, 301};
  const std::vector<LaplacianTerm> terms{{0, 0.5, 2}, {1, -2, 0.5}, {2, 3, 1}, {1, 1, 1}};
  const double tolerance = 1000 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
  std::size_t turn = 0;
  for (const GridPtr& grid : all_grids()) {
    for (const int cut : {0, 1, 2}) {
      const Kind kind = std::array{Kind::centered, Kind::forward, Kind::backward}[turn % 3];
      const bool edge = turn++ % 2 == 0;
      const Space space = array_space(grid, sizes, cut);
      CAPTURE(describe(*grid), cut, static_cast<int>(kind), edge);
      const OperatorPtr<T> op = laplacian<T>(space, terms, kind, edge);
      const DistMatrix<T> X =
          filled(grid, space.layout(2), [](Index i, Index j) { return counter_random<T>(1, i, j); });
      for (const bool forward : {true, false}) {
        for (const T beta : {T(0), number<T>(-1, 3)}) {
          const T alpha = number<T>(2, -1), old = beta == T(0) ? quiet_nan<T>() : T(1);
          EmbeddedMatrix<T> Y(grid, space.layout(2), 3, [=](Index, Index) { return old; });
          DistMatrix<T> found = Y.matrix(), sum(grid, space.layout(2));
          forward ? op->apply(alpha, X, beta, found) : op->apply_adjoint(alpha, X, beta, found);
          sum.fill([=](Index, Index) { return beta; });
          for (const LaplacianTerm& term : terms) {
            const Index n = sizes[static_cast<std::size_t>(term.dim)];
            const OperatorPtr<T> one =
                band_operator<T>(space, term.dim, second_derivative(n, {kind, term.sampling, edge}));
            const T factor = alpha * T(static_cast<Real<T>>(term.weight));
            forward ? one->apply(factor, X, T(1), sum) : one->apply_adjoint(factor, X, T(1), sum);
          }
          if (!grid->is_member()) continue;
          const std::vector<T> expected = on_host<T>(sum);
          const Index begin = sum.local_row_range().begin, rows = sum.local().rows;
          const auto value = [&](Index i, Index j) {
            return expected[static_cast<std::size_t>(i - begin + j * rows)];
          };
          CHECK(mismatches(found, value, tolerance) == 0);
          CHECK(Y.surroundings_untouched());
        }
      }
    }
  }
}

TEST_CASE("A Laplacian fetches what it needs along several cut dimensions", "[array_operators]") {
  using T = double;
  for (const GridPtr& grid : compact_grids()) {
    const Partition rows = Partition::balanced(7, grid->rows()), cols = Partition::balanced(6, grid->cols());
    const Space space = array_space(grid, Dims({rows, cols}), Axis::all);
    // Halos of the last two terms are under way together.
    const auto term = [&](int dim, double factor) {
      const Band band = second_derivative(space.dims.size(dim));
      return along<T>(space, space, dim, [=](Index i, Index j) { return factor * band(i, j); });
    };
    const ElementOf<T> first = term(0, 3), second = term(1, 3);
    check_elements<T>(
        *laplacian<T>(space, {{0, 2}, {1, 3}, {0, 1}}),
        [&](Index i, Index j) { return first(i, j) + second(i, j); }, 0);
  }
}

TEMPLATE_LIST_TEST_CASE("Laplacians and gradients are sums and stacks of derivatives", "[array_operators]",
                        Scalars) {
  using T = TestType;
  const double tolerance = 200 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
  std::size_t turn = 0;
  for_each_cut({4, 1, 6}, {4}, [&](const Space& space) {
    const Kind kind = std::array{Kind::centered, Kind::forward, Kind::backward}[turn % 3];
    const bool edge = turn++ % 2 == 0;
    CAPTURE(static_cast<int>(kind), edge);
    const auto term = [&](int dim, double factor) {
      const Band band = second_derivative(space.dims.size(dim), {kind, 1, edge});
      return along<T>(space, space, dim, [=](Index i, Index j) { return factor * band(i, j); });
    };
    const ElementOf<T> first = term(0, 0.5 / 4), second = term(2, 3);
    check_elements<T>(
        *laplacian<T>(space, {{0, 0.5, 2}, {2, 3, 1}}, kind, edge),
        [&](Index i, Index j) { return first(i, j) + second(i, j); }, tolerance);

    const std::vector<double> sampling{1, 2, 0.5};
    const OperatorPtr<T> grad = gradient<T>(space, sampling, kind, edge);
    const std::vector<Space> members{space, space, space};
    CHECK(grad->range() == stack_spaces(members));
    const Layout columns = space.layout(space.dimension());
    const DistMatrix<T> eye = filled(space.grid, columns, [](Index i, Index j) { return T(i == j ? 1 : 0); });
    DistMatrix<T> y(space.grid, grad->range().layout(space.dimension()));
    grad->apply(T(1), eye, T(0), y);
    for (std::size_t dim = 0; dim < 3; ++dim) {
      const int d = static_cast<int>(dim);
      const Band band = first_derivative(space.dims.size(d), {kind, sampling[dim], edge});
      CHECK(mismatches(stack_rows(members, dim, static_cast<const DistMatrix<T>&>(y)),
                       along<T>(space, space, d, band), tolerance) == 0);
    }
    CHECK(dot_test(*grad).passed);
  });
}

namespace {

/// Element (i, j) of a halo: whether cell i of the blocks with halos shows the cell j of the array.
template <Scalar T>
ElementOf<T> halo_element(const Space& space, const HaloWidths& widths) {
  const Space larger = halo_space(space, widths);
  return [=](Index i, Index j) {
    const int block = larger.rows.partition.owner_of(i);
    const Box with_halo = larger.dims.block(block), own = space.dims.block(block);
    std::vector<Index> place = place_of(larger.dims, i);
    for (std::size_t d = 0; d < place.size(); ++d) {
      // Blocks begin `before` cells before their own first cell, or at the first cell of the array.
      const Index before = widths.beyond_array ? widths.before[d] : std::min(widths.before[d], own[d].begin);
      place[d] += own[d].begin - before - with_halo[d].begin;
    }
    return T(place == place_of(space.dims, j) ? 1 : 0);
  };
}

}  // namespace

TEMPLATE_LIST_TEST_CASE(
    "Halos copy cells, also of ranks behind the neighbour, and their adjoint sums the copies",
    "[array_operators]", Scalars) {
  using T = TestType;
  for_each_cut({6, 4}, {0, 3}, [&](const Space& space) {
    for (const bool beyond : {true, false}) {
      for (const HaloWidths& widths : {HaloWidths{{1, 0}, {2, 1}, beyond}, HaloWidths{{4, 3}, {5, 0}, beyond},
                                       HaloWidths{{0, 0}, {0, 0}, beyond}}) {
        CAPTURE(beyond, widths.before, widths.behind);
        check_elements<T>(*halo<T>(space, widths), halo_element<T>(space, widths), 0);
        const OperatorPtr<T> back = product(crop<T>(space, widths), halo<T>(space, widths));
        check_elements<T>(
            *back, [](Index i, Index j) { return T(i == j ? 1 : 0); }, 0);
      }
    }
  });
}

TEST_CASE("Arrays of one and of three dimensions have halos, too", "[array_operators]") {
  for (const bool beyond : {true, false}) {
    for (const auto& [sizes, widths] : {std::pair{std::vector<Index>{9}, HaloWidths{{4}, {5}, beyond}},
                                        {{3, 2, 4}, HaloWidths{{1, 2, 1}, {2, 0, 1}, beyond}}}) {
      for_each_cut(sizes, {0, 3}, [&, &widths = widths](const Space& space) {
        CAPTURE(beyond);
        check_elements<double>(*halo<double>(space, widths), halo_element<double>(space, widths), 0);
      });
    }
  }
}

TEMPLATE_LIST_TEST_CASE("A restriction keeps samples where they are, and its adjoint puts them among zeros",
                        "[array_operators]", Scalars) {
  using T = TestType;
  std::size_t count = 0;
  for_each_cut({5, 3, 7}, {3}, [&](const Space& space) {
    for (int dim = 0; dim < 3; ++dim) {
      const std::vector<std::vector<Index>> choices{{}, {1}, {0, 2}, {0, 1, 2}};
      std::vector<Index> indices = choices[count++ % choices.size()];
      if (dim == 2 && indices.size() == 3) indices = {0, 3, 6};
      if (dim == 0 && indices.size() == 3) indices = {0, 1, 2, 4};
      const Space kept = restricted_space(space, dim, indices);
      CAPTURE(dim, indices);
      check_elements<T>(
          *restriction<T>(space, dim, indices),
          [&](Index i, Index j) {
            std::vector<Index> place = place_of(kept.dims, i);
            place[static_cast<std::size_t>(dim)] =
                indices[static_cast<std::size_t>(place[static_cast<std::size_t>(dim)])];
            return T(place == place_of(space.dims, j) ? 1 : 0);
          },
          0);
    }
    CHECK_THROWS_AS(restriction<T>(space, 3, {0}), ShapeError);
    CHECK_THROWS_AS(restriction<T>(space, 0, {1, 1}), UsageError);
    CHECK_THROWS_AS(restriction<T>(space, 0, {5}), UsageError);
  });
}

TEST_CASE("Arrays may be cut along two dimensions, with corners in their halos", "[array_operators]") {
  for (const GridPtr& grid : all_grids()) {
    const Dims dims({Partition::balanced(5, grid->rows()), Partition::balanced(7, grid->cols())});
    const Space space = array_space(grid, dims, Axis::all);
    const HaloWidths widths{{1, 2}, {2, 1}, true};
    check_elements<double>(*halo<double>(space, widths), halo_element<double>(space, widths), 0);
    for (int dim = 0; dim < 2; ++dim) {
      const Band band = second_derivative(dims.size(dim));
      check_elements<double>(*band_operator<double>(space, dim, band), along<double>(space, space, dim, band),
                             1e-14);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("An identity recuts an array along any dimension in one exchange",
                        "[array_operators]", Scalars) {
  using T = TestType;
  const std::vector<Index> sizes{3, 4, 2};
  for (const GridPtr& grid : all_grids()) {
    for (const auto& [from_axis, to_axis] :
         {std::pair{Axis::all, Axis::all}, std::pair{Axis::grid_rows, Axis::all_transposed},
          std::pair{Axis::uncut, Axis::grid_cols}, std::pair{Axis::all, Axis::uncut}}) {
      for (int from = 0; from < 3; ++from) {
        for (int to = 0; to < 3; ++to) {
          const Space domain = array_space(grid, dims_along(*grid, sizes, from, from_axis, 3), from_axis);
          const Space range = array_space(grid, dims_along(*grid, sizes, to, to_axis, 0), to_axis);
          INFO(describe(*grid) << ": " << domain.describe() << " to " << range.describe());
          const OperatorPtr<T> op = identity<T>(range, domain);
          check_elements<T>(
              *op,
              [&](Index i, Index j) {
                return T(place_of(range.dims, i) == place_of(domain.dims, j) ? 1 : 0);
              },
              0);
          if (!grid->is_member()) continue;
          const DistMatrix<T> x =
              filled(grid, domain.layout(2), [](Index i, Index) { return T(static_cast<Real<T>>(i)); });
          DistMatrix<T> y(grid, range.layout(2));
          const TrafficSince traffic(grid->comm());
          op->apply(T(1), x, T(0), y);
          CHECK(traffic.calls() == (range == domain ? 0 : 1));
        }
      }
    }
  }
}

TEST_CASE("The product of two bands is that of their matrices", "[array_operators]") {
  for (const Index n : {1, 2, 5, 12, 30}) {
    const Band filter = convolution(n, {1, 2, -3, 5}, 1);
    for (const Band& other :
         {first_derivative(n, {Kind::centered, 1, true, 5}), box_smoothing(n, std::min<Index>(n, 4)),
          second_derivative(n, {Kind::forward})}) {
      const Band both = product(filter, other);
      for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < n; ++j) {
          double expected = 0;
          for (Index k = 0; k < n; ++k) expected += filter(i, k) * other(k, j);
          CAPTURE(n, i, j);
          CHECK(std::abs(both(i, j) - expected) <= 1e-14);
        }
      }
    }
  }
  CHECK_THROWS_AS(product(second_derivative(3), second_derivative(4)), ShapeError);
}

TEST_CASE("Box smoothing averages forwards and backwards what goes on oddly", "[array_operators]") {
  for (const auto& sizes : {std::pair<Index, Index>{1, 1}, {5, 1}, {5, 5}, {9, 4}, {30, 7}}) {
    const Index n = sizes.first, length = sizes.second;
    const Band smoothing = box_smoothing(n, length);
    for (Index j = 0; j < n; ++j) {
      Samples extended;
      const auto x = [j](Index i) { return i == j ? 1.0 : 0.0; };
      for (Index k = 1 - length; k < n + length - 1; ++k)
        extended.push_back(k < 0 ? 2 * x(0) - x(-k) : k < n ? x(k) : 2 * x(n - 1) - x(2 * (n - 1) - k));
      const auto mean = [length](const Samples& from) {
        Samples means;
        for (std::size_t i = 0; i + static_cast<std::size_t>(length) <= from.size(); ++i) {
          double sum = 0;
          for (Index k = 0; k < length; ++k) sum += from[i + static_cast<std::size_t>(k)];
          means.push_back(sum / static_cast<double>(length));
        }
        return means;
      };
      const Samples expected = mean(mean(extended));
      for (Index i = 0; i < n; ++i) {
        CAPTURE(n, length, i, j);
        CHECK(std::abs(smoothing(i, j) - expected[static_cast<std::size_t>(i)]) <= 1e-14);
      }
    }
  }
  CHECK_THROWS_AS(box_smoothing(5, 0), UsageError);
  CHECK_THROWS_AS(box_smoothing(5, 6), UsageError);
}

TEST_CASE("An array is recut where its columns are cut, too", "[array_operators]") {
  for (const GridPtr& grid : all_grids()) {
    for (const auto& [rows, columns] :
         {std::pair{Axis::grid_rows, Axis::grid_cols}, std::pair{Axis::grid_cols, Axis::grid_rows}}) {
      const Space domain = array_space(grid, {4, 6}, 0, rows, columns),
                  range = array_space(grid, {4, 6}, 1, rows, columns);
      INFO(describe(*grid) << ": " << domain.describe());
      check_elements<double>(
          *identity<double>(range, domain),
          [&](Index i, Index j) { return place_of(range.dims, i) == place_of(domain.dims, j) ? 1.0 : 0.0; },
          0);
    }
  }
}

TEST_CASE("A derivative along the cut fetches only the rows that it needs, once", "[array_operators]") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const Space space = array_space(grid, {64, 3}, 0);
    const OperatorPtr<double> op =
        band_operator<double>(space, 0, first_derivative(64, {Kind::centered, 1, false, 5}));
    const DistMatrix<double> x =
        filled(grid, space.layout(2), [](Index i, Index) { return static_cast<double>(i); });
    DistMatrix<double> y(grid, space.layout(2));
    op->apply(1, x, 0, y);
    const TrafficSince traffic(grid->comm());
    op->apply(1, x, 0, y);
    const Range own = space.local_box()[0];
    const Index from_neighbours = (own.begin > 0 ? 2 : 0) + (own.end() < 64 ? 2 : 0);
    CHECK(traffic.received() == from_neighbours * 3 * 2 * 8);
    CHECK(traffic.calls() == (grid->comm().size() > 1 ? 1 : 0));
  }
}

TEST_CASE("Spaces of arrays are equal if their elements lie alike", "[array_operators]") {
  const GridPtr grid = all_grids().front();
  const int parts = grid->parts(Axis::all);
  const Space slow = array_space(grid, {4, 6}, 0);
  CHECK(slow == array_space(grid, {4, 3, 2}, 0));
  CHECK(slow == Space{grid, slow.rows, Axis::uncut});
  const Space fast = array_space(grid, {6, 4}, 1), other = array_space(grid, {3, 2, 4}, 2);
  CHECK(fast == other);
  CHECK((fast == Space{grid, fast.rows, Axis::uncut}) == (parts == 1));
}

TEST_CASE("Dimensions of arrays stay with operators made of others", "[array_operators]") {
  const Space space = array_space(all_grids().front(), {12, 7, 5}, 0);
  const std::vector<Index> sizes = space.dims.sizes(), kept{12, 3, 5};
  const OperatorPtr<double> A = band_operator<double>(space, 0, first_derivative(12)),
                            R = restriction<double>(space, 1, {0, 2, 5});
  for (const OperatorPtr<double>& op :
       {scale(-1.0, A), sum(A, A), product(A, A), adjoint(A), product(A, adjoint(A))}) {
    CHECK(op->domain().dims.sizes() == sizes);
    CHECK(op->range().dims.sizes() == sizes);
  }
  CHECK(R->range().dims.sizes() == kept);
  CHECK(adjoint(R)->domain().dims.sizes() == kept);
  CHECK(product(R, A)->range().dims.sizes() == kept);
  CHECK(adjoint(product(R, A))->range().dims.sizes() == sizes);
  CHECK_THROWS_AS(product(A, R), ShapeError);
  CHECK_THROWS_AS(sum(A, R), ShapeError);
}

TEST_CASE("Operators work on the ranks of a group, while another group does something else",
          "[array_operators]") {
  const int group = world().rank() % 2;
  const auto comm = world().split(group, world().rank());
  const auto grid = std::make_shared<const ProcessGrid>(*comm, GridShape{comm->size(), 1}, make_backend());
  for (int repetition = 0; repetition < 1 + 2 * group; ++repetition) {
    const Space space = array_space(grid, {12}, 0);
    const OperatorPtr<double> D = band_operator<double>(space, 0, first_derivative(12, {Kind::forward})),
                              op = sum(product(adjoint(D), D), identity<double>(space));
    const DistMatrix<double> ones = filled(grid, space.layout(1), [](Index, Index) { return 1.0; });
    DistMatrix<double> y(grid, space.layout(1));
    op->apply(1, ones, 0, y);
    CHECK(mismatches(y, [](Index, Index) { return 1.0; }) == 0);
    CHECK(column_dots(ones, y)[0] == 12);
  }
}

TEST_CASE("Wrong arguments of arrays are refused on all ranks", "[array_operators]") {
  for (const GridPtr& grid : all_grids()) {
    const Space space = array_space(grid, {4, 6}, 0), flat{grid, space.rows, Axis::uncut};
    CHECK_THROWS_AS(array_space(grid, {4, 6}, 2), ShapeError);
    CHECK_THROWS_AS(array_space(grid, {4, -1}, 0), ShapeError);
    CHECK_THROWS_AS(array_space(grid, {1, 2, 3, 4, 5, 6}, 0), ShapeError);
    CHECK_THROWS_AS(array_space(grid, Dims({Partition::balanced(4, grid->parts(Axis::all) + 1)}), Axis::all),
                    ShapeError);
    CHECK_THROWS_AS(band_operator<double>(flat, 0, second_derivative(24)), ShapeError);
    CHECK_THROWS_AS(band_operator<double>(space, 2, second_derivative(6)), ShapeError);
    CHECK_THROWS_AS(band_operator<double>(space, 0, second_derivative(6)), ShapeError);
    CHECK_THROWS_AS(laplacian<double>(space, {}), UsageError);
    CHECK_THROWS_AS(laplacian<double>(space, {{2, 1, 1}}), ShapeError);
    CHECK_THROWS_AS(gradient<double>(space, {1}), ShapeError);
    CHECK_THROWS_AS(halo<double>(space, {{1}, {1, 1}}), ShapeError);
    CHECK_THROWS_AS(halo<double>(space, {{-1, 0}, {0, 0}}), UsageError);
    const Space turned = array_space(grid, {6, 4}, 1);
    if (grid->shape().size() > 1) CHECK_THROWS_AS(identity<double>(turned, space), ShapeError);
  }
  CHECK_THROWS_AS(first_derivative(5, {Kind::centered, 0}), UsageError);
  CHECK_THROWS_AS(first_derivative(5, {Kind::centered, 1, false, 4}), UsageError);
  CHECK_THROWS_AS(convolution(5, {1, 2}, 2), UsageError);
}
