// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "gridlops/types.hpp"
#include "local/instruction_set.hpp"

namespace gridlops {

/// Inner loops of products with few columns, for one real type and one instruction set. Columns come in
/// groups of at most max_width; entry w − 1 of a table is for groups of w. Arrays are column-major with a
/// leading dimension, or packed: no gaps, the shorter dimension first. A column's sums, and their order, do
/// not depend on the width.
template <class Real>
struct SkinnyKernels {
  static constexpr int max_width = 6;
  /// The columns of a tile in adjoint.
  static constexpr Index tile_cols = 4;

  /// What a kernel prefetches into the second-level cache, at the speed of memory: the part [begin, end) of
  /// the columns (in adjoint: of the rows) of a block like A.
  struct Ahead {
    const Real* block;
    Index begin, end;
  };

  /// C += A B for A of tiles · tile_rows rows and `count` columns, B packed w × count, and tiles of C one
  /// after the other, each tile_rows × w without gaps.
  using Forward = void(const Real* A, Index lda, Index tiles, Index count, const Real* B, Real* C,
                       const Ahead& ahead);
  /// D += Yᵀ A for A of `rows` rows and tiles · tile_cols (adjoint_column: tiles) columns, Y with w columns
  /// and zeros from row `rows` to the next multiple of 16, and D packed w × columns. Rows of A beyond the
  /// last one are not read.
  using Adjoint = void(const Real* A, Index lda, Index tiles, Index rows, const Real* Y, Index ldy, Real* D,
                       const Ahead& ahead);

  Index tile_rows = 0;
  std::array<Forward*, max_width> forward{};
  std::array<Adjoint*, max_width> adjoint{}, adjoint_column{};
};

/// Inner loops for processors with too few registers for those tiles. They run down four columns of A, which
/// is enough for memory to keep up, with a group's coefficients (forward) or sums (adjoint) in registers.
template <class Real>
struct StripKernels {
  static constexpr int max_width = 4, tile_cols = 4;

  /// What a kernel prefetches into the second-level cache: the same rows of the first `count` of other
  /// columns.
  struct Ahead {
    const Real* columns;
    Index count;
  };

  /// C += A B for A of `rows` rows and tile_cols columns (forward_column: one) and B packed w × columns. C
  /// has room for rows up to the next multiple of 16. Rows of A beyond the last one are not read.
  using Forward = void(const Real* A, Index lda, Index rows, const Real* B, Real* C, Index ldc,
                       const Ahead& ahead);
  /// D += Aᵀ Y for such an A, and Y with w columns and zeros from row `rows` to the next multiple of 16.
  using Adjoint = void(const Real* A, Index lda, Index rows, const Real* Y, Index ldy, Real* D, Index ldd,
                       const Ahead& ahead);

  std::array<Forward*, max_width> forward{}, forward_column{};
  std::array<Adjoint*, max_width> adjoint{}, adjoint_column{};
};

// Each is in a file of its own, which is compiled for that instruction set.
template <class Real>
const SkinnyKernels<Real>& skinny_kernels_baseline();
template <class Real>
const StripKernels<Real>& strip_kernels_avx2();
template <class Real>
const SkinnyKernels<Real>& skinny_kernels_avx512();

}  // namespace gridlops
