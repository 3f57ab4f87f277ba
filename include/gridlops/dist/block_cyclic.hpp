// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

/// The order in which the ranks of a communicator fill a process grid: "Row" or "Column" of
/// Cblacs_gridinit().
enum class RankOrder { row_major, column_major };

/// How a ScaLAPACK matrix is distributed over the first P·Q ranks of a communicator: the grid that they form,
/// and the array descriptor (ScaLAPACK Users' Guide, 1997, table 4.5). Rows are cut into blocks of row_block,
/// of which the last may be shorter; block k is on grid row (first_row + k) mod P. Columns likewise. A rank
/// holds its rows and columns in ascending order, as one column-major block. A value. Reasons:
/// docs/decisions/0034-block-cyclic.md.
struct GRIDLOPS_EXPORT BlockCyclic {
  GridShape grid = {};  ///< P × Q; need not be that of a ProcessGrid
  RankOrder order = RankOrder::row_major;
  Index type = 1;                      ///< DTYPE_; must be 1, a dense matrix
  Index rows = 0, cols = 0;            ///< M_, N_
  Index row_block = 1, col_block = 1;  ///< MB_, NB_
  Index first_row = 0, first_col = 0;  ///< RSRC_, CSRC_
  Index stride = 1;                    ///< LLD_: the leading dimension, which may differ between ranks

  /// From the nine integers of a descriptor, of 32 or 64 bits. Only the BLACS can find the grid of a BLACS
  /// context, so the caller passes it.
  template <std::signed_integral Int>
  static BlockCyclic of_descriptor(const Int* desc, GridShape grid, RankOrder order = RankOrder::row_major) {
    return {grid, order, desc[0], desc[2], desc[3], desc[4], desc[5], desc[6], desc[7], desc[8]};
  }

  /// The number of rows and columns on a rank of the communicator, as NUMROC counts them; 0 beyond the grid.
  /// The fields must be valid for from_block_cyclic().
  Index local_rows(int rank) const;
  Index local_cols(int rank) const;

  friend bool operator==(const BlockCyclic&, const BlockCyclic&) = default;
};

/// X ← the block-cyclic matrix; all copies of X get it (collective over comm).
///
/// X's ProcessGrid must have been made from comm, so that both begin with the same ranks. The other ranks of
/// comm call, too: they may hold a block of the block-cyclic matrix, or nothing. `local` points to this
/// rank's block in the memory of the grid's backend, with from.stride elements from one column to the next.
/// It is not used if the block is empty.
///
/// Rank 0's description holds. The other ranks with a place in the block-cyclic grid must pass the same,
/// apart from the stride; the rest may pass anything, since DESCINIT leaves their descriptors unset.
///
/// Rank 0 tells the others, all agree, and then one all_to_all_v moves the elements, as one message between
/// two ranks. Meanwhile a rank holds what it sends and what it receives, packed, in extra memory: as much as
/// its two blocks together. If the layout has copies, its block-cyclic block counts once for each copy.
///
/// Throws, on all ranks and before any element moves: UsageError if the description is impossible (a negative
/// size, a block without elements, a first row or column outside the grid, a grid with more ranks than comm,
/// a type that is not dense, a stride below the local rows, null), if ranks disagree, or if the ProcessGrid
/// does not have comm's first ranks; ShapeError if X has another shape; OutOfMemory if any rank lacks memory.
template <Scalar T>
GRIDLOPS_EXPORT void from_block_cyclic(Communicator& comm, const BlockCyclic& from, const T* local,
                                       DistMatrix<T>& X);

/// The block-cyclic matrix ← X, in the same way. Memory between its columns is left untouched.
template <Scalar T>
GRIDLOPS_EXPORT void to_block_cyclic(Communicator& comm, const ConstDistMatrix<T>& X, const BlockCyclic& to,
                                     T* local);

}  // namespace gridlops
