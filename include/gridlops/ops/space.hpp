// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/dist/dims.hpp"
#include "gridlops/dist/layout.hpp"

namespace gridlops {

template <class T>
class Buffer;
template <Scalar T>
class ConstDistMatrix;
template <Scalar T>
class DistMatrix;

/// Where the models or the data of an operator live: matrices with a fixed number of rows, cut in a fixed
/// way, and any number of columns (right-hand sides), cut along a fixed axis at any places. Where the rows
/// are the elements of an array, the dims say how they are ordered. A value.
struct GRIDLOPS_EXPORT Space {
  std::shared_ptr<const ProcessGrid> grid;
  Cut rows;
  Axis columns = Axis::uncut;
  Dims dims{};  ///< with a block for each part of the rows; none: the rows are no array

  Index dimension() const { return rows.partition.total(); }
  /// The rows and columns of a matrix that this rank, a member of the grid, holds.
  Index local_rows() const { return rows.partition.size(grid->my_part(rows.axis)); }
  Index local_columns(const Partition& cols) const { return cols.size(grid->my_part(columns)); }
  /// The layout of a matrix with nrhs columns, balanced over the axis; or with columns that are cut as given.
  Layout layout(Index nrhs) const;
  Layout layout(const Partition& cols) const { return {rows, {columns, cols}}; }
  /// A matrix whose block on this rank, a member of the grid, lies in memory that has room for it.
  template <Scalar T>
  DistMatrix<T> matrix(const Partition& cols, const Buffer<T>& memory) const {
    return DistMatrix<T>(grid, layout(cols), memory.matrix(local_rows(), local_columns(cols)));
  }

  template <Scalar T>
  bool contains(const ConstDistMatrix<T>& X) const {
    return X.grid() == grid && X.layout().rows == rows && X.layout().cols.axis == columns;
  }
  /// Throws ShapeError unless it contains X, which the text calls `name`.
  template <Scalar T>
  void require_contains(const ConstDistMatrix<T>& X, std::string_view name) const;
  /// A short text for messages.
  std::string describe() const;
  /// Says of two spaces that should be the same what they are, and whether identity() leads from one to the
  /// other.
  std::string describe_with(const Space& other) const;
  /// The box that this rank, a member of the grid, holds of an array.
  Box local_box() const { return dims.block(grid->my_part(rows.axis)); }

  /// Whether the matrices of both have the same elements at the same places; what the dimensions of an array
  /// are does not matter beyond that.
  friend bool operator==(const Space& a, const Space& b) {
    return a.grid == b.grid && a.rows == b.rows && a.columns == b.columns && a.dims.ordered_as(b.dims);
  }
};

/// The space of arrays with these dims, whose blocks are the parts of the rows along the axis. Throws
/// ShapeError if there are not as many blocks as parts.
GRIDLOPS_EXPORT Space array_space(std::shared_ptr<const ProcessGrid> grid, Dims dims, Axis rows,
                                  Axis columns = Axis::uncut);
/// The space of arrays of these sizes, cut along one dimension, balanced.
GRIDLOPS_EXPORT Space array_space(std::shared_ptr<const ProcessGrid> grid, const std::vector<Index>& sizes,
                                  int cut, Axis rows = Axis::all, Axis columns = Axis::uncut);

/// The space of the same vectors with their rows along another axis, balanced: of an array of the same
/// dimensions, cut along the slowest one that was cut. identity() between the two redistributes.
GRIDLOPS_EXPORT Space moved_to(Axis rows, const Space& space);

}  // namespace gridlops
