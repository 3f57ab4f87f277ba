// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "gridlops/types.hpp"
#include "local/instruction_set.hpp"

namespace gridlops {

/// Inner loops of products with tiles of a strip of `rows` rows, for one real type and one instruction set. A
/// tile has tile_cols columns, two registers wide, and is stored row by row, so that a product along the rows
/// and one across them both work on whole registers, and memory is read in one piece. Right-hand sides come
/// in groups; entry w − 1 of a table is for groups of w, and tables of adjoint kernels are for 1, 2, …
/// strips. A right-hand side's sums, and their order, do not depend on w.
template <class Real>
struct PackedKernels {
  static constexpr Index rows = 8;
  static constexpr int widest_forward = 3, widest_adjoint = 6;
  static constexpr int most_strips = 2;  ///< how many an adjoint kernel takes at once

  /// Successive tiles of one strip, or of several strips that lie below each other: first all tiles of the
  /// first strip.
  struct Tiles {
    const Real* begin = nullptr;
    Index size = 0;  ///< of each strip, in elements
    Index strips = 1;
  };
  /// What products will need soon, of as many strips as a kernel takes at once.
  struct Ahead {
    const Real* begin = nullptr;
    Index size = 0;    ///< of each strip
    Index stride = 0;  ///< from strip to strip
    Ahead part(Index index, Index count) const {
      const Index share = (size + count - 1) / count;
      return {begin + index * share, share, stride};
    }
  };

  // With each tile a kernel prefetches a part of what lies ahead into the second-level cache.

  /// sums += tiles · X, of one strip. X is packed tile_cols × w per tile. Each of the w × rows sums is a
  /// register of partial sums.
  using Forward = void(const Tiles& tiles, const Real* X, Real* sums, Ahead step);
  /// X += tilesᵀ · Y: Y packed w × rows for each strip, X as above.
  using Adjoint = void(const Tiles& tiles, const Real* Y, Index y_stride, Real* X, Ahead step);

  Index tile_cols = 0;
  Index parts() const { return tile_cols / 2; }
  std::array<Forward*, widest_forward> forward{};
  std::array<std::array<Adjoint*, widest_adjoint>, most_strips> adjoint{};
};

// Each is in a file of its own, which is compiled for that instruction set.
template <class Real>
const PackedKernels<Real>& packed_kernels_baseline();
template <class Real>
const PackedKernels<Real>& packed_kernels_avx2();
template <class Real>
const PackedKernels<Real>& packed_kernels_avx512();

template <class Real>
const PackedKernels<Real>& packed_kernels(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return packed_kernels_avx512<Real>();
  if (set == InstructionSet::avx2) return packed_kernels_avx2<Real>();
#endif
  static_cast<void>(set);
  return packed_kernels_baseline<Real>();
}

}  // namespace gridlops
