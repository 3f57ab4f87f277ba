// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "gridlops/types.hpp"
#include "local/instruction_set.hpp"

namespace gridlops {

/// Some columns of a few rows of a matrix. The elements of a column are contiguous, and columns lie `stride`
/// elements apart. All tiles of one product have the same rows.
template <class R>
struct Tile {
  const R* begin = nullptr;
  Index stride = 0, cols = 0;
};

/// Inner loops of products of tiles with few right-hand sides, for one real type and one instruction set.
/// Tiles have `height` rows. Right-hand sides come in groups, whose width a kernel is for. Packed means:
/// without gaps, the elements of a row of the group one after the other.
template <class R>
struct TileKernels {
  /// The columns [first, end) of a tile that will be needed soon. A kernel fetches them into the second-level
  /// cache while it computes, a few with each column of its own tile.
  struct Ahead {
    Tile<R> tile;
    Index first = 0, end = 0;
  };

  /// Y ← Y + A X. X is packed, and Y has `height` rows without gaps. Each element of Y is one chain of
  /// multiplications and additions over the columns of A, whatever the width.
  using Forward = void(const Tile<R>& A, const R* X, R* Y, const Ahead& ahead);
  /// Z ← Z + Aᵀ Y for a multiple of `unit` columns. Z is packed. Y has runs of lanes / width rows, in each
  /// one column after the other. A sum over a run's rows has as many partial sums, so that only groups of the
  /// same width give the same bits.
  using Adjoint = void(const Tile<R>& A, const R* Y, R* Z, const Ahead& ahead);

  /// The columns of tiles are a multiple of this, or filled up with zeros.
  static constexpr Index unit = 64 / sizeof(R);
  static constexpr int most_forward = 8;

  /// Kernels by their width, from the narrowest on.
  struct AdjointTable {
    struct Entry {
      int width = 0;
      Adjoint* kernel = nullptr;
    };
    std::array<Entry, 5> entries{};
    std::size_t count = 0;
    Adjoint* of_width(int width) const {
      std::size_t k = 0;
      while (entries[k].width != width) ++k;
      return entries[k].kernel;
    }
    constexpr void push_back(int width, Adjoint* kernel) { entries[count++] = {width, kernel}; }
  };

  Index height = 0;
  int lanes = 0;           ///< of a register
  int widest_forward = 0;  ///< forward[w − 1] is for groups of w ≤ widest_forward
  std::array<Forward*, most_forward> forward{};
  AdjointTable adjoint;  ///< for 2, 4, … up to the lanes of a register, and some multiples of these
};

// Each is in a file of its own, which is compiled for that instruction set.
template <class R>
const TileKernels<R>& tile_kernels_baseline();
template <class R>
const TileKernels<R>& tile_kernels_avx2();
template <class R>
const TileKernels<R>& tile_kernels_avx512();

template <class R>
const TileKernels<R>& tile_kernels(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return tile_kernels_avx512<R>();
  if (set == InstructionSet::avx2) return tile_kernels_avx2<R>();
#endif
  static_cast<void>(set);
  return tile_kernels_baseline<R>();
}

}  // namespace gridlops
