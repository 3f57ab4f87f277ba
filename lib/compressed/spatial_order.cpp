// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/compressed/spatial_order.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

namespace {

void check(const double* positions, Index points, int dimensions) {
  require<UsageError>(1 <= dimensions && dimensions <= 3, "points have ", dimensions,
                      " coordinates; an order in space is for 1, 2 or 3");
  require<UsageError>(points >= 0, "there cannot be ", points, " points");
  for (Index k = 0; k < points * dimensions; ++k)
    require<UsageError>(std::isfinite(positions[k]), "coordinate ", k % dimensions, " of point ",
                        k / dimensions, " is ", positions[k],
                        ": a point without a finite position has no place in an order");
}

/// The index along the Hilbert curve of a cell of a grid with 2^bits cells a side: Skilling, Programming the
/// Hilbert curve, AIP Conf. Proc. 707, 2004.
template <std::size_t dimensions>
std::uint64_t hilbert_index(std::array<std::uint32_t, dimensions> x, int bits) {
  const std::uint32_t highest = std::uint32_t{1} << (bits - 1);
  for (std::uint32_t q = highest; q > 1; q >>= 1) {
    const std::uint32_t p = q - 1;
    for (std::uint32_t& x_i : x) {
      if ((x_i & q) != 0) {
        x[0] ^= p;
      } else {
        const std::uint32_t t = (x[0] ^ x_i) & p;
        x[0] ^= t;
        x_i ^= t;
      }
    }
  }
  for (std::size_t i = 1; i < dimensions; ++i) x[i] ^= x[i - 1];
  std::uint32_t t = 0;
  for (std::uint32_t q = highest; q > 1; q >>= 1)
    if ((x[dimensions - 1] & q) != 0) t ^= q - 1;
  std::uint64_t index = 0;
  for (std::uint32_t q = highest; q > 0; q >>= 1)
    for (const std::uint32_t x_i : x) index = 2 * index + (((x_i ^ t) & q) != 0);
  return index;
}

/// The index of every point.
template <std::size_t dimensions>
std::vector<std::uint64_t> hilbert_indices(const double* positions, Index points) {
  // Halves, because the difference of two numbers can overflow, and that of their halves cannot.
  const auto half = [&](Index point, std::size_t i) { return positions[at(point) * dimensions + i] / 2; };
  std::array<double, dimensions> lowest{};
  double side = 0;
  for (std::size_t i = 0; i < dimensions && points > 0; ++i) {
    double highest = lowest[i] = half(0, i);
    for (Index point = 1; point < points; ++point) {
      lowest[i] = std::min(lowest[i], half(point, i));
      highest = std::max(highest, half(point, i));
    }
    side = std::max(side, highest - lowest[i]);
  }
  constexpr int bits = std::min(31, 63 / static_cast<int>(dimensions));
  // The cube is a millionth larger than the points need, so that points at one half of its side, one quarter
  // and so on lie within cells. At the edge of one, rounding would choose the cell.
  const double cells = (1 - 0x1p-20) * static_cast<double>(std::uint32_t{1} << bits);
  std::vector<std::uint64_t> indices(at(points), 0);
  for (Index point = 0; point < points && side > 0; ++point) {
    std::array<std::uint32_t, dimensions> cell;
    for (std::size_t i = 0; i < dimensions; ++i)
      cell[i] = static_cast<std::uint32_t>((half(point, i) - lowest[i]) / side * cells);
    indices[at(point)] = hilbert_index(cell, bits);
  }
  return indices;
}

template <class Key>
std::vector<Index> sorted_by(const Key* keys, Index count) {
  std::vector<Index> order(at(count));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [keys](Index a, Index b) { return keys[a] < keys[b]; });
  return order;
}

}  // namespace

std::vector<Index> hilbert_order(const double* positions, Index points, int dimensions) {
  check(positions, points, dimensions);
  if (dimensions == 1) return sorted_by(positions, points);
  return sorted_by(
      (dimensions == 2 ? hilbert_indices<2>(positions, points) : hilbert_indices<3>(positions, points))
          .data(),
      points);
}

}  // namespace gridlops
