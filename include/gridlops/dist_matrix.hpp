// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "gridlops/buffer.hpp"
#include "gridlops/export.hpp"
#include "gridlops/layout.hpp"
#include "gridlops/matrix_view.hpp"
#include "gridlops/process_grid.hpp"

namespace gridlops {

/// A matrix that lies on a process grid as its layout says: each rank holds one column-major block in the
/// memory of the grid's backend, owned, or the caller's. Move-only. Idle ranks hold a block of 0 × 0.
template <Scalar T>
class GRIDLOPS_EXPORT DistMatrix {
 public:
  /// Owns its block, uninitialised. Not collective: the layout must be the same on all ranks, and throws
  /// ShapeError on all if it does not fit the grid. OutOfMemory is this rank's alone (see succeed_together).
  DistMatrix(std::shared_ptr<const ProcessGrid> grid, Layout layout);

  /// Uses the caller's block, which must outlive it: any stride ≥ rows, so also a part of something larger.
  /// The block must have the shape that the layout gives this rank.
  DistMatrix(std::shared_ptr<const ProcessGrid> grid, Layout layout, MatrixView<T> local);

  const std::shared_ptr<const ProcessGrid>& grid() const { return grid_; }
  const Layout& layout() const { return layout_; }
  Index rows() const { return layout_.row_count(); }
  Index cols() const { return layout_.col_count(); }

  MatrixView<T> local() { return local_; }
  MatrixView<const T> local() const { return local_; }
  /// The global rows and columns of this rank's block.
  Range local_row_range() const { return row_range_; }
  Range local_col_range() const { return col_range_; }
  /// Whether this rank's block counts in dots, gathers and writes: it is no copy, or the first of the copies.
  bool owned() const { return owned_; }

  /// Element (i, j) ← value(i, j), global indices: the same matrix on every grid. Not collective.
  void fill(const std::function<T(Index i, Index j)>& value);
  void set_zero();

  /// The first columns of this rank's block are needed no more: if it owns the block, their memory goes back
  /// to the system as far as the backend can do that. Not collective.
  void discard_local_columns(Index count);

  /// Columns [first[k], first[k] + part_sizes.size(k)) of every part k of the column partition, as a matrix
  /// of its own that uses this one's memory: part k keeps its ranks. Not collective.
  DistMatrix column_slice(const std::vector<Index>& first, const Partition& part_sizes);
  const DistMatrix column_slice(const std::vector<Index>& first, const Partition& part_sizes) const;

  /// The same elements in memory of its own.
  DistMatrix clone() const;

 private:
  void place();

  std::shared_ptr<const ProcessGrid> grid_;
  Layout layout_;
  Range row_range_, col_range_;
  bool owned_ = false;
  Buffer<T> memory_;
  MatrixView<T> local_;
};

/// xⱼᴴ yⱼ for each column j, on every rank (collective over the grid; one all_reduce). Same layouts, or
/// ShapeError.
template <Scalar T>
GRIDLOPS_EXPORT std::vector<Accumulator<T>> column_dots(const DistMatrix<T>& X, const DistMatrix<T>& Y);

/// ‖xⱼ‖₂ for each column, on every rank (collective over the grid; one all_reduce).
template <Scalar T>
GRIDLOPS_EXPORT std::vector<double> column_norms(const DistMatrix<T>& X);

/// Y ← Y + X diag(alpha); alpha has one entry per global column. Not collective.
template <Scalar T>
GRIDLOPS_EXPORT void column_axpy(const std::vector<T>& alpha, const DistMatrix<T>& X, DistMatrix<T>& Y);

/// X ← X diag(alpha). Not collective.
template <Scalar T>
GRIDLOPS_EXPORT void column_scale(const std::vector<T>& alpha, DistMatrix<T>& X);

/// Y ← X, same layouts. Not collective.
template <Scalar T>
GRIDLOPS_EXPORT void copy(const DistMatrix<T>& X, DistMatrix<T>& Y);

}  // namespace gridlops
