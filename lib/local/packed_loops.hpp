// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include "local/packed_kernels.hpp"
#include "local/vector_registers.hpp"

namespace gridlops {

/// The loops of PackedKernels, written once for all instruction sets.
template <class Isa, class Real>
class PackedLoops : VectorRegisters<Isa, Real> {
  using Base = VectorRegisters<Isa, Real>;
  using Vector = typename Base::Vector;
  using Base::broadcast, Base::lanes, Base::line, Base::load, Base::registers, Base::store;

 public:
  static constexpr PackedKernels<Real> kernels() {
    PackedKernels<Real> table;
    table.tile_cols = tile_cols;
    fill_forward(table, std::make_integer_sequence<int, PackedKernels<Real>::widest_forward>());
    fill_adjoint<1>(table, std::make_integer_sequence<int, PackedKernels<Real>::widest_adjoint>());
    fill_adjoint<2>(table, std::make_integer_sequence<int, PackedKernels<Real>::widest_adjoint>());
    return table;
  }

 private:
  /// The registers of a row of a tile. With two of them an element of Y is used twice once it is in a
  /// register.
  static constexpr int vectors = 2;
  static constexpr Index tile_cols = vectors * lanes;
  static constexpr int rows = static_cast<int>(PackedKernels<Real>::rows);
  static constexpr Index tile = rows * tile_cols;
  using Tiles = typename PackedKernels<Real>::Tiles;
  using Ahead = typename PackedKernels<Real>::Ahead;

  template <int... index>
  static constexpr void fill_forward(PackedKernels<Real>& table, std::integer_sequence<int, index...>) {
    ((table.forward[static_cast<std::size_t>(index)] = forward<index + 1>), ...);
  }
  template <int strips, int... index>
  static constexpr void fill_adjoint(PackedKernels<Real>& table, std::integer_sequence<int, index...>) {
    ((table.adjoint[std::size_t{strips - 1}][static_cast<std::size_t>(index)] = adjoint<strips, index + 1>),
     ...);
  }

  /// Prefetches what one step has ahead, and moves on to the next step's.
  template <int strips>
  [[gnu::always_inline]] static void fetch(Ahead& step) {
    Index i = 0;
    do {
      Base::template unrolled<strips>([&](auto p) __attribute__((always_inline)) {
        __builtin_prefetch(step.begin + p * step.stride + i, 0, 2);
      });
      i += line;
    } while (i < step.size);
    step.begin += step.size;
  }

  template <int width>
  static void forward(const Tiles& tiles, const Real* X, Real* sums, Ahead step) {
    const Index count = tiles.size / tile;
    // The registers hold a row, the columns, and the sums of as many rows as this.
    constexpr int at_once = width * rows + width < registers ? rows : rows / 2;
    constexpr int in_step = rows / at_once;  // a tile, or half the rows of two
    for (int first = 0; first < rows; first += at_once) {
      Vector c[std::size_t{width}][std::size_t{at_once}];
      const auto sums_at = [&](int j, int i) { return sums + (j * rows + first + i) * lanes; };
      Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
        Base::template unrolled<at_once>([&](auto i) __attribute__((always_inline)) {
          c[j][i] = load(sums_at(j, i));
        });
      });
      const Real *a = tiles.begin + first * tile_cols, *x = X;
      const auto add_tile = [&]() __attribute__((always_inline)) {
        Base::template unrolled<vectors>([&](auto v) __attribute__((always_inline)) {
          Vector column[std::size_t{width}];
          Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
            column[j] = load(x + j * tile_cols + v * lanes);
          });
          Base::template unrolled<at_once>([&](auto i) __attribute__((always_inline)) {
            const Vector row = load(a + i * tile_cols + v * lanes);
            Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
              Isa::add_product(row, column[j], c[j][i]);
            });
          });
        });
        a += tile;
        x += width * tile_cols;
      };
      for (const Real* const end = a + count / in_step * in_step * tile; a != end;) {
        fetch<1>(step);
        Base::template unrolled<in_step>([&](auto) __attribute__((always_inline)) { add_tile(); });
      }
      if (count % in_step != 0) add_tile();
      Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
        Base::template unrolled<at_once>([&](auto i) __attribute__((always_inline)) {
          store(c[j][i], sums_at(j, i));
        });
      });
    }
  }

  template <int strips, int width>
  static void adjoint(const Tiles& tiles, const Real* Y, Index y_stride, Real* X, Ahead step) {
    const Index count = tiles.size / tile;
    for (Index t = 0; t < count; ++t) {
      fetch<strips>(step);
      Real* const x = X + t * width * tile_cols;
      Vector sums[std::size_t{width}][std::size_t{vectors}];
      Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
        Base::template unrolled<vectors>([&](auto v) __attribute__((always_inline)) {
          sums[j][v] = load(x + j * tile_cols + v * lanes);
        });
      });
      Base::template unrolled<strips>([&](auto p) __attribute__((always_inline)) {
        const Real* const a = tiles.begin + p * tiles.size + t * tile;
        const Real* const y_of_strip = Y + p * y_stride;
        Base::template unrolled<rows>([&](auto i) __attribute__((always_inline)) {
          Vector row[std::size_t{vectors}];
          Base::template unrolled<vectors>([&](auto v) __attribute__((always_inline)) {
            row[v] = load(a + i * tile_cols + v * lanes);
          });
          Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
            const Vector y = broadcast(y_of_strip[i * width + j]);
            Base::template unrolled<vectors>([&](auto v) __attribute__((always_inline)) {
              Isa::add_product(row[v], y, sums[j][v]);
            });
          });
        });
      });
      Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
        Base::template unrolled<vectors>([&](auto v) __attribute__((always_inline)) {
          store(sums[j][v], x + j * tile_cols + v * lanes);
        });
      });
    }
  }
};

}  // namespace gridlops
