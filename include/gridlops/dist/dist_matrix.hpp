// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/dist/layout.hpp"
#include "gridlops/local/buffer.hpp"
#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

template <Scalar T>
class DistMatrix;

/// Returns a matrix whose block has a size, but no memory (not collective). An operator made of it says, with
/// LinearOperator::kept_bytes() and scratch_bytes(), what it would take if it owned the matrix, and must not
/// multiply.
template <Scalar T>
GRIDLOPS_EXPORT DistMatrix<T> planned_matrix(std::shared_ptr<const ProcessGrid> grid, Layout layout);

/// A read-only view of a matrix on a process grid. The layout says which column-major block each rank holds.
/// The block belongs to a DistMatrix or to the caller, and must outlive the view; copies view the same block.
/// Functions that read a matrix take this type, so they accept a DistMatrix, and slices of either type.
/// Reasons: docs/decisions/0017-read-only-matrices.md.
template <Scalar T>
class GRIDLOPS_EXPORT ConstDistMatrix {
 public:
  /// Has no grid and no elements. Until you assign another matrix, call only grid(), layout(), rows(), cols()
  /// and local().
  ConstDistMatrix() = default;

  /// Views the caller's block, in the memory of the grid's backend, with any stride ≥ rows. Not collective.
  /// The layout must be the same on all ranks. Throws ShapeError: on all ranks if the layout does not fit the
  /// grid; on this rank if the block does not have the shape that the layout gives it.
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
  /// Whether this rank is the canonical owner of its block, whose copy counts in dot products, gathers and
  /// writes.
  bool owned() const { return owned_; }

  /// Columns [first[k], first[k] + part_sizes.size(k)) of every part k of the column partition, as a matrix
  /// in the same memory; each part stays on its ranks. Not collective. Throws ShapeError, on all ranks, if a
  /// part has no such columns.
  ConstDistMatrix column_slice(const std::vector<Index>& first, const Partition& part_sizes) const;

  /// Returns a matrix with the same elements in its own memory. Not collective. Throws OutOfMemory on this
  /// rank alone.
  DistMatrix<T> clone() const;

 protected:
  /// A view that has no block until attach() gives it one.
  ConstDistMatrix(std::shared_ptr<const ProcessGrid> grid, Layout layout);
  void attach(MatrixView<const T> local) { local_ = local; }

  /// The arguments of column_slice(): the layout, and the columns of this rank's block.
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

  /// Owns its block, uninitialised. Not collective. The layout must be the same on all ranks. Throws
  /// ShapeError, on all ranks, if the layout does not fit the grid. Throws OutOfMemory on this rank alone, so
  /// most programs call allocate_matrix() instead.
  DistMatrix(std::shared_ptr<const ProcessGrid> grid, Layout layout);

  /// Uses the caller's block, under the same conditions as a ConstDistMatrix.
  DistMatrix(std::shared_ptr<const ProcessGrid> grid, Layout layout, MatrixView<T> local);

  using ConstDistMatrix<T>::local;
  MatrixView<T> local() { return local_; }
  /// Whether it uses the caller's blocks; the same on all ranks. A planned_matrix() does not.
  bool is_callers() const { return is_callers_; }

  /// Element (i, j) ← value(i, j), with global indices, so that the matrix is the same on every grid. Not
  /// collective.
  void fill(const std::function<T(Index i, Index j)>& value);
  /// Every element ← 0. Not collective.
  void set_zero();

  /// Says that the first columns of this rank's block are no longer needed. If this matrix owns the block,
  /// the backend returns as much of their memory to the system as it can. Not collective.
  void discard_local_columns(Index count);

  using ConstDistMatrix<T>::column_slice;
  DistMatrix column_slice(const std::vector<Index>& first, const Partition& part_sizes);

 private:
  friend DistMatrix planned_matrix<T>(std::shared_ptr<const ProcessGrid> grid, Layout layout);

  Buffer<T> memory_;
  MatrixView<T> local_;
  bool is_callers_ = false;
};

/// Returns a matrix that owns its block, uninitialised (collective over the grid; idle ranks return at once).
/// If the constructor throws on any rank, all ranks throw (see attempt()): OutOfMemory, or ShapeError if the
/// layout does not fit the grid.
template <Scalar T>
GRIDLOPS_EXPORT DistMatrix<T> allocate_matrix(std::shared_ptr<const ProcessGrid> grid, Layout layout);

/// Throws ShapeError, on all ranks, unless X and Y are on the same grid and have the same layout. The message
/// begins with the name of the operation.
template <Scalar T>
GRIDLOPS_EXPORT void require_same_layout(const ConstDistMatrix<T>& X, const ConstDistMatrix<T>& Y,
                                         std::string_view operation);

/// Returns xⱼᴴ yⱼ for each column j on every rank (collective over the grid; one all_reduce). Throws
/// ShapeError, on all ranks, unless the layouts are the same.
template <Scalar T>
GRIDLOPS_EXPORT std::vector<Accumulator<T>> column_dots(const ConstDistMatrix<T>& X,
                                                        const ConstDistMatrix<T>& Y);

/// Returns ‖xⱼ‖ₚ = (Σᵢ |xᵢⱼ|ᵖ)^(1/p) of order p ≥ 0 for each column on every rank (collective over the grid;
/// one all_reduce). Order 0 counts the elements that are not 0; infinite order gives the largest |xᵢⱼ|. A NaN
/// counts as one element in order 0; in any other order the norm is NaN. Powers are summed as double, and may
/// overflow or underflow. Order 2 is safe from that: if squares overflow or underflow, it makes three more
/// reductions, and takes memory for a copy of X (OutOfMemory on all ranks). Throws UsageError, on all ranks,
/// if p is negative or NaN.
template <Scalar T>
GRIDLOPS_EXPORT std::vector<double> column_norms(const ConstDistMatrix<T>& X, double order = 2);

/// Returns ‖X‖_F, like column_norms() of order 2.
template <Scalar T>
GRIDLOPS_EXPORT double frobenius_norm(const ConstDistMatrix<T>& X);

/// An element that is NaN or infinite.
struct NonFiniteElement {
  Index row = 0, col = 0;  ///< global, from 0
  int rank = 0;            ///< a rank of the grid's communicator that has the element
  std::complex<double> value;
};

/// Finds the first element of X, column by column, that is NaN or infinite (collective over the grid).
/// Returns the same on all members; nothing if all elements are finite, and on idle ranks. Reads X once, and
/// sends a few numbers. Throws OutOfMemory on all ranks.
template <Scalar T>
GRIDLOPS_EXPORT std::optional<NonFiniteElement> find_non_finite(const ConstDistMatrix<T>& X);

/// Y ← X. Not collective. Throws ShapeError, on all ranks, unless the layouts are the same.
template <Scalar T>
GRIDLOPS_EXPORT void copy(const ConstDistMatrix<T>& X, DistMatrix<T>& Y);

}  // namespace gridlops
