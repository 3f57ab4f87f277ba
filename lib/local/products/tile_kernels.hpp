// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// Some columns of a few rows of a matrix. The elements of a column are contiguous, with `stride` elements
/// from one column to the next. All tiles of one product have the same rows.
template <class R>
struct Tile {
  const R* begin = nullptr;
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
  using Forward = void(const Tile<R>& A, const R* X, R* Y, const Ahead& ahead);
  /// Z ← Z + Aᵀ Y for a multiple of `unit` columns. Z is packed. Y has runs of some rows, each run column by
  /// column. Every sum consists of as many partial sums as a run has rows.
  using Adjoint = void(const Tile<R>& A, const R* Y, R* Z, const Ahead& ahead);

  /// Tiles have a multiple of this many columns, or are filled up with zeros.
  static constexpr Index unit = 64 / sizeof(R);
  static constexpr int most_forward = 8;

  /// Kernels by the width of their group, narrowest first.
  struct AdjointTable {
    struct Entry {
      int width = 0, run = 0;
      Adjoint* kernel = nullptr;
    };
    std::array<Entry, 7> entries{};
    std::size_t count = 0;
    /// The narrowest for at least this many columns, or the widest.
    constexpr const Entry& that_holds(Index columns) const {
      std::size_t k = 0;
      while (k + 1 < count && entries[k].width < columns) ++k;
      return entries[k];
    }
    constexpr void push_back(const Entry& entry) { entries[count++] = entry; }
  };

  Index height = 0;
  int widest_forward = 0;  ///< forward[w − 1] is for groups of w ≤ widest_forward
  std::array<Forward*, most_forward> forward{};
  int least_time = 0;    ///< of a pass over A in the adjoint, in columns
  AdjointTable adjoint;  ///< for 2, 4, … up to the lanes of a register, and some wider groups
  AdjointTable chains;   ///< those of whole registers whose sums are one chain, whatever the width
};

}  // namespace gridlops
