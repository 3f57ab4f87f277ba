// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gridlops/linear_operator.hpp"

namespace gridlops {

/// A grid row or column: its communicator, and its ranks as ranks of the grid.
struct GridLine {
  Communicator* comm = nullptr;
  std::vector<int> ranks;
  std::size_t mine = 0;
};
GridLine my_grid_row(const ProcessGrid& grid);
GridLine my_grid_col(const ProcessGrid& grid);

/// Whether products on a grid can read blocks of other ranks: its transport is "shared" or "one-sided".
bool can_read_peers(const ProcessGrid& grid);

/// A part of some rank's block, there when its request is complete.
template <Scalar T>
struct PeerPart {
  MatrixView<const T> block;
  Request arrival;
};

/// What products need that read blocks of other ranks without those taking part: of the matrix, if there is
/// one, and of operands. One per operator. An application is
///
///   begin()             collective over the grid
///   show(line, mine)    begins a round, in which the ranks of a grid line read what they show each other
///   start_reading()     parts of that; start_reading_A() parts of the matrix, in any round
///   done_reading()      in this round; another one may follow
///   end()               from here on the operands may change
template <Scalar T>
class PeerBlocks {
 public:
  virtual ~PeerBlocks() = default;
  PeerBlocks(const PeerBlocks&) = delete;
  PeerBlocks& operator=(const PeerBlocks&) = delete;

  const ProcessGrid& grid() const { return *grid_; }
  int rank_at(int row, int col) const { return row * grid().cols() + col; }
  MatrixView<const T> local_A() const { return A_->local(); }

  /// Whether parts are read where they are, so that nothing is won by reading them ahead of their use.
  virtual bool in_place() const = 0;
  /// Memory that show() need not copy, until the next call.
  virtual MatrixView<T> showable(Index rows, Index cols) = 0;

  void begin();
  void show(GridLine line, MatrixView<const T> mine);
  virtual void done_reading() = 0;
  virtual void end() = 0;

  /// Columns of the block of A that a rank of the grid holds, counted from its first; `memory` is for parts
  /// that travel.
  PeerPart<T> start_reading_A(int rank, Range cols, Buffer<T>& memory);
  /// Rows of what the k-th rank of the line shows, which has as many columns as what this rank does.
  PeerPart<T> start_reading(std::size_t k, Range rows, Buffer<T>& memory);

 protected:
  PeerBlocks(std::shared_ptr<const ProcessGrid> grid, std::optional<DistMatrix<T>> A)
      : grid_(std::move(grid)), A_(std::move(A)) {}

  const std::shared_ptr<Backend>& backend() const { return grid_->backend(); }
  const Kernels<T>& kernels() const { return backend()->template kernels<T>(); }
  int me() const { return grid().comm().rank(); }
  const DistMatrix<T>& A() const { return *A_; }
  const GridLine& line() const { return line_; }
  Index shown_cols() const { return mine_.cols; }

 private:
  virtual void do_begin() = 0;
  virtual void share_A() = 0;
  virtual void do_show(MatrixView<const T> mine) = 0;
  virtual PeerPart<T> read_A(int rank, Range cols, Buffer<T>& memory) = 0;
  virtual PeerPart<T> read(std::size_t k, Range rows, Buffer<T>& memory) = 0;

  std::shared_ptr<const ProcessGrid> grid_;
  const std::optional<DistMatrix<T>> A_;
  bool has_begun_ = false;
  GridLine line_;
  MatrixView<const T> mine_;
};

/// For the grid's transport. Nothing is sent before the first application.
template <Scalar T>
std::unique_ptr<PeerBlocks<T>> make_peer_blocks(std::shared_ptr<const ProcessGrid> grid,
                                                std::optional<DistMatrix<T>> A);

template <Scalar T>
std::unique_ptr<PeerBlocks<T>> make_peer_blocks(DistMatrix<T> A) {
  std::shared_ptr<const ProcessGrid> grid = A.grid();
  return make_peer_blocks<T>(std::move(grid), std::move(A));
}

// The two kinds: memory that ranks of one machine map, and windows of MPI.
template <Scalar T>
std::unique_ptr<PeerBlocks<T>> make_shared_blocks(std::shared_ptr<const ProcessGrid> grid,
                                                  std::optional<DistMatrix<T>> A);
template <Scalar T>
std::unique_ptr<PeerBlocks<T>> make_window_blocks(std::shared_ptr<const ProcessGrid> grid,
                                                  std::optional<DistMatrix<T>> A);

}  // namespace gridlops
