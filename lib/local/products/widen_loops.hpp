// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstring>

#include "local/products/kernel_set.hpp"

namespace gridlops {

/// widen() for the instruction set of the file that names Isa, a type local to it. The compiler vectorises
/// these loops.
template <class Isa, class R>
struct WidenLoops {
  static void bfloat16(Index n, const void* from, R* to) {
    const auto* const halves = static_cast<const std::uint16_t*>(from);
    for (Index i = 0; i < n; ++i) {
      const std::uint32_t bits = std::uint32_t{halves[i]} << 16;
      float number;
      std::memcpy(&number, &bits, sizeof number);
      to[i] = number;
    }
  }
  static void float32(Index n, const void* from, R* to) {
    const auto* const numbers = static_cast<const float*>(from);
    for (Index i = 0; i < n; ++i) to[i] = numbers[i];
  }
};

}  // namespace gridlops
