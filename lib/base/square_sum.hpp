// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cmath>
#include <ranges>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// A sum of squares of numbers of any size, from which their norm follows. It has three parts, of large, of
/// usual and of small numbers, each in its own unit, so that no square leaves the range of doubles (Blue: A
/// portable Fortran program to find the Euclidean norm of a vector, ACM TOMS 4, 1978). The parts of several
/// sums can be added one by one, also by a reduction over ranks.
class SquareSum {
 public:
  std::array<double, 3> parts{};

  void add(double number) {
    const double size = std::abs(number);
    if (size > largest_usual) {
      parts[0] += squared(size * unit);
    } else if (size < least_usual) {
      parts[2] += squared(size / unit);
    } else {
      parts[1] += squared(size);  // NaN, too
    }
  }
  void add(const SquareSum& other) {
    for (std::size_t k = 0; k < parts.size(); ++k) parts[k] += other.parts[k];
  }
  /// Adds numbers that are side by side.
  template <class R>
  void add(const R* numbers, Index count) {
    // In several sums, so that the processor need not wait for each addition.
    std::array<double, 8> lanes{};
    constexpr auto width = static_cast<Index>(lanes.size());
    const Index whole = count / width * width;
    for (Index i = 0; i < whole; i += width)
      for (Index l = 0; l < width; ++l)
        lanes[static_cast<std::size_t>(l)] += squared(static_cast<double>(numbers[i + l]));
    for (Index i = whole; i < count; ++i) lanes[0] += squared(static_cast<double>(numbers[i]));
    double sum = 0;
    for (const double lane : lanes) sum += lane;
    // Squares that underflow are below the rounding of a sum of this size.
    if (least_usual < sum && sum < largest_usual) {
      parts[1] += sum;
    } else {
      for (Index i = 0; i < count; ++i) add(static_cast<double>(numbers[i]));
    }
  }

  /// The norm; infinite only if it is too large for a double.
  double root() const {
    if (parts[0] > 0) return std::sqrt(parts[0] + parts[1] * unit * unit) / unit;
    if (parts[1] != 0) return std::sqrt(parts[1] + parts[2] * unit * unit);
    return std::sqrt(parts[2]) * unit;
  }

 private:
  static constexpr double least_usual = 0x1p-480, largest_usual = 0x1p480, unit = 0x1p-600;
  static double squared(double number) { return number * number; }
};

/// The norm of these numbers, whatever their size.
template <std::ranges::input_range Numbers>
double norm_of(Numbers&& numbers) {
  SquareSum sum;
  for (const double number : numbers) sum.add(number);
  return sum.root();
}

}  // namespace gridlops
