// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace gridlops {

/// The bits of a double as (high << 32) + low, with a sign on low. So the double of high alone is the whole
/// rounded to nearest, to 21 binary digits, and has no bias; cut off, all would be smaller by up to 2⁻²⁰, and
/// ‖A‖₂ with them. Whatever is that near to the largest finite number has an infinite half. Reasons:
/// docs/decisions/0062-planes.md.
using HighHalf = std::uint32_t;
struct Halves {
  HighHalf high;
  std::int32_t low;
};

constexpr double joined(Halves halves) {
  const auto low = static_cast<std::uint64_t>(std::int64_t{halves.low});  // modulo 2⁶⁴
  return std::bit_cast<double>((std::uint64_t{halves.high} << 32) + low);
}

/// joined(split(x)) has the bits of x, unless x is NaN. Of NaN no more is kept, because rounding its bits
/// could make a number of them.
inline Halves split(double x) {
  const auto bits =
      std::bit_cast<std::uint64_t>(std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x);
  const auto low = static_cast<std::uint32_t>(bits);
  return {static_cast<std::uint32_t>(bits >> 32) + (low >> 31), std::bit_cast<std::int32_t>(low)};
}

}  // namespace gridlops
