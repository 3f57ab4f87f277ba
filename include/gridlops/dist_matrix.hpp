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

template <Scalar T>
class DistMatrix;

/// A matrix on a process grid that may only be read: its layout says which column-major block each rank has.
/// A view: the block is that of a DistMatrix or of the caller, and must outlive it; copies view the same
/// block. Functions that read a matrix take this, so they accept a DistMatrix and slices of either kind.
template <Scalar T>
class GRIDLOPS_EXPORT ConstDistMatrix {
 public:
  /// On no grid and without elements, until another is assigned: only rows(), cols(), layout() and local()
  /// may be asked.
  ConstDistMatrix() = default;

  /// Views the caller's block, in the memory of the grid's backend, with any stride ≥ rows. Not collective.
  /// Throws ShapeError: on all ranks if the layout, which must be the same on all, does not fit the grid; on
  /// this rank if the block has not the shape that the layout gives it.
  ConstDistMatrix(std::shared_ptr<const ProcessGrid> grid, Layout layout, MatrixView<const T> local);

  const std::shared_ptr<const ProcessGrid>& grid() const { return grid_; }
  const Layout& layout() const { return layout_; }
  Index rows() const { return layout_.row_count(); }
  Index cols() const { return layout_.col_count(); }

  /// This rank's block; 0 × 0 on idle ranks.
  MatrixView<const T> local() const { return local_; }
  /// The global rows and columns of this rank's block.
  Range local_row_range() const { return row_range_; }
  Range local_col_range() const { return col_range_; }
  /// Whether this rank's block counts in dots, gathers and writes: it is no copy, or the first of the copies.
  bool owned() const { return owned_; }

  /// Columns [first[k], first[k] + part_sizes.size(k)) of every part k of the column partition, as a matrix
  /// in the same memory: part k keeps its ranks. Not collective. Throws ShapeError, on all ranks, if a part
  /// has no such columns.
  ConstDistMatrix column_slice(const std::vector<Index>& first, const Partition& part_sizes) const;

  /// The same elements in memory of their own. Not collective; OutOfMemory is this rank's alone.
  DistMatrix<T> clone() const;

 protected:
  /// Without a block, which attach() then gives.
  ConstDistMatrix(std::shared_ptr<const ProcessGrid> grid, Layout layout);
  void attach(MatrixView<const T> local) { local_ = local; }

  /// What column_slice() takes: the layout, and the columns of this rank's block.
  struct ColumnSlice {
    Layout layout;
    Range local_columns;
  };
  ColumnSlice find_columns(const std::vector<Index>& first, const Partition& part_sizes) const;

 private:
  std::shared_ptr<const ProcessGrid> grid_;
  Layout layout_;
  Range row_range_, col_range_;
  bool owned_ = false;
  MatrixView<const T> local_;
};

/// A matrix on a process grid. It owns its blocks, in the memory of the grid's backend, or uses the caller's.
/// Move-only.
template <Scalar T>
class GRIDLOPS_EXPORT DistMatrix : public ConstDistMatrix<T> {
 public:
  DistMatrix() = default;

  /// Owns its block, uninitialised. Not collective: the layout must be the same on all ranks. Throws
  /// ShapeError on all if it does not fit the grid. OutOfMemory is this rank's alone (see succeed_together).
  DistMatrix(std::shared_ptr<const ProcessGrid> grid, Layout layout);

  /// Uses the caller's block, as ConstDistMatrix does.
  DistMatrix(std::shared_ptr<const ProcessGrid> grid, Layout layout, MatrixView<T> local);

  using ConstDistMatrix<T>::local;
  MatrixView<T> local() { return local_; }

  /// Element (i, j) ← value(i, j), global indices: the same matrix on every grid. Not collective.
  void fill(const std::function<T(Index i, Index j)>& value);
  void set_zero();

  /// The first columns of this rank's block are needed no more: if it owns the block, their memory goes back
  /// to the system as far as the backend can do that. Not collective.
  void discard_local_columns(Index count);

  using ConstDistMatrix<T>::column_slice;
  DistMatrix column_slice(const std::vector<Index>& first, const Partition& part_sizes);

 private:
  Buffer<T> memory_;
  MatrixView<T> local_;
};

/// xⱼᴴ yⱼ for each column j, on every rank (collective over the grid; one all_reduce). Same layouts, or
/// ShapeError.
template <Scalar T>
GRIDLOPS_EXPORT std::vector<Accumulator<T>> column_dots(const ConstDistMatrix<T>& X,
                                                        const ConstDistMatrix<T>& Y);

/// ‖xⱼ‖₂ for each column, on every rank (collective over the grid; one all_reduce).
template <Scalar T>
GRIDLOPS_EXPORT std::vector<double> column_norms(const ConstDistMatrix<T>& X);

/// Y ← Y + X diag(alpha); alpha has one entry per global column. Not collective.
template <Scalar T>
GRIDLOPS_EXPORT void column_axpy(const std::vector<T>& alpha, const ConstDistMatrix<T>& X, DistMatrix<T>& Y);

/// X ← X diag(alpha). Not collective.
template <Scalar T>
GRIDLOPS_EXPORT void column_scale(const std::vector<T>& alpha, DistMatrix<T>& X);

/// Y ← X, same layouts. Not collective.
template <Scalar T>
GRIDLOPS_EXPORT void copy(const ConstDistMatrix<T>& X, DistMatrix<T>& Y);

}  // namespace gridlops
