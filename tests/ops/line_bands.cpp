// SPDX-License-Identifier: BSD-3-Clause
// Compares bands that differ from line to line with formulas for their elements.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "local/threads.hpp"
#include "support/arrays.hpp"
#include "support/catch.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// How the rows of a line's band are related.
enum class Rows { toeplitz, ends, own, mixed };
constexpr Rows all_rows[] = {Rows::toeplitz, Rows::ends, Rows::own, Rows::mixed};

/// A band of line `line` with 3 diagonals below the main one and 2 above it.
Band band_of(Rows rows, Index n, Index line) {
  const auto weight = [=](Index i, Index k) {
    return static_cast<double>((3 * line + 5 * i + 2 * k) % 7 - 3);
  };
  if (rows == Rows::mixed) rows = all_rows[static_cast<std::size_t>(line % 3)];
  if (rows == Rows::own) return {n, 3, 2, n, 0, [=](Index i, Index j) { return weight(i, j - i + 3); }};
  const Index ends = rows == Rows::ends ? 1 : 0;
  return {n,
          3,
          2,
          ends,
          ends,
          [=](Index i, Index j) {
            return weight(ends > 0 && (i == 0 || i == n - 1) ? i + 1 : 0, j - i + 3); }};
}

LineBands bands_of(Rows rows, Index n) {
  return {4, 2, [=](Index line) { return band_of(rows, n, line); }};
}

/// The number of a line along a dimension, by a place in it.
Index line_of(const Dims& dims, int dim, const std::vector<Index>& place) {
  Index line = 0;
  for (int d = 0; d < dims.count(); ++d)
    if (d != dim) line = line * dims.size(d) + place[static_cast<std::size_t>(d)];
  return line;
}

template <Scalar T>
ElementOf<T> along_lines(const Space& space, int dim, Rows rows) {
  return [=](Index i, Index j) {
    const std::vector<Index> row = place_of(space.dims, i), col = place_of(space.dims, j);
    const Index line = line_of(space.dims, dim, row), n = space.dims.size(dim);
    const auto d = static_cast<std::size_t>(dim);
    if (line != line_of(space.dims, dim, col) || col[d] < row[d] - 3 || col[d] > row[d] + 2) return T(0);
    return number<T>(band_of(rows, n, line)(row[d], col[d]), 0);
  };
}

template <Scalar T>
double rounding_of(double largest) {
  return largest * static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Bands of lines are right however the array is cut", "[array_operators]", Scalars) {
  using T = TestType;
  for (const std::vector<Index>& sizes : {std::vector<Index>{5, 3, 4}, {2, 9}, {9, 2}, {7}, {3, 0}}) {
    for_each_cut(sizes, {0, 3, 1}, [&](const Space& space) {
      for (int dim = 0; dim < space.dims.count(); ++dim) {
        for (const Rows rows : all_rows) {
          CAPTURE(dim, static_cast<int>(rows));
          check_elements<T>(*band_operator<T>(space, dim, bands_of(rows, space.dims.size(dim))),
                            along_lines<T>(space, dim, rows), rounding_of<T>(200));
        }
      }
    });
  }
}

TEST_CASE("Bands of lines are right where right-hand sides are cut, too", "[array_operators]") {
  for (const GridPtr& grid : all_grids()) {
    const Space space = array_space(grid, {6, 3}, 0, Axis::grid_rows, Axis::grid_cols);
    for (const Rows rows : all_rows)
      check_elements<double>(*band_operator<double>(space, 0, bands_of(rows, 6)),
                             along_lines<double>(space, 0, rows), 1e-13);
  }
}

TEMPLATE_LIST_TEST_CASE("Lines with bands of their own may be long and many", "[array_operators]", Scalars) {
  using T = TestType;
  const auto sample = [](Index row, Index column) { return small_integer<T>(5, row, column); };
  const T alpha = number<T>(2, 1);
  for (const GridPtr& grid : compact_grids()) {
    for (const auto& [sizes, dim] :
         {std::pair{std::vector<Index>{2, 1300}, 1}, {{1300, 2}, 0}, {{3, 20, 150}, 1}}) {
      const Space space = array_space(grid, sizes, dim == 0 ? 1 : 0);
      const DistMatrix<T> X = filled(grid, space.layout(2), sample);
      const Index n = space.dims.size(dim);
      Index step = 1;  // from a row to the next one of its line
      for (std::size_t d = static_cast<std::size_t>(dim) + 1; d < sizes.size(); ++d)
        step *= grid->is_member() ? space.local_box()[d].size : 0;
      for (const Rows rows : all_rows) {
        CAPTURE(describe(*grid), sizes, dim, static_cast<int>(rows));
        std::vector<Band> bands;
        for (Index line = 0; line < space.dimension() / n; ++line) bands.push_back(band_of(rows, n, line));
        DistMatrix<T> Y = filled(grid, space.layout(2), [](Index, Index) { return quiet_nan<T>(); });
        band_operator<T>(space, dim, bands_of(rows, n))->apply(alpha, X, T(0), Y);
        const auto expected = [&, dim = dim](Index row, Index column) {
          const std::vector<Index> place = place_of(space.dims, row);
          const Index i = place[static_cast<std::size_t>(dim)];
          const Band& band = bands[static_cast<std::size_t>(line_of(space.dims, dim, place))];
          T sum(0);
          for (Index j = std::max<Index>(0, i - 3); j <= std::min(n - 1, i + 2); ++j)
            sum += static_cast<Real<T>>(band(i, j)) * sample(row + (j - i) * step, column);
          return alpha * sum;
        };
        CHECK(mismatches(Y, expected, rounding_of<T>(1e4)) == 0);
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Samples with a weight of 0 do not count in lines with bands of their own",
                        "[array_operators]", Scalars) {
  using T = TestType;
  const GridPtr grid = all_grids().front();
  for (const int dim : {0, 1}) {
    const Space space =
        array_space(grid, dim == 0 ? std::vector<Index>{90, 40} : std::vector<Index>{40, 90}, 1 - dim);
    const auto sample_of = [&](Index row) {
      return place_of(space.dims, row)[static_cast<std::size_t>(dim)];
    };
    const DistMatrix<T> X = filled(grid, space.layout(2), [&](Index row, Index) {
      return sample_of(row) % 2 == 1 ? quiet_nan<T>() : T(1);
    });
    for (const Index head : {0, 90}) {  // row i has weights at columns i, i ± 2, …
      const LineBands bands{
          20, 20, [=](Index line) -> Band {
            return {
                90, 20,
                20, head,
                0,  [=](Index i, Index j) {
                                        return (i - j) % 2 == 0 ? static_cast<double>(1 + line) : 0; }};
          }};
      DistMatrix<T> Y(grid, space.layout(2));
      const OperatorPtr<T> op = band_operator<T>(space, dim, bands);
      for (const bool forward : {true, false}) {
        forward ? op->apply(T(1), X, T(0), Y) : op->apply_adjoint(T(1), X, T(0), Y);
        const std::vector<T> y = on_host<T>(Y);
        Index wrong = 0;
        for (std::size_t k = 0; k < y.size(); ++k) {
          const Index row = Y.local_row_range().begin + static_cast<Index>(k) % Y.local().rows;
          if (std::isnan(std::real(y[k])) != (sample_of(row) % 2 == 1)) ++wrong;
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("An infinite weight counts where its sample exists", "[array_operators]") {
  const double infinity = std::numeric_limits<double>::infinity();
  const GridPtr grid = all_grids().front();
  const Space space = array_space(grid, {3, 9}, 0);
  const DistMatrix<double> X = filled(grid, space.layout(1), [](Index, Index) { return 1.0; });
  const Band band = convolution(9, {1, 2, infinity}, 0);  // row i has an infinite weight at column i − 2
  for (const OperatorPtr<double>& op :
       {band_operator<double>(space, 1, band),
        band_operator<double>(space, 1, LineBands{2, 0, [&](Index) { return band; }})}) {
    DistMatrix<double> Y(grid, space.layout(1));
    op->apply(1, X, 0, Y);
    CHECK(mismatches(Y, [&](Index row, Index) {
            return std::array{1.0, 3.0, infinity}[static_cast<std::size_t>(std::min<Index>(row % 9, 2))];
          }) == 0);
  }
}

TEST_CASE("A rank asks for the bands of its lines alone, and fetches only the halos of a cut dimension",
          "[array_operators]") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    for (const int cut : {0, 1}) {
      const Space space = array_space(grid, {40, 6}, cut);
      std::set<Index> asked, own;
      const auto op = band_operator<float>(space, 0, LineBands{4, 2, [&](Index line) {
                                                                 asked.insert(line);
                                                                 return band_of(Rows::own, 40, line);
                                                               }});
      const Box box = space.local_box();
      for (Index line = box[1].begin; line < box[1].end() && box[0].size > 0; ++line) own.insert(line);
      CHECK(asked == own);
      const DistMatrix<float> X = filled(grid, space.layout(1), [](Index, Index) { return 1.0F; });
      DistMatrix<float> Y(grid, space.layout(1));
      op->apply(1, X, 0, Y);
      const TrafficSince traffic(grid->comm());
      op->apply(1, X, 0, Y);
      const Index missing = std::min<Index>(4, box[0].begin) + std::min<Index>(2, 40 - box[0].end());
      CHECK(traffic.received() == (cut == 0 && box[0].size > 0 ? missing * 6 * 4 : 0));
    }
  }
}

TEST_CASE("Bands of lines that do not fit are refused", "[array_operators]") {
  for (const GridPtr& grid : all_grids()) {
    const Space space = array_space(grid, {5, 6}, 0);
    CHECK_THROWS_AS(band_operator<double>(space, 2, bands_of(Rows::own, 6)), ShapeError);
    CHECK_THROWS_AS(band_operator<double>(space, 1, LineBands{-1, 2, bands_of(Rows::own, 6).of}), UsageError);
    if (!grid->is_member() || space.local_rows() == 0) continue;
    // The last of this rank's lines, of which each function knows.
    const Index last = space.local_box()[0].end() - 1;
    for (const auto& [n, lower, upper] : {std::array<Index, 3>{5, 1, 1}, {6, 5, 1}, {6, 1, 3}}) {
      const LineBands bands{4, 2, [=, n = n, lower = lower, upper = upper](Index line) -> Band {
                              if (line < last) return band_of(Rows::toeplitz, 6, line);
                              return {n, lower, upper, 0, 0, [](Index, Index) { return 1.0; }};
                            }};
      const std::string error = message_of<ShapeError>([&] { band_operator<double>(space, 1, bands); });
      try {
        band_operator<double>(space, 1, bands);
      } catch (const ShapeError& refused) {
        CHECK(refused.known_to() == KnownTo::one_rank);
      }
      CAPTURE(error, n, last);
      CHECK(error.starts_with("line " + std::to_string(last) + " has a band of order " + std::to_string(n)));
    }
  }
}

TEST_CASE("No bit of a product with bands of lines depends on the number of threads", "[array_operators]") {
  using T = std::complex<double>;
  const int usual = threads_per_rank();
  const double worth = std::exchange(operations_worth_a_thread, 1e-3);
  const GridPtr grid = all_grids().front();
  for (const std::vector<Index>& sizes : {std::vector<Index>{1, 2303}, {9, 300}, {300, 9}, {70, 150}}) {
    for (const int dim : {0, 1}) {
      const Space space = array_space(grid, sizes, 0, Axis::uncut);
      const DistMatrix<T> X = filled(grid, space.layout(1), random_elements<T>(3));
      for (const Rows rows : all_rows) {
        CAPTURE(sizes, dim, static_cast<int>(rows));
        const OperatorPtr<T> op = band_operator<T>(space, dim, bands_of(rows, space.dims.size(dim)));
        std::vector<T> bits;
        for (const int threads : {1, 2, 3}) {
          choose_threads(threads);
          DistMatrix<T> Y(grid, space.layout(1));
          op->apply(T(1), X, T(0), Y);
          const std::vector<T> found = on_host<T>(Y);
          if (threads == 1) bits = found;
          CHECK(found == bits);
        }
      }
    }
  }
  choose_threads(usual);
  operations_worth_a_thread = worth;
}
