// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "local/panel_kernels.hpp"
#include "local/vector_registers.hpp"

namespace gridlops {

/// The loops behind PanelKernels, once for all instruction sets.
template <class Isa, class Real>
class PanelLoops : VectorRegisters<Isa, Real> {
  using Base = VectorRegisters<Isa, Real>;
  using Vector = typename Base::Vector;
  using Base::broadcast, Base::lanes, Base::line, Base::load, Base::store;

 public:
  static constexpr PanelKernels<Real> kernels() {
    PanelKernels<Real> table;
    table.tile_cols = tile_cols;
    fill_forward(table, std::make_integer_sequence<int, PanelKernels<Real>::widest_forward>());
    fill_adjoint(table, std::make_integer_sequence<int, PanelKernels<Real>::widest_adjoint>());
    return table;
  }

 private:
  /// Of a row of a tile: with them one element of Y, once it is in a register, is used twice.
  static constexpr int vectors = 2;
  static constexpr Index tile_cols = vectors * lanes;
  static constexpr int rows = static_cast<int>(PanelKernels<Real>::rows);
  static constexpr Index tile = rows * tile_cols;
  using Ahead = typename PanelKernels<Real>::Ahead;

  template <int... index>
  static constexpr void fill_forward(PanelKernels<Real>& table, std::integer_sequence<int, index...>) {
    ((table.forward[static_cast<std::size_t>(index)] = forward<index + 1>), ...);
  }
  template <int... index>
  static constexpr void fill_adjoint(PanelKernels<Real>& table, std::integer_sequence<int, index...>) {
    ((table.adjoint[static_cast<std::size_t>(index)] = adjoint<index + 1>), ...);
  }

  [[gnu::always_inline]] static inline void fetch(const Ahead& ahead, Index number) {
    if (number < ahead.begin || number >= ahead.end) return;
    const Real* const at = ahead.panel + number * tile;
    for (Index i = 0; i < tile; i += line) __builtin_prefetch(at + i, 0, 2);
  }

  template <int width>
  static void forward(const Real* panel, Index tiles, const Real* X, Real* Y, const Ahead& ahead) {
    // As many rows at a time as there are registers for; all rows of a few tiles before the next tiles, so
    // that what a first part of the rows brings to the cache is there for the second.
    constexpr int at_once = width == 1 ? rows : rows / 2;
    constexpr Index few = 16;
    Vector sums[std::size_t{width}][std::size_t{rows}]{};
    for (Index begin = 0; begin < tiles; begin += few) {
      const Index end = std::min(begin + few, tiles);
      for (int first = 0; first < rows; first += at_once) {
        Vector c[std::size_t{width}][std::size_t{at_once}];
        Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
          Base::template unrolled<at_once>([&](auto i) __attribute__((always_inline)) {
            c[j][i] = sums[j][first + i];
          });
        });
        for (Index t = begin; t < end; ++t) {
          if (first == 0) fetch(ahead, t);
          const Real* const a = panel + t * tile + first * tile_cols;
          const Real* const x = X + t * width * tile_cols;
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
        }
        Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
          Base::template unrolled<at_once>([&](auto i) __attribute__((always_inline)) {
            sums[j][first + i] = c[j][i];
          });
        });
      }
    }
    for (int j = 0; j < width; ++j) {
      for (int i = 0; i < rows; ++i) {
        Real sum = 0;
        for (Index lane = 0; lane < lanes; ++lane) sum += sums[j][i][lane];
        Y[j * rows + i] = sum;
      }
    }
  }

  template <int width>
  static void adjoint(const Real* panel, Index tiles, const Real* Y, Real* X, const Ahead& ahead) {
    for (Index t = 0; t < tiles; ++t) {
      fetch(ahead, t);
      const Real* const a = panel + t * tile;
      Real* const x = X + t * width * tile_cols;
      Vector sums[std::size_t{width}][std::size_t{vectors}];
      Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
        Base::template unrolled<vectors>([&](auto v) __attribute__((always_inline)) {
          sums[j][v] = load(x + j * tile_cols + v * lanes);
        });
      });
      Base::template unrolled<rows>([&](auto i) __attribute__((always_inline)) {
        Vector row[std::size_t{vectors}];
        Base::template unrolled<vectors>([&](auto v) __attribute__((always_inline)) {
          row[v] = load(a + i * tile_cols + v * lanes);
        });
        Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
          const Vector y = broadcast(Y[i * width + j]);
          Base::template unrolled<vectors>([&](auto v) __attribute__((always_inline)) {
            Isa::add_product(row[v], y, sums[j][v]);
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
