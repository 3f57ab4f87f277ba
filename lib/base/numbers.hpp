// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include "gridlops/types.hpp"

namespace gridlops {

/// An index, converted to a position in a standard container.
constexpr std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// A real number, rounded to the precision of T and converted to T.
template <Scalar T>
constexpr T to_scalar(double value) {
  return static_cast<T>(static_cast<Real<T>>(value));
}

}  // namespace gridlops
