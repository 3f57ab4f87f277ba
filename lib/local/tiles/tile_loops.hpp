// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/numbers.hpp"
#include "local/tiles/planes.hpp"
#include "local/tiles/tile_kernels.hpp"

namespace gridlops {

/// A Bfloat16 as the upper bits of a double, signs extended and moved up by so much, has an exponent that is
/// too small by a constant. So all finite numbers, also 0 and those below the normal ones, become right by
/// one multiplication. Compressed matrices have no others.
inline constexpr int bfloat16_shift = 45;
inline constexpr std::int64_t bfloat16_mask = static_cast<std::int64_t>(0x8fffffffffffffff);
inline constexpr double bfloat16_scale = 0x1p896;

/// The loops of TileKernels, written once for all instruction sets.
///
/// In the forward product, the rows of a tile fill a few registers, and are multiplied by the broadcast
/// elements of a row of X; the sums stay in registers. In the adjoint, an element of A, or a run of them, is
/// spread over a register and multiplied by the same rows of all columns of Y in the group. For groups of
/// less than a register Y stays in registers while the columns of A pass by, for wider ones the sums. Both
/// products read A once, from beginning to end. Reasons: docs/decisions/0056-wide-groups.md.
///
/// Rows of A fill row_vectors registers in the forward product. Isa has the size of a register; how many hold
/// Y in the adjoint (most_y); how many registers of Y at most have two rows each (most_pairs); the least time
/// of a pass (AdjointTable::choose_groups); and the few operations that the compiler's vectors lack, such as
/// widen(), for which some compilers take many instructions. It is
/// local to the one file compiled for the instruction set, so that the linker cannot use that code for other
/// files.
template <class Isa, class R, int row_vectors>
class TileLoops {
 public:
  static constexpr TileKernels<R> kernels() {
    TileKernels<R> table;
    table.height = height;
    table.widest_forward = Isa::widest_forward;
    fill_forward(table, std::make_integer_sequence<int, Isa::widest_forward>());
    fill_adjoint<2>(table);
    fill_chains<lanes>(table);
    table.adjoint.choose_groups(Isa::least_time);
    table.chains.choose_groups(Isa::least_time);
    return table;
  }

 private:
  static constexpr int lanes = Isa::vector_bytes / static_cast<int>(sizeof(R));
  static constexpr int height = row_vectors * lanes;
  static_assert(Isa::widest_forward <= TileKernels<R>::most_forward);

  using Ahead = typename TileKernels<R>::Ahead;
  template <int count, class Element>
  struct VectorOf {
    using type [[gnu::vector_size(count * sizeof(Element))]] = Element;
  };
  using Vector = typename VectorOf<lanes, R>::type;

  template <int... index>
  static constexpr void fill_forward(TileKernels<R>& table, std::integer_sequence<int, index...>) {
    ((table.forward[std::size_t{index}] = forward<index + 1, R>), ...);
    constexpr std::integer_sequence<int, index...> widths;
    if constexpr (std::is_same_v<R, double>) {
      table.join = join;
      table.narrow = {narrow<HighHalf>(widths), narrow<float>(widths), narrow<Bfloat16>(widths)};
    } else {
      table.narrow = {narrow<Bfloat16>(widths)};
    }
  }
  template <class Element, int... index>
  static constexpr typename TileKernels<R>::template Narrow<Element> narrow(
      std::integer_sequence<int, index...>) {
    return {{forward<index + 1, Element>...}, widen<Element>};
  }
  template <int width>
  static constexpr void fill_adjoint(TileKernels<R>& table) {
    constexpr bool in_pairs = 2 * width <= Isa::most_pairs * lanes;
    constexpr int run = width < lanes ? lanes / width : in_pairs ? 2 : 1;
    table.adjoint.push_back({width, run, adjoint<width, run>});
    if constexpr (width < lanes) {
      fill_adjoint<2 * width>(table);
    } else if constexpr (2 * width + lanes <= Isa::most_pairs * lanes) {
      fill_adjoint<width + lanes / 2>(table);
    } else if constexpr (width < 3 * lanes) {
      fill_adjoint<(width / lanes + 1) * lanes>(table);
    }
  }
  template <int width>
  static constexpr void fill_chains(TileKernels<R>& table) {
    table.chains.push_back({width, 1, adjoint<width, 1>});
    if constexpr (width < 3 * lanes) fill_chains<width + lanes>(table);
  }

  /// Calls body(0), …, body(count − 1), all inline, so that arrays of vectors can stay in registers.
  template <int count, class Body>
  [[gnu::always_inline]] static inline void unrolled(Body body) {
    [&]<int... index>(std::integer_sequence<int, index...>) __attribute__((always_inline)) {
      (body(index), ...);
    }
    (std::make_integer_sequence<int, count>());
  }

  [[gnu::always_inline]] static inline Vector load(const R* from) {
    Vector vector;
    __builtin_memcpy(&vector, from, sizeof vector);
    return vector;
  }
  template <class Element>
  [[gnu::always_inline]] static inline Vector load(const Element* from) {
    if constexpr (requires { Isa::widen(from, R()); }) return reinterpret_cast<Vector>(Isa::widen(from, R()));
    typename VectorOf<lanes, Element>::type narrow;
    __builtin_memcpy(&narrow, from, sizeof narrow);
    if constexpr (std::is_same_v<Element, HighHalf>) {
      using Bits = typename VectorOf<lanes, std::uint64_t>::type;
      return reinterpret_cast<Vector>(__builtin_convertvector(narrow, Bits) << 32);
    } else if constexpr (std::is_same_v<Element, Bfloat16>) {
      using Bits = typename VectorOf<lanes, std::uint32_t>::type;
      using Floats = typename VectorOf<lanes, float>::type;
      return __builtin_convertvector(reinterpret_cast<Floats>(__builtin_convertvector(narrow, Bits) << 16),
                                     Vector);
    } else {
      return __builtin_convertvector(narrow, Vector);
    }
  }
  [[gnu::always_inline]] static inline void store(const Vector& vector, R* to) {
    __builtin_memcpy(to, &vector, sizeof vector);
  }
  /// One number in all lanes. Subtracting zero is exact, and unlike adding it compiles to a load.
  template <class Element>
  [[gnu::always_inline]] static inline auto broadcast(Element value) {
    using Filled [[gnu::vector_size(Isa::vector_bytes)]] = Element;
    return value - Filled{};
  }
  /// `width` times lanes / width successive elements.
  template <int width>
  [[gnu::always_inline]] static inline Vector spread(const R* from) {
    constexpr int bytes = Isa::vector_bytes / width;
    if constexpr (width == 1) {
      return load(from);
    } else if constexpr (width == lanes) {
      return broadcast(*from);
    } else if constexpr (bytes == 8) {
      double both;
      __builtin_memcpy(&both, from, sizeof both);
      return reinterpret_cast<Vector>(broadcast(both));
    } else {
      return reinterpret_cast<Vector>(Isa::template spread<bytes>(from));
    }
  }
  /// The sums of neighbouring lanes, of the first vector and then of the second.
  [[gnu::always_inline]] static inline Vector sums_of_pairs(const Vector& a, const Vector& b) {
    return [&]<int... index>(std::integer_sequence<int, index...>) __attribute__((always_inline)) {
      return __builtin_shufflevector(a, b, (2 * index)...) +
             __builtin_shufflevector(a, b, (2 * index + 1)...);
    }
    (std::make_integer_sequence<int, lanes>());
  }

  /// Fetches columns ahead, one at a time while others are used: memory accepts few requests at once.
  class Fetch {
   public:
    explicit Fetch(const Ahead& ahead)
        : at_(ahead.tile.begin + ahead.first * ahead.tile.stride),
          stride_(ahead.tile.stride),
          left_(ahead.end - ahead.first) {}

    [[gnu::always_inline]] void column() {
      constexpr int line = 64 / static_cast<int>(sizeof(R));
      if (left_ <= 0) return;
      --left_;
      unrolled<(height + line - 1) / line>([&](int l) __attribute__((always_inline)) {
        __builtin_prefetch(at_ + l * line, 0, 2);
      });
      at_ += stride_;
    }
    /// Part i of `parts` of this many columns.
    template <int columns, int parts>
    [[gnu::always_inline]] void part(int i) {
      const int end = (i + 1) * columns / parts;
      for (int n = i * columns / parts; n < end; ++n) column();
    }

   private:
    const R* at_;
    Index stride_, left_;
  };

  static void join(Index count, const HighHalf* high, const std::int32_t* low, R* to) {
    for (Index i = 0; i < count; ++i) to[i] = joined({high[i], low[i]});
  }
  template <class Element>
  static void widen(const Tile<Element>& A, R* to) {
    const Element* a = A.begin;
    for (Index k = 0; k < A.cols; ++k, a += A.stride, to += height)
      unrolled<row_vectors>([&](int v) __attribute__((always_inline)) {
        store(load(a + v * lanes), to + v * lanes);
      });
  }

  template <int width, class Element>
  static void forward(const Tile<Element>& A, const R* X, R* Y, const Ahead& ahead) {
    Vector y[at(width)][at(row_vectors)];
    unrolled<width>([&](int j) __attribute__((always_inline)) {
      unrolled<row_vectors>([&](int v) __attribute__((always_inline)) {
        y[j][v] = load(Y + j * height + v * lanes);
      });
    });
    Fetch fetch(ahead);
    Index due = 0;  // in fractions of a column
    const Element* a = A.begin;
    for (Index k = 0; k < A.cols; ++k, a += A.stride, X += width) {
      due += ahead.end - ahead.first;
      if (due >= A.cols) {
        due -= A.cols;
        fetch.column();
      }
      Vector column[at(row_vectors)];
      unrolled<row_vectors>([&](int v) __attribute__((always_inline)) { column[v] = load(a + v * lanes); });
      unrolled<width>([&](int j) __attribute__((always_inline)) {
        const Vector x = broadcast(X[j]);
        unrolled<row_vectors>([&](int v) __attribute__((always_inline)) {
          Isa::add_product(column[v], x, y[j][v]);
        });
      });
    }
    unrolled<width>([&](int j) __attribute__((always_inline)) {
      unrolled<row_vectors>([&](int v) __attribute__((always_inline)) {
        store(y[j][v], Y + j * height + v * lanes);
      });
    });
  }

  template <int width, int run>
  static void adjoint(const Tile<R>& A, const R* Y, R* Z, const Ahead& ahead) {
    if constexpr (width < lanes) {
      constexpr int rows = std::min(height, Isa::most_y * run);
      static_assert(height % rows == 0);
      if (ahead.first < ahead.end) {
        adjoint_keeping_y<width, rows, true>(A, Y, Z, ahead);
      } else {
        adjoint_keeping_y<width, rows, false>(A, Y, Z, ahead);
      }
      for (Index row = rows; row < height; row += rows)
        adjoint_keeping_y<width, rows, false>({A.begin + row, A.stride, A.cols}, Y + row * width, Z, {});
    } else {
      adjoint_keeping_z<width * run / lanes, run>(A, Y, Z, ahead);
    }
  }

  /// Columns of A pass by rows of Y.
  template <int width, int rows, bool fetches>
  [[gnu::always_inline]] static inline void adjoint_keeping_y(const Tile<R>& A, const R* Y, R* Z,
                                                              const Ahead& ahead) {
    constexpr int run = lanes / width, runs = rows / run, at_once = std::max(run, 4);
    static_assert(TileKernels<R>::unit % at_once == 0);
    Vector y[at(runs)];
    unrolled<runs>([&](int i) __attribute__((always_inline)) { y[i] = load(Y + i * lanes); });
    Fetch fetch(ahead);
    const R* a = A.begin;
    for (Index k = 0; k < A.cols; k += at_once, a += at_once * A.stride, Z += at_once * width) {
      Vector z[at(at_once)] = {};
      unrolled<runs>([&](int i) __attribute__((always_inline)) {
        if constexpr (fetches) fetch.template part<at_once, runs>(i);
        unrolled<at_once>([&](int l) __attribute__((always_inline)) {
          Isa::add_product(spread<width>(a + l * A.stride + i * run), y[i], z[l]);
        });
      });
      add_partial_sums<at_once, run>(z);
      unrolled<at_once / run>([&](int l) __attribute__((always_inline)) {
        store(load(Z + l * lanes) + z[l], Z + l * lanes);
      });
    }
  }

  /// Runs of rows of A and of Y pass by some rows of Z, each of this many vectors. A sum waits some cycles
  /// for its last addition, so there are at least eight.
  template <int vectors, int run>
  [[gnu::always_inline]] static inline void adjoint_keeping_z(const Tile<R>& A, const R* Y, R* Z,
                                                              const Ahead& ahead) {
    constexpr int at_once = vectors <= run ? 8 : 4;
    static_assert(TileKernels<R>::unit % at_once == 0);
    Fetch fetch(ahead);
    const R* a = A.begin;
    for (Index k = 0; k < A.cols;
         k += at_once, a += at_once * A.stride, Z += at_once * vectors * lanes / run) {
      Vector z[at(at_once * vectors)] = {};
      if constexpr (run == 1) {
        unrolled<at_once * vectors>([&](int l)
                                        __attribute__((always_inline)) { z[l] = load(Z + l * lanes); });
      }
      unrolled<height / run>([&](int i) __attribute__((always_inline)) {
        fetch.template part<at_once, height / run>(i);
        Vector y[at(vectors)];
        unrolled<vectors>([&](int v)
                              __attribute__((always_inline)) { y[v] = load(Y + (i * vectors + v) * lanes); });
        unrolled<at_once>([&](int l) __attribute__((always_inline)) {
          const Vector elements = spread<lanes / run>(a + l * A.stride + i * run);
          unrolled<vectors>([&](int v) __attribute__((always_inline)) {
            Isa::add_product(elements, y[v], z[l * vectors + v]);
          });
        });
      });
      add_partial_sums<at_once * vectors, run>(z);
      unrolled<at_once * vectors / run>([&](int l) __attribute__((always_inline)) {
        store(run == 1 ? z[l] : load(Z + l * lanes) + z[l], Z + l * lanes);
      });
    }
  }

  /// Adds up runs of partial sums in the lanes of `count` vectors. Afterwards the first count / run vectors
  /// hold the sums, packed.
  template <int count, int run>
  [[gnu::always_inline]] static inline void add_partial_sums(Vector* z) {
    if constexpr (run > 1) {
      unrolled<count / 2>([&](int l) __attribute__((always_inline)) {
        z[l] = sums_of_pairs(z[2 * l], z[2 * l + 1]);
      });
      add_partial_sums<count / 2, run / 2>(z);
    }
  }
};

}  // namespace gridlops
