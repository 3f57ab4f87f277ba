// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// A number uniform in (−1, 1) that is a pure function of its arguments, so that a matrix of such numbers is
/// the same on every grid. Hashes the three arguments with the finaliser of SplitMix64 (Steele, Lea, Flood:
/// Fast splittable pseudorandom number generators, OOPSLA 2014). Good enough for test data, not for
/// statistics.
constexpr double counter_uniform(std::uint64_t seed, Index i, Index j) {
  const auto mix = [](std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  };
  constexpr std::uint64_t step = 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = mix(seed + step);
  z = mix(z ^ (static_cast<std::uint64_t>(i) + step));
  z = mix(z ^ (static_cast<std::uint64_t>(j) + 2 * step));
  // The upper 53 bits, centred: never −1 or 1.
  return (static_cast<double>(z >> 11) + 0.5) * 0x1p-52 - 1.0;
}

/// Returns a random number of any element type: real and imaginary parts are independent, both uniform in
/// (−1, 1).
template <Scalar T>
constexpr T counter_random(std::uint64_t seed, Index i, Index j) {
  if constexpr (is_complex<T>) {
    return T(static_cast<Real<T>>(counter_uniform(seed, i, j)),
             static_cast<Real<T>>(counter_uniform(~seed, i, j)));
  } else {
    return static_cast<T>(counter_uniform(seed, i, j));
  }
}

}  // namespace gridlops
