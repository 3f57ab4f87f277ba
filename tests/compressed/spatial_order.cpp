// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/compressed/spatial_order.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "gridlops/base/error.hpp"
#include "support/agreed_failures.hpp"
#include "support/catch.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// The cells of a grid of `side` cells along each dimension, in the order of an array.
std::vector<double> grid_cells(Index side, int dimensions) {
  Index count = 1;
  for (int d = 0; d < dimensions; ++d) count *= side;
  std::vector<double> positions;
  for (Index k = 0; k < count; ++k)
    for (Index d = 0, rest = k; d < dimensions; ++d, rest /= side)
      positions.push_back(static_cast<double>(rest % side));
  return positions;
}

std::vector<Index> order_of(const std::vector<double>& positions, int dimensions) {
  return hilbert_order(positions.data(), static_cast<Index>(positions.size()) / dimensions, dimensions);
}

bool is_permutation(const std::vector<Index>& order) {
  const std::set<Index> all(order.begin(), order.end());
  return all.size() == order.size() &&
         (all.empty() || (*all.begin() == 0 && *all.rbegin() + 1 == static_cast<Index>(all.size())));
}

/// How many coordinates two points differ in, as the sum of the differences.
double steps(const std::vector<double>& positions, int dimensions, Index a, Index b) {
  double sum = 0;
  for (int d = 0; d < dimensions; ++d)
    sum += std::fabs(positions[static_cast<std::size_t>(a * dimensions + d)] -
                     positions[static_cast<std::size_t>(b * dimensions + d)]);
  return sum;
}

/// The mean over blocks of consecutive points of the diameter of a block.
double mean_diameter(const std::vector<double>& positions, const std::vector<Index>& order,
                     std::size_t block) {
  double sum = 0;
  std::size_t blocks = 0;
  for (std::size_t first = 0; first + block <= order.size(); first += block, ++blocks) {
    double diameter = 0;
    for (std::size_t a = first; a < first + block; ++a)
      for (std::size_t b = first; b < a; ++b) {
        const auto at = [&](Index point, std::size_t d) {
          return positions[2 * static_cast<std::size_t>(point) + d];
        };
        diameter = std::max(diameter,
                            std::hypot(at(order[a], 0) - at(order[b], 0), at(order[a], 1) - at(order[b], 1)));
      }
    sum += diameter;
  }
  return sum / static_cast<double>(blocks);
}

}  // namespace

TEST_CASE("The Hilbert order of a full grid visits every cell, and steps from neighbour to neighbour",
          "[spatial_order]") {
  for (const int dimensions : {2, 3}) {
    for (const Index side : {1, 2, 4, 8, 16, 32}) {
      const std::vector<double> cells = grid_cells(side, dimensions);
      const std::vector<Index> order = order_of(cells, dimensions);
      INFO(dimensions << " dimensions, side " << side);
      REQUIRE(static_cast<Index>(order.size()) == static_cast<Index>(std::pow(side, dimensions)));
      CHECK(is_permutation(order));
      int jumps = 0;
      for (std::size_t k = 1; k < order.size(); ++k)
        jumps += steps(cells, dimensions, order[k - 1], order[k]) != 1;
      CHECK(jumps == 0);
    }
  }
}

TEST_CASE("Neither a shift nor a scale changes an order in space", "[spatial_order]") {
  for (const int dimensions : {1, 2, 3}) {
    for (const Index side : {3, 5, 7, 12}) {  // of odd ones, points lie at halves of the extent
      std::vector<double> positions = grid_cells(side, dimensions);
      const std::vector<Index> order = order_of(positions, dimensions);
      CHECK(is_permutation(order));
      for (const auto& [shift, scale] : {std::pair{0.1, 1.0}, {-1e6, 0.1}, {1.0 / 3, 1e-9}, {7e5, 12.5}}) {
        std::vector<double> moved;
        for (std::size_t k = 0; k < positions.size(); ++k)
          moved.push_back(scale * positions[k] +
                          scale * shift * static_cast<double>(1 + k % static_cast<std::size_t>(dimensions)));
        INFO(dimensions << " dimensions, side " << side << ", shift " << shift << ", scale " << scale);
        CHECK(order_of(moved, dimensions) == order);
      }
    }
  }
}

TEST_CASE("The Hilbert order of 48 x 48 stations keeps blocks together", "[spatial_order]") {
  const std::vector<double> stations = grid_cells(48, 2);
  std::vector<Index> natural(48 * 48);
  std::iota(natural.begin(), natural.end(), Index{0});
  // A square of 256 stations has a diagonal of 21 spacings; five lines and a third of 48 have one of 47.
  CHECK(mean_diameter(stations, natural, 256) > 47);
  CHECK(mean_diameter(stations, order_of(stations, 2), 256) < 30);
}

TEST_CASE("Points of one place keep their order, and one dimension is sorted", "[spatial_order]") {
  CHECK(order_of({3, 1, 3, 1}, 2) == std::vector<Index>{0, 1});
  const std::vector<Index> pairs = order_of({5, 5, 0, 0, 5, 5, 0, 0}, 2);
  CHECK((pairs == std::vector<Index>{1, 3, 0, 2} || pairs == std::vector<Index>{0, 2, 1, 3}));
  CHECK(order_of({2, -1, 2, 0.5, -1}, 1) == std::vector<Index>{1, 4, 3, 0, 2});
  CHECK(order_of({}, 1).empty());
  CHECK(order_of({}, 3).empty());
  CHECK(order_of({7, 8, 9}, 3) == std::vector<Index>{0});
  constexpr double most = std::numeric_limits<double>::max();
  CHECK(is_permutation(order_of({-most, 0, most, 0, 0, most, 0, -most}, 2)));
}

TEST_CASE("An order in space says which point has no position", "[spatial_order]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto text = [](std::vector<double> positions, int dimensions) {
    return ending_of([&] { order_of(positions, dimensions); }).text;
  };
  CHECK(contains(text({0, 1, 2, std::nan("")}, 2), "coordinate 1 of point 1 is nan"));
  CHECK(contains(text({0, 1, 2, 3, -infinity, 5}, 3), "coordinate 1 of point 1 is -inf"));
  CHECK(contains(text({0, infinity}, 1), "coordinate 0 of point 1 is inf"));
  CHECK(contains(text({0, 1, 2, 3}, 4), "4 coordinates"));
  CHECK_THROWS_AS(hilbert_order(nullptr, -1, 2), UsageError);
  CHECK_THROWS_AS(hilbert_order(nullptr, 1, 0), UsageError);
}
