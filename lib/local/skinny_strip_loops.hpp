// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include "local/skinny_kernels.hpp"
#include "local/vector_registers.hpp"

namespace gridlops {

/// The loops of StripKernels, for instruction sets with 16 registers. With three columns in a group 12
/// registers hold coefficients or sums; with four the compiler keeps some of them in memory.
template <class Isa, class Real>
class StripLoops : VectorRegisters<Isa, Real> {
  using Base = VectorRegisters<Isa, Real>;
  using Base::lanes, Base::line, Base::load, Base::load_part, Base::store, Base::broadcast;
  using typename Base::Vector;
  using Kernels = StripKernels<Real>;
  using Ahead = typename Kernels::Ahead;

 public:
  static constexpr Kernels kernels() {
    Kernels table;
    fill(table, std::make_integer_sequence<int, Kernels::max_width>());
    return table;
  }

 private:
  template <int... index>
  static constexpr void fill(Kernels& table, std::integer_sequence<int, index...>) {
    ((table.forward[std::size_t{index}] = forward<index + 1, Kernels::tile_cols>), ...);
    ((table.adjoint[std::size_t{index}] = adjoint<index + 1, Kernels::tile_cols>), ...);
    ((table.forward_column[std::size_t{index}] = forward<index + 1, 1>), ...);
    ((table.adjoint_column[std::size_t{index}] = adjoint<index + 1, 1>), ...);
  }

  /// Calls step(i) for every vector of whole lines of rows. Meanwhile it prefetches so many of the other
  /// columns, spread evenly, because memory delivers no faster.
  template <int columns, class Step>
  [[gnu::always_inline]] static inline void down(Index lda, Index rows, const Real* others, Index fetched,
                                                 Step step) {
    const auto lines = [&](auto count) __attribute__((always_inline)) {
      for (Index i = 0; i < rows; i += line) {
        Base::template unrolled<count>([&](auto c) __attribute__((always_inline)) {
          __builtin_prefetch(others + c * lda + i, 0, 2);
        });
        Base::template unrolled<line / lanes>([&](auto v)
                                                  __attribute__((always_inline)) { step(i + v * lanes); });
      }
    };
    if constexpr (columns == Kernels::tile_cols) {
      if (fetched == 1) return lines(std::integral_constant<int, 1>());
      if (fetched == 2) return lines(std::integral_constant<int, 2>());
      if (fetched == 3) return lines(std::integral_constant<int, 3>());
      if (fetched == 4) return lines(std::integral_constant<int, 4>());
    }
    lines(std::integral_constant<int, 0>());
  }

  template <int width, int columns>
  static void forward(const Real* A, Index lda, Index rows, const Real* B, Real* C, Index ldc,
                      const Ahead& ahead) {
    const Index whole = rows / line * line;
    Vector b[std::size_t{columns}][std::size_t{width}];
    Base::template unrolled<columns>([&](auto c) __attribute__((always_inline)) {
      Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
        b[c][j] = broadcast(B[c * width + j]);
      });
    });
    const auto step = [&](Index i, auto load_column) __attribute__((always_inline)) {
      Vector y[std::size_t{width}];
      Base::template unrolled<width>([&](auto j)
                                         __attribute__((always_inline)) { y[j] = load(C + j * ldc + i); });
      Base::template unrolled<columns>([&](auto c) __attribute__((always_inline)) {
        const Vector a = load_column(A + c * lda + i);
        Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
          Isa::add_product(a, b[c][j], y[j]);
        });
      });
      Base::template unrolled<width>([&](auto j)
                                         __attribute__((always_inline)) { store(y[j], C + j * ldc + i); });
    };
    down<columns>(
        lda, whole, ahead.columns,
        ahead.count, [&](Index i) __attribute__((always_inline)) { step(i, load); });
    for (Index i = whole; i < rows; i += lanes)
      step(i, [&](const Real* a) { return load_part(a, std::min(lanes, rows - i)); });
  }

  template <int width, int columns>
  static void adjoint(const Real* A, Index lda, Index rows, const Real* Y, Index ldy, Real* D, Index ldd,
                      const Ahead& ahead) {
    const Index whole = rows / line * line;
    Vector d[std::size_t{columns}][std::size_t{width}]{};
    const auto step = [&](Index i, auto load_column) __attribute__((always_inline)) {
      Vector y[std::size_t{width}];
      Base::template unrolled<width>([&](auto j)
                                         __attribute__((always_inline)) { y[j] = load(Y + j * ldy + i); });
      Base::template unrolled<columns>([&](auto c) __attribute__((always_inline)) {
        const Vector a = load_column(A + c * lda + i);
        Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
          Isa::add_product(a, y[j], d[c][j]);
        });
      });
    };
    down<columns>(
        lda, whole, ahead.columns,
        ahead.count, [&](Index i) __attribute__((always_inline)) { step(i, load); });
    for (Index i = whole; i < rows; i += lanes)
      step(i, [&](const Real* a) { return load_part(a, std::min(lanes, rows - i)); });
    Base::template unrolled<columns>([&](auto c) __attribute__((always_inline)) {
      Base::template unrolled<width>([&](auto j) __attribute__((always_inline)) {
        D[j * ldd + c] += Base::template sum<std::size_t{lanes}>(d[c][j]);
      });
    });
  }
};

}  // namespace gridlops
