// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

/// The order in which the ranks of a communicator fill a process grid, as Cblacs_gridinit() is told: "Row" or
/// "Column".
enum class RankOrder { row_major, column_major };

/// How a matrix of ScaLAPACK lies on the first P·Q ranks of a communicator: the grid that they form, and the
/// array descriptor (ScaLAPACK Users' Guide, 1997, table 4.5). Rows are cut into blocks of row_block, the
/// last one perhaps shorter, and block k is on grid row (first_row + k) mod P. Columns likewise. A rank has
/// its rows and columns in their order, as one column-major block. A value.
struct GRIDLOPS_EXPORT BlockCyclic {
  GridShape grid = {};  ///< P × Q; it need not be that of a ProcessGrid
  RankOrder order = RankOrder::row_major;
  Index type = 1;                      ///< DTYPE_; 1 is a dense matrix, and nothing else is taken
  Index rows = 0, cols = 0;            ///< M_, N_
  Index row_block = 1, col_block = 1;  ///< MB_, NB_
  Index first_row = 0, first_col = 0;  ///< RSRC_, CSRC_
  Index stride = 1;                    ///< LLD_: the leading dimension, which may differ between ranks

  /// From the nine integers of a descriptor, of 32 or 64 bits. A BLACS context cannot tell its grid to others
  /// than the BLACS, so the caller says which it is.
  template <std::signed_integral Int>
  static BlockCyclic of_descriptor(const Int* desc, GridShape grid, RankOrder order = RankOrder::row_major) {
    return {grid, order, desc[0], desc[2], desc[3], desc[4], desc[5], desc[6], desc[7], desc[8]};
  }

  /// The rows and columns that a rank of the communicator has, as NUMROC counts them; 0 beyond the grid. The
  /// fields must be as from_block_cyclic() takes them.
  Index local_rows(int rank) const;
  Index local_cols(int rank) const;

  friend bool operator==(const BlockCyclic&, const BlockCyclic&) = default;
};

/// X ← the matrix that lies block-cyclically; all copies of X get it (collective over comm).
///
/// X's ProcessGrid was made from comm, so that both begin with the same ranks. The other ranks call, too:
/// they may have a block of the block-cyclic matrix, or nothing. `local` points to this rank's block in the
/// memory of the grid's backend, with from.stride elements from one column to the next, and is not used where
/// the block is empty.
///
/// Rank 0 says how the matrix lies. The other ranks with a place in the block-cyclic grid must say the same
/// but for the stride; the rest may pass anything, as DESCINIT leaves it there.
///
/// One all_to_all_v moves the elements, as one message between two ranks, after rank 0 has told the others
/// and all have agreed. For that time a rank has memory for what it sends and what it receives, packed: as
/// much as its two blocks together, and into a layout with copies its block-cyclic block once for each copy.
///
/// Throws, on all ranks and before an element moves: UsageError if the description is impossible (a negative
/// size, a block without elements, a first row or column outside the grid, a grid of more ranks than comm, a
/// type that is not dense, a stride below the local rows, null), if ranks disagree, or if the ProcessGrid
/// does not have comm's first ranks; ShapeError if X has another shape; OutOfMemory if a rank has not enough.
template <Scalar T>
GRIDLOPS_EXPORT void from_block_cyclic(Communicator& comm, const BlockCyclic& from, const T* local,
                                       DistMatrix<T>& X);

/// The matrix that lies block-cyclically ← X, in the same way; memory between its columns stays as it is.
template <Scalar T>
GRIDLOPS_EXPORT void to_block_cyclic(Communicator& comm, const ConstDistMatrix<T>& X, const BlockCyclic& to,
                                     T* local);

}  // namespace gridlops
