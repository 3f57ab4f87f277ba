// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "gridlops/base/types.hpp"
#include "local/products/narrow_matrix.hpp"
#include "local/tiles/planes.hpp"

namespace gridlops {

/// Some columns of a few rows of a matrix, or of its high plane. The elements of a column are contiguous,
/// with `stride` elements from one column to the next. All tiles of one product have the same rows. Element
/// is the real type of the kernels, or a type of fewer bits that stands for some of its numbers.
/// Reasons: docs/decisions/0019-tiles.md.
template <class Element>
struct Tile {
  const Element* begin = nullptr;
  Index stride = 0, cols = 0;
};

/// Inner loops of products of tiles with few right-hand sides, for one real type and one instruction set.
/// Tiles have `height` rows. Right-hand sides come in groups; each kernel is for one group width. "Packed"
/// means without gaps: the elements of one row of the group follow each other.
template <class R>
struct TileKernels {
  /// Columns [first, end) of a tile that will soon be needed. A kernel fetches them into the second-level
  /// cache while it computes, a few with each column of its own tile.
  struct Ahead {
    Tile<R> tile;
    Index first = 0, end = 0;
  };

  /// Y ← Y + A X. X is packed, and Y has `height` rows without gaps. Each element of Y is one chain of
  /// multiplications and additions over the columns of A, whatever the width.
  template <class Element>
  using ForwardOf = void(const Tile<Element>& A, const R* X, R* Y, const Ahead& ahead);
  using Forward = ForwardOf<R>;
  /// Z ← Z + Aᵀ Y for a multiple of `unit` columns. Z is packed. Y has runs of some rows, each run column by
  /// column. Every sum consists of as many partial sums as a run has rows.
  using Adjoint = void(const Tile<R>& A, const R* Y, R* Z, const Ahead& ahead);

  /// The numbers of a tile, without gaps.
  template <class Element>
  using Widen = void(const Tile<Element>& A, R* to);
  /// to[i] ← the number whose halves (planes.hpp) are high[i] and low[i].
  using Join = void(Index count, const HighHalf* high, const std::int32_t* low, R* to);

  /// Tiles have a multiple of this many columns, or are filled up with zeros.
  static constexpr Index unit = NarrowMatrix<R>::alignment;
  static constexpr int most_forward = 8;

  /// Kernels by the width of their group, narrowest first.
  struct AdjointTable {
    struct Entry {
      int width = 0, run = 0;
      Adjoint* kernel = nullptr;
    };
    std::array<Entry, 7> entries{};
    std::size_t count = 0;
    constexpr void push_back(const Entry& entry) { entries[count++] = entry; }

    const Entry& of_width(int width) const {
      std::size_t k = 0;
      while (entries[k].width != width) ++k;
      return entries[k];
    }

    /// The first of the groups that take the least time for this many columns, and of these of the fewest.
    int first_width(Index columns) const {
      return columns < static_cast<Index>(first.size()) ? first[static_cast<std::size_t>(columns)]
                                                        : entries[count - 1].width;
    }
    std::array<std::uint8_t, 257> first{};

    /// Chooses groups. Time is counted in columns, for each pass over A at least this number.
    constexpr void choose_groups(int least_time) {
      struct Groups {
        std::size_t time, number, columns;
        constexpr auto operator<=>(const Groups&) const = default;
      };
      std::array<Groups, 257> best{};
      for (std::size_t columns = 1; columns < best.size(); ++columns) {
        for (std::size_t k = 0; k < count; ++k) {
          const auto width = static_cast<std::size_t>(entries[k].width);
          const auto time = static_cast<std::size_t>(std::max(entries[k].width, least_time));
          const Groups& others = best[columns - std::min(columns, width)];
          const Groups groups{others.time + time, others.number + 1, others.columns + width};
          if (k > 0 && groups > best[columns]) continue;
          best[columns] = groups;
          first[columns] = static_cast<std::uint8_t>(width);
        }
      }
    }
  };

  /// forward[w − 1] is for groups of w ≤ widest_forward.
  template <class Element>
  struct Narrow {
    std::array<ForwardOf<Element>*, most_forward> forward{};
    Widen<Element>* widen = nullptr;
  };
  /// Of every type with fewer bits.
  using AllNarrow = std::conditional_t<std::is_same_v<R, double>,
                                       std::tuple<Narrow<HighHalf>, Narrow<float>, Narrow<Bfloat16>>,
                                       std::tuple<Narrow<Bfloat16>>>;

  template <class Element>
  const Narrow<Element>& of() const {
    return std::get<Narrow<Element>>(narrow);
  }

  Index height = 0;
  int widest_forward = 0;
  std::array<Forward*, most_forward> forward{};
  AllNarrow narrow{};
  AdjointTable adjoint;  ///< for 2, 4, … up to the lanes of a register, and some wider groups
  AdjointTable chains;   ///< those of whole registers whose sums are one chain, whatever the width
  Join* join = nullptr;  ///< of doubles
};

}  // namespace gridlops
