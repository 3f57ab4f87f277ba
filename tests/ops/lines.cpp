// SPDX-License-Identifier: BSD-3-Clause
// Compares operators along one dimension that takes samples, values between them, or sums of all of them,
// with formulas for their elements.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "gridlops/base/error.hpp"
#include "gridlops/local/backend.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "local/threads.hpp"
#include "support/arrays.hpp"
#include "support/catch.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

using Positions = std::vector<double>;

/// The weight of sample j at position p: 1 there, falling to 0 at the samples beside it.
double hat(double position, Index j) {
  return std::max(0.0, 1 - std::abs(position - static_cast<double>(j)));
}

double sinc(double position, Index j) {
  const double x = std::numbers::pi * (position - static_cast<double>(j));
  return std::abs(x) < 1e-9 ? 1 : std::sin(x) / x;
}

/// Elements of an m × n matrix.
template <Scalar T>
T entry(Index i, Index j) {
  return small_integer<T>(4, i, j);
}
template <Scalar T>
std::vector<T> entries(Index m, Index n) {
  std::vector<T> matrix;
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < m; ++i) matrix.push_back(entry<T>(i, j));
  return matrix;
}

template <Scalar T>
double epsilon() {
  return static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("A restriction takes any samples of long lines, and no NaN of the others",
                        "[array_operators]", Scalars) {
  using T = TestType;
  std::vector<Index> indices;
  for (Index i = 0; i < 40; ++i)
    if (counter_random<double>(3, i, 0) > 0) indices.push_back(i);
  const auto is_kept = [&](Index i) { return std::binary_search(indices.begin(), indices.end(), i); };
  for (const std::vector<Index>& sizes : {std::vector<Index>{40}, {40, 2}, {2, 40}}) {
    const int dim = sizes[0] == 40 ? 0 : 1;
    for_each_cut(sizes, {0, 3, 1}, [&](const Space& space) {
      const OperatorPtr<T> op = restriction<T>(space, dim, indices);
      check_elements<T>(
          *op,
          along<T>(op->range(), space, dim,
                   [&](Index i, Index j) { return indices[static_cast<std::size_t>(i)] == j ? 1.0 : 0.0; }),
          0);
      const auto number_along = [dim](const Dims& dims, Index row) {
        return place_of(dims, row)[static_cast<std::size_t>(dim)];
      };
      const DistMatrix<T> x = filled(space.grid, space.layout(1), [&](Index i, Index) {
        return is_kept(number_along(space.dims, i)) ? number<T>(2, 1) : quiet_nan<T>();
      });
      DistMatrix<T> y(space.grid, op->range().layout(1)), back(space.grid, space.layout(1));
      op->apply(T(1), x, T(0), y);
      CHECK(mismatches(y, [](Index, Index) { return number<T>(2, 1); }) == 0);
      op->apply_adjoint(T(1), y, T(0), back);
      CHECK(mismatches(back, [&](Index i, Index) {
              return is_kept(number_along(space.dims, i)) ? number<T>(2, 1) : T(0);
            }) == 0);
    });
  }
}

TEMPLATE_LIST_TEST_CASE("Linear interpolation weighs the two samples beside a position, sinc all samples",
                        "[array_operators]", Scalars) {
  using T = TestType;
  const std::vector<Positions> choices{{}, {1.25}, {0, 0.5, 1, 2}, {0.125, 0.25, 0.5, 1.75, 2}, {2}};
  std::size_t count = 0;
  for_each_cut({4, 3, 5}, {3, 0, 1}, [&](const Space& space) {
    for (int dim = 0; dim < 3; ++dim) {
      Positions positions = choices[count++ % choices.size()];
      if (dim == 2 && !positions.empty()) positions.push_back(3.5), positions.push_back(4);
      CAPTURE(dim, positions);
      const auto at_position = [&](Index i) { return positions[static_cast<std::size_t>(i)]; };
      const Space values = interpolated_space(space, dim, positions);
      const OperatorPtr<T> linear = interpolation<T>(space, dim, positions),
                           all = interpolation<T>(space, dim, positions, Interpolation::sinc);
      CHECK(linear->range() == values);
      CHECK(all->range() == values);
      check_elements<T>(
          *linear, along<T>(values, space, dim, [&](Index i, Index j) { return hat(at_position(i), j); }), 0);
      // Both compute π(p − j) and its sine, with a few roundings each.
      check_elements<T>(
          *all, along<T>(values, space, dim, [&](Index i, Index j) { return sinc(at_position(i), j); }),
          50 * epsilon<T>());
    }
    CHECK_THROWS_AS(interpolation<T>(space, 3, {0}), ShapeError);
    CHECK_THROWS_AS(interpolation<T>(space, 1, {1, 1}), UsageError);
    CHECK_THROWS_AS(interpolation<T>(space, 1, {2.125}), UsageError);
    CHECK_THROWS_AS(interpolation<T>(space, 1, {-0.125}), UsageError);
    CHECK_THROWS_AS(interpolation<T>(space, 1, {std::nan("")}), UsageError);
  });
}

TEST_CASE("Long lines have values between their samples, also where ranks have no samples",
          "[array_operators]") {
  Positions positions;
  for (Index i = 0; i < 90; ++i)
    if (i % 7 != 3) positions.push_back(static_cast<double>(i) * 0.4375);
  for_each_cut({40}, {0, 1, 2, 3, 4}, [&](const Space& space) {
    const OperatorPtr<double> op = interpolation<double>(space, 0, positions);
    check_elements<double>(
        *op,
        along<double>(op->range(), space, 0,
                      [&](Index i, Index j) { return hat(positions[static_cast<std::size_t>(i)], j); }),
        0);
  });
}

TEST_CASE("A restriction sends nothing, and linear interpolation no more than one sample to each rank",
          "[array_operators]") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const Space space = array_space(grid, {64, 3}, 0);
    Positions positions;
    for (Index i = 0; i < 63; ++i) positions.push_back(static_cast<double>(i) + 0.5);
    const OperatorPtr<double> taken = restriction<double>(space, 0, {1, 2, 30, 33, 63}),
                              between = interpolation<double>(space, 0, positions);
    const DistMatrix<double> x =
        filled(grid, space.layout(2), [](Index i, Index) { return static_cast<double>(i); });
    DistMatrix<double> y(grid, taken->range().layout(2)), z(grid, between->range().layout(2));
    taken->apply(1, x, 0, y);
    between->apply(1, x, 0, z);
    const TrafficSince traffic(grid->comm());
    taken->apply(1, x, 0, y);
    CHECK(traffic.calls() == 0);
    between->apply(1, x, 0, z);
    const bool is_last = space.local_box()[0].end() == 64;
    CHECK(traffic.received() == (is_last ? 0 : 3 * 2 * 8));
    CHECK(traffic.calls() == (grid->comm().size() > 1 ? 1 : 0));
  }
}

TEMPLATE_LIST_TEST_CASE("A dense matrix multiplies along any dimension, cut or not", "[array_operators]",
                        Scalars) {
  using T = TestType;
  const std::vector<Index> row_counts{3, 1, 6, 0};
  std::size_t count = 0;
  for (const std::vector<Index>& sizes : {std::vector<Index>{4, 3, 5}, {6}, {2, 1}}) {
    for_each_cut(sizes, {3, 0}, [&](const Space& space) {
      for (int dim = 0; dim < space.dims.count(); ++dim) {
        const Index n = space.dims.size(dim), m = row_counts[count++ % row_counts.size()];
        CAPTURE(dim, m, n);
        const std::vector<T> matrix = entries<T>(m, n);
        const OperatorPtr<T> op = matrix_along<T>(space, dim, {matrix.data(), m, n});
        CHECK(op->range().dims.size(dim) == m);
        // Small integers are summed exactly.
        check_elements<T>(*op, along<T>(op->range(), space, dim, entry<T>), 0);
        if (space.dims.cut(dim).parts() == 1) {
          for (int d = 0; d < space.dims.count(); ++d)
            CHECK((d == dim || op->range().dims.cut(d) == space.dims.cut(d)));
        }
      }
    });
  }
}

TEST_CASE("A dense matrix may have gaps between its columns, and multiplies where columns are cut",
          "[array_operators]") {
  std::vector<double> matrix(20, quiet_nan<double>());
  for (Index j = 0; j < 4; ++j)
    for (Index i = 0; i < 3; ++i) matrix[static_cast<std::size_t>(i + 5 * j)] = entry<double>(i, j);
  for (const GridPtr& grid : all_grids()) {
    for (const auto& [rows, columns] :
         {std::pair{Axis::grid_rows, Axis::grid_cols}, std::pair{Axis::grid_cols, Axis::grid_rows}}) {
      for (const std::vector<Index>& sizes : {std::vector<Index>{4, 3}, {4}}) {
        const Space space = array_space(grid, sizes, 0, rows, columns);
        const OperatorPtr<double> op = matrix_along<double>(space, 0, {matrix.data(), 3, 4, 5});
        check_elements<double>(*op, along<double>(op->range(), space, 0, entry<double>), 0);
      }
      const Space space = array_space(grid, {4, 3}, 1, rows, columns);
      if (!grid->is_member()) continue;
      const OperatorPtr<double> op = matrix_along<double>(space, 0, {matrix.data(), 3, 4, 5});
      const DistMatrix<double> x =
          filled(grid, space.layout(2), [](Index i, Index) { return static_cast<double>(i); });
      DistMatrix<double> y(grid, op->range().layout(2));
      const TrafficSince traffic(grid->comm());
      op->apply(1, x, 0, y);
      CHECK(traffic.calls() == 0);
    }
  }
  const Space space = array_space(all_grids().front(), {4, 3}, 0);
  CHECK_THROWS_AS(matrix_along<double>(space, 1, {matrix.data(), 3, 4, 5}), ShapeError);
  CHECK_THROWS_AS(matrix_along<double>(space, 2, {matrix.data(), 3, 4, 5}), ShapeError);
}

namespace {

/// hⱼ[k] for filters at these positions, by the share that each of them has in hⱼ.
double filter_at(const std::vector<Positions>& filters, const Positions& positions, Index j, Index k) {
  const auto x = static_cast<double>(j);
  double sum = 0;
  for (std::size_t f = 0; f < filters.size(); ++f) {
    double share = 1;
    if (f > 0 && x < positions[f]) share = (x - positions[f - 1]) / (positions[f] - positions[f - 1]);
    if (f + 1 < filters.size() && x > positions[f])
      share = (positions[f + 1] - x) / (positions[f + 1] - positions[f]);
    sum += std::max(0.0, share) * filters[f][static_cast<std::size_t>(k)];
  }
  return sum;
}

}  // namespace

TEST_CASE("A non-stationary convolution spreads each sample by the filter at its place",
          "[array_operators]") {
  const std::vector<Positions> filters{{1, 2, 4}, {-8, 0, 8}, {16, -32, 64}};
  const std::vector<Positions> places{{2, 4, 8}, {-2, 0.5, 30}, {1, 1.25, 2.75}};
  for (const Index n : {0, 1, 4, 12}) {
    for (const Positions& positions : places) {
      for (const Index centre : {0, 1, 2}) {
        const Band band = nonstationary_convolution(n, filters, positions, centre);
        for (Index i = 0; i < n; ++i) {
          for (Index j = 0; j < n; ++j) {
            const Index k = i + centre - j;
            CAPTURE(n, positions, centre, i, j);
            const double expected = 0 <= k && k < 3 ? filter_at(filters, positions, j, k) : 0;
            CHECK(std::abs(band(i, j) - expected) <= 1e-14 * 64);
          }
        }
      }
    }
  }
  const Band one = nonstationary_convolution(9, {{1, 2, 4}}, {3}, 1), same = convolution(9, {1, 2, 4}, 1);
  for (Index i = 0; i < 9; ++i)
    for (Index j = 0; j < 9; ++j) CHECK(one(i, j) == same(i, j));
  CHECK_THROWS_AS(nonstationary_convolution(5, {}, {}, 0), UsageError);
  CHECK_THROWS_AS(nonstationary_convolution(5, filters, {1, 2}, 0), UsageError);
  CHECK_THROWS_AS(nonstationary_convolution(5, filters, {1, 3, 2}, 0), UsageError);
  CHECK_THROWS_AS(nonstationary_convolution(5, filters, {1, 2, std::nan("")}, 0), UsageError);
  CHECK_THROWS_AS(nonstationary_convolution(5, {{1, 2}, {1}}, {1, 2}, 0), UsageError);
  CHECK_THROWS_AS(nonstationary_convolution(5, filters, {1, 2, 3}, 3), UsageError);
}

TEMPLATE_LIST_TEST_CASE("A non-stationary convolution is right however the array is cut", "[array_operators]",
                        Scalars) {
  using T = TestType;
  const std::vector<Positions> filters{{1, 2, 4, 8, 16}, {3, -5, 7, 0, 1}};
  const Positions positions{1, 3};
  for_each_cut({5, 3, 4}, {0, 3, 1}, [&](const Space& space) {
    for (int dim = 0; dim < 3; ++dim) {
      CAPTURE(dim);
      const Band band = nonstationary_convolution(space.dims.size(dim), filters, positions, 2);
      const auto element = [&](Index i, Index j) {
        const Index k = i + 2 - j;
        return 0 <= k && k < 5 ? filter_at(filters, positions, j, k) : 0.0;
      };
      check_elements<T>(*band_operator<T>(space, dim, band), along<T>(space, space, dim, element),
                        200 * epsilon<T>());
    }
  });
}

namespace {

/// A filter of this length, each other weight of which is 0.
Positions filter_with_gaps(Index length) {
  Positions filter(static_cast<std::size_t>(length), 0.0);
  for (std::size_t k = 0; k < filter.size(); k += 2) filter[k] = static_cast<double>(1 + k % 5);
  return filter;
}

/// A filter that is the same at every place, and one that changes along the line.
std::array<Band, 2> filters_of(Index n, Index length) {
  const Positions filter = filter_with_gaps(length);
  Positions other = filter;
  for (double& weight : other) weight *= -2;
  return {convolution(n, filter, length / 2),
          nonstationary_convolution(n, {filter, other}, {0, static_cast<double>(std::max<Index>(n - 1, 1))},
                                    length / 2)};
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Long filters are right along lines, whole or cut", "[array_operators]", Scalars) {
  using T = TestType;
  for (const Index n : {1, 5, 20}) {
    for_each_cut({9, n}, {0, 1}, [&](const Space& space) {
      for (const Band& band : filters_of(n, 11))
        check_elements<T>(*band_operator<T>(space, 1, band), along<T>(space, space, 1, band),
                          500 * epsilon<T>());
    });
  }
}

TEMPLATE_LIST_TEST_CASE("Lines may be longer than what is copied of them", "[array_operators]", Scalars) {
  using T = TestType;
  const auto sample = [](Index row, Index column) { return small_integer<T>(5, row, column); };
  const T alpha = number<T>(2, 1);
  for (const GridPtr& grid : compact_grids()) {
    for (const auto [lines, n, length] : {std::array<Index, 3>{1, 1025, 41},
                                          {9, 300, 129},
                                          {70, 300, 41},
                                          {1, 2200, 1025},
                                          {2, 1300, 1026}}) {
      CAPTURE(describe(*grid), lines, n, length);
      const Space space = array_space(grid, {lines, n}, 0);
      const DistMatrix<T> X = filled(grid, space.layout(2), sample);
      for (const Band& band : filters_of(n, length)) {
        DistMatrix<T> Y = filled(grid, space.layout(2), [](Index, Index) { return quiet_nan<T>(); });
        band_operator<T>(space, 1, band)->apply(alpha, X, T(0), Y);
        const auto expected = [&, n = n, length = length](Index row, Index column) {
          const Index i = row % n;
          T sum(0);
          for (Index j = std::max<Index>(0, i - length); j < std::min(n, i + length); ++j)
            sum += static_cast<Real<T>>(band(i, j)) * sample(row - i + j, column);
          return alpha * sum;
        };
        CHECK(mismatches(Y, expected, 1e6 * epsilon<T>()) == 0);
      }
    }
  }
}

TEST_CASE("Samples with a weight of 0 do not count along lines, even if they are NaN", "[array_operators]") {
  const GridPtr grid = all_grids().front();
  const Space space = array_space(grid, {9, 300}, 0);
  const DistMatrix<double> X = filled(
      grid, space.layout(1), [](Index row, Index) { return row % 2 == 1 ? quiet_nan<double>() : 1.0; });
  for (const Band& band : filters_of(300, 41)) {  // row i has weights at columns i, i ± 2, …
    DistMatrix<double> Y(grid, space.layout(1));
    band_operator<double>(space, 1, band)->apply(1, X, 0, Y);
    const std::vector<double> y = on_host<double>(Y);
    for (std::size_t i = 0; i < y.size(); ++i)
      CHECK(std::isnan(y[i]) == ((Y.local_row_range().begin + static_cast<Index>(i)) % 2 == 1));
  }
}

TEST_CASE("No bit of a product along lines depends on the number of threads", "[array_operators]") {
  using T = std::complex<double>;
  const int usual = threads_per_rank();
  const double worth = std::exchange(operations_worth_a_thread, 1e-3);
  const GridPtr grid = all_grids().front();
  const auto check = [&](const OperatorPtr<T>& op) {
    const DistMatrix<T> X = filled(grid, op->domain().layout(1), random_elements<T>(3));
    std::vector<T> bits;
    for (const int threads : {1, 2, 3}) {
      CAPTURE(op->rows(), threads);
      choose_threads(threads);
      DistMatrix<T> Y(grid, op->range().layout(1));
      op->apply(T(1), X, T(0), Y);
      const std::vector<T> found = on_host<T>(Y);
      if (threads == 1) bits = found;
      CHECK(found == bits);
    }
  };
  const auto line = [&](Index n) { return array_space(grid, {n}, 0, Axis::uncut); };
  check(band_operator<T>(line(1281), 0, box_smoothing(1281, 129)));
  check(band_operator<T>(line(2303), 0, box_smoothing(2303, 128)));
  for (const Band& band : filters_of(2305, 41)) check(band_operator<T>(line(2305), 0, band));
  const Space lines = array_space(grid, {9, 700}, 0, Axis::uncut);
  for (const Band& band : filters_of(700, 41)) check(band_operator<T>(lines, 1, band));
  check(interpolation<T>(array_space(grid, {40, 1025}, 0, Axis::uncut), 0, {20.3}));
  choose_threads(usual);
  operations_worth_a_thread = worth;
}
