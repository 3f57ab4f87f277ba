// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include "comm/peer_board.hpp"
#include "gridlops/linear_operator.hpp"

namespace gridlops {

/// What products on a grid need whose ranks share memory: the blocks of A of all ranks, and rounds in which
/// ranks show each other blocks of operands.
template <Scalar T>
class SharedBlocks {
 public:
  /// The grid's backend must share its memory. Nothing is sent before the first use.
  explicit SharedBlocks(DistMatrix<T> A);

  const ProcessGrid& grid() const { return *A_.grid(); }
  const DistMatrix<T>& A() const { return A_; }
  int rank_at(int row, int col) const { return row * grid().cols() + col; }

  /// Collective over the grid at its first call, where all learn where A lies.
  PeerBoard& board();
  /// The block of A at (row, col) of the grid.
  MatrixView<const T> A_block(int row, int col) const {
    return A_blocks_[static_cast<std::size_t>(rank_at(row, col))];
  }

  /// X, or a copy of it where X itself cannot be shared.
  MatrixView<const T> shareable(MatrixView<const T> X);
  /// Memory that can be shared.
  MatrixView<T> scratch(Buffer<T>& memory, Index rows, Index cols) const;

  /// Enters what is read of a block of another rank.
  void count(int rank, Index elements) const {
    if (rank != grid().comm().rank())
      grid().comm().count_read_from_peers(elements * static_cast<Index>(sizeof(T)));
  }

 private:
  bool is_shared(MatrixView<const T> X) const;

  DistMatrix<T> A_;
  Buffer<T> A_copy_, X_copy_;
  std::optional<PeerBoard> board_;
  std::vector<MatrixView<const T>> A_blocks_;  // by rank
};

}  // namespace gridlops
