// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include "gridlops/types.hpp"

namespace gridlops {

/// Vector registers of Isa::vector_bytes, and what all inner loops do with them. Isa is a type of the one
/// file that is compiled for the instruction set, so that the linker cannot give that code to other files.
template <class Isa, class Real>
class VectorRegisters {
 protected:
  static constexpr Index lanes = Isa::vector_bytes / static_cast<Index>(sizeof(Real));
  static constexpr int registers = Isa::vector_bytes == 64 ? 32 : 16;  // of x86-64
  static constexpr Index line = 64 / static_cast<Index>(sizeof(Real));

  template <std::size_t count>
  struct VectorOf {
    typedef Real type __attribute__((vector_size(count * sizeof(Real))));
  };
  using Vector = typename VectorOf<std::size_t{lanes}>::type;

  /// Calls body(0), …, body(count − 1) with constants, so that arrays of vectors can stay in registers.
  template <int count, class Body>
  [[gnu::always_inline]] static inline void unrolled(Body body) {
    unrolled(body, std::make_integer_sequence<int, count>());
  }
  template <class Body, int... index>
  [[gnu::always_inline]] static inline void unrolled(Body& body, std::integer_sequence<int, index...>) {
    (body(std::integral_constant<int, index>()), ...);
  }

  [[gnu::always_inline]] static inline Vector load(const Real* from) {
    Vector vector;
    __builtin_memcpy(&vector, from, sizeof vector);
    return vector;
  }
  [[gnu::always_inline]] static inline void store(const Vector& vector, Real* to) {
    __builtin_memcpy(to, &vector, sizeof vector);
  }
  /// One number in all lanes. The difference with zero is exact, and unlike a sum it compiles to a load.
  [[gnu::always_inline]] static inline Vector broadcast(Real value) { return value - Vector{}; }
  /// Loads the first count elements; the other lanes are zero.
  static inline Vector load_part(const Real* from, Index count) {
    Vector vector{};
    for (Index i = 0; i < count; ++i) vector[i] = from[i];
    return vector;
  }

  /// The sum of all lanes: halves are added until one lane is left.
  template <std::size_t count>
  [[gnu::always_inline]] static inline Real sum(const typename VectorOf<count>::type& vector) {
    if constexpr (count == 1) {
      return vector[0];
    } else {
      typename VectorOf<count / 2>::type halves[2];
      __builtin_memcpy(halves, &vector, sizeof vector);
      return sum<count / 2>(halves[0] + halves[1]);
    }
  }
};

}  // namespace gridlops
