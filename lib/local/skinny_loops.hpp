// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "local/skinny_kernels.hpp"
#include "local/vector_registers.hpp"

namespace gridlops {

/// The loops of SkinnyKernels, written once for all instruction sets. A tile of the forward product keeps
/// Isa::row_vectors registers of A; with max_width columns these and the sums fill all registers.
template <class Isa, class Real>
class SkinnyLoops : VectorRegisters<Isa, Real> {
  using Base = VectorRegisters<Isa, Real>;
  using Base::lanes, Base::line, Base::load, Base::load_part, Base::store, Base::broadcast;
  using typename Base::Vector;

 public:
  static constexpr SkinnyKernels<Real> kernels() {
    SkinnyKernels<Real> table;
    table.tile_rows = tile_rows;
    fill(table, std::make_integer_sequence<int, SkinnyKernels<Real>::max_width>());
    return table;
  }

 private:
  static constexpr int row_vectors = Isa::row_vectors;
  static constexpr Index tile_rows = row_vectors * lanes;
  using Ahead = typename SkinnyKernels<Real>::Ahead;

  template <int... index>
  static constexpr void fill(SkinnyKernels<Real>& table, std::integer_sequence<int, index...>) {
    ((table.forward[static_cast<std::size_t>(index)] = forward<index + 1>), ...);
    ((table.adjoint[static_cast<std::size_t>(index)] = adjoint<index + 1, SkinnyKernels<Real>::tile_cols>),
     ...);
    ((table.adjoint_column[static_cast<std::size_t>(index)] = adjoint<index + 1, 1>), ...);
  }

  template <int width>
  static void forward(const Real* A, Index lda, Index tiles, Index count, const Real* B, Real* C,
                      const Ahead& ahead) {
    for (Index tile = 0; tile < tiles; ++tile) {
      Vector c[std::size_t{width}][std::size_t{row_vectors}];
      Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
        Base::template unrolled<row_vectors>([&](auto v) __attribute__((always_inline)) {
          c[j][v] = load(C + j * tile_rows + v * lanes);
        });
      });
      const Real* a = A;
      const Real* next = ahead.block + tile * tile_rows;
      for (Index k = 0; k < count; ++k, a += lda, next += lda) {
        if (k >= ahead.begin && k < ahead.end)
          for (Index i = 0; i < tile_rows; i += line) __builtin_prefetch(next + i, 0, 2);
        Vector column[std::size_t{row_vectors}];
        Base::template unrolled<row_vectors>([&](auto v) __attribute__((always_inline)) {
          column[v] = load(a + v * lanes);
        });
        Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
          const Vector b = broadcast(B[k * width + j]);
          Base::template unrolled<row_vectors>([&](auto v) __attribute__((always_inline)) {
            Isa::add_product(column[v], b, c[j][v]);
          });
        });
      }
      Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
        Base::template unrolled<row_vectors>([&](auto v) __attribute__((always_inline)) {
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
        Base::template unrolled<columns>([&](auto c) __attribute__((always_inline)) {
          column[c] = load(a + c * lda);
        });
        if (i % line == 0 && i >= ahead.begin && i < ahead.end)
          Base::template unrolled<columns>([&](auto c) __attribute__((always_inline)) {
            __builtin_prefetch(next + c * lda + i, 0, 2);
          });
        Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
          const Vector y = load(Y + j * ldy + i);
          Base::template unrolled<columns>([&](auto c) __attribute__((always_inline)) {
            Isa::add_product(column[c], y, d[c][j]);
          });
        });
      }
      if (whole < rows) {
        Base::template unrolled<columns>([&](auto c) __attribute__((always_inline)) {
          const Vector part = load_part(A + c * lda + whole, rows - whole);
          Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
            Isa::add_product(part, load(Y + j * ldy + whole), d[c][j]);
          });
        });
      }
      Base::template unrolled<columns>([&](auto c) __attribute__((always_inline)) {
        Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
          D[c * width + j] += Base::template sum<std::size_t{lanes}>(d[c][j]);
        });
      });
      A += columns * lda;
      D += columns * width;
    }
  }
};

}  // namespace gridlops
