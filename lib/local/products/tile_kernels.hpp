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
  /// Z ← Z + Aᵀ Y for a multiple of `unit` columns. Z is packed. Y has runs of lanes / width rows, each run
  /// column by column. A group narrower than a register has partial sums, each of every (lanes / width)-th
  /// row; in wider groups each sum is one chain, whatever the width.
  using Adjoint = void(const Tile<R>& A, const R* Y, R* Z, const Ahead& ahead);

  /// Tiles have a multiple of this many columns, or are filled up with zeros.
  static constexpr Index unit = 64 / sizeof(R);
  static constexpr int most_forward = 8;

  /// Kernels by their width, narrowest first.
  struct AdjointTable {
    struct Entry {
      int width = 0;
      Adjoint* kernel = nullptr;
    };
    std::array<Entry, 6> entries{};
    std::size_t count = 0;
    /// Null if there is none.
    Adjoint* of_width(int width) const {
      for (const Entry& entry : entries)
        if (entry.width == width) return entry.kernel;
      return nullptr;
    }
    constexpr void push_back(int width, Adjoint* kernel) { entries[count++] = {width, kernel}; }
  };

  Index height = 0;
  int lanes = 0;           ///< of a register
  int widest_forward = 0;  ///< forward[w − 1] is for groups of w ≤ widest_forward
  std::array<Forward*, most_forward> forward{};
  AdjointTable adjoint;  ///< for 2, 4, … up to the lanes of a register, and some multiples of these
};

}  // namespace gridlops
