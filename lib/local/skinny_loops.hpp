// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include "local/skinny_kernels.hpp"

namespace gridlops {

/// The loops behind SkinnyKernels, once for all instruction sets: Isa is a type of the one file that is
/// compiled for it, so that no other file can be given its code. Isa::vector_bytes is the width of a
/// register, Isa::row_vectors the registers of A in a tile of the forward product: with max_width columns
/// they and their sums fill the registers.
template <class Isa, class Real>
class SkinnyLoops {
 public:
  static constexpr SkinnyKernels<Real> kernels() {
    SkinnyKernels<Real> table;
    table.tile_rows = tile_rows;
    fill(table, std::make_integer_sequence<int, SkinnyKernels<Real>::max_width>());
    return table;
  }

 private:
  static constexpr Index lanes = Isa::vector_bytes / static_cast<Index>(sizeof(Real));
  static constexpr int row_vectors = Isa::row_vectors;
  static constexpr Index tile_rows = row_vectors * lanes;
  using Ahead = typename SkinnyKernels<Real>::Ahead;
  static constexpr Index line = 64 / static_cast<Index>(sizeof(Real));

  template <std::size_t count>
  struct VectorOf {
    typedef Real type __attribute__((vector_size(count * sizeof(Real))));
  };
  using Vector = typename VectorOf<std::size_t{lanes}>::type;

  template <int... index>
  static constexpr void fill(SkinnyKernels<Real>& table, std::integer_sequence<int, index...>) {
    ((table.forward[static_cast<std::size_t>(index)] = forward<index + 1>), ...);
    ((table.adjoint[static_cast<std::size_t>(index)] = adjoint<index + 1, SkinnyKernels<Real>::tile_cols>),
     ...);
    ((table.adjoint_column[static_cast<std::size_t>(index)] = adjoint<index + 1, 1>), ...);
  }

  /// body(0), …, body(count − 1) with constants, so that arrays of vectors can stay in registers.
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
  /// The first count elements, then zeros.
  static inline Vector load_part(const Real* from, Index count) {
    Vector vector{};
    for (Index i = 0; i < count; ++i) vector[i] = from[i];
    return vector;
  }

  /// Sum of all elements: halves are added to each other until one is left.
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

  template <int width>
  static void forward(const Real* A, Index lda, Index tiles, Index count, const Real* B, Real* C,
                      const Ahead& ahead) {
    for (Index tile = 0; tile < tiles; ++tile) {
      Vector c[std::size_t{width}][std::size_t{row_vectors}];
      unrolled<width>([&](auto j) __attribute__((always_inline)) {
        unrolled<row_vectors>([&](auto v) __attribute__((always_inline)) {
          c[j][v] = load(C + j * tile_rows + v * lanes);
        });
      });
      const Real* a = A;
      const Real* next = ahead.block + tile * tile_rows;
      for (Index k = 0; k < count; ++k, a += lda, next += lda) {
        if (k >= ahead.begin && k < ahead.end)
          for (Index i = 0; i < tile_rows; i += line) __builtin_prefetch(next + i, 0, 2);
        Vector column[std::size_t{row_vectors}];
        unrolled<row_vectors>([&](auto v)
                                  __attribute__((always_inline)) { column[v] = load(a + v * lanes); });
        unrolled<width>([&](auto j) __attribute__((always_inline)) {
          const Vector b = Vector{} + B[k * width + j];
          unrolled<row_vectors>([&](auto v) __attribute__((always_inline)) {
            Isa::add_product(column[v], b, c[j][v]);
          });
        });
      }
      unrolled<width>([&](auto j) __attribute__((always_inline)) {
        unrolled<row_vectors>([&](auto v) __attribute__((always_inline)) {
          store(c[j][v], C + j * tile_rows + v * lanes);
        });
      });
      A += tile_rows;
      C += width * tile_rows;
    }
  }

  template <int width, int columns>
  static void adjoint(const Real* A, Index lda, Index tiles, Index rows, const Real* Y, Index ldy, Real* D,
                      const Ahead& ahead) {
    for (Index tile = 0; tile < tiles; ++tile) {
      Vector d[std::size_t{columns}][std::size_t{width}]{};
      const Real* const next = ahead.block + tile * columns * lda;
      const Index whole = rows - rows % lanes;
      for (Index i = 0; i < whole; i += lanes) {
        const Real* const a = A + i;
        Vector column[std::size_t{columns}];
        unrolled<columns>([&](auto c) __attribute__((always_inline)) { column[c] = load(a + c * lda); });
        if (i % line == 0 && i >= ahead.begin && i < ahead.end)
          unrolled<columns>([&](auto c) __attribute__((always_inline)) {
            __builtin_prefetch(next + c * lda + i, 0, 2);
          });
        unrolled<width>([&](auto j) __attribute__((always_inline)) {
          const Vector y = load(Y + j * ldy + i);
          unrolled<columns>([&](auto c)
                                __attribute__((always_inline)) { Isa::add_product(column[c], y, d[c][j]); });
        });
      }
      if (whole < rows) {
        unrolled<columns>([&](auto c) __attribute__((always_inline)) {
          const Vector part = load_part(A + c * lda + whole, rows - whole);
          unrolled<width>([&](auto j) __attribute__((always_inline)) {
            Isa::add_product(part, load(Y + j * ldy + whole), d[c][j]);
          });
        });
      }
      unrolled<columns>([&](auto c) __attribute__((always_inline)) {
        unrolled<width>([&](auto j) __attribute__((always_inline)) {
          D[c * width + j] += sum<std::size_t{lanes}>(d[c][j]);
        });
      });
      A += columns * lda;
      D += columns * width;
    }
  }
};

}  // namespace gridlops
