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

/// The space of an operator's models or data: matrices with a fixed number of rows, cut in a fixed way, and
/// any number of columns (right-hand sides), cut along a fixed axis at any places. If the rows are the
/// elements of an array, the dims give their order. A value type.
struct GRIDLOPS_EXPORT Space {
  std::shared_ptr<const ProcessGrid> grid;
  Cut rows;
  Axis columns = Axis::uncut;
  Dims dims{};  ///< with a block for each part of the rows; none: the rows are not an array

  Index dimension() const { return rows.partition.total(); }
  /// The rows and columns of a matrix that this rank holds. The rank must be a member of the grid.
  Index local_rows() const { return rows.partition.size(grid->my_part(rows.axis)); }
  Index local_columns(const Partition& cols) const { return cols.size(grid->my_part(columns)); }
  /// The layout of a matrix with nrhs columns, balanced over the axis, or with the given column partition.
  Layout layout(Index nrhs) const;
  Layout layout(const Partition& cols) const { return {rows, {columns, cols}}; }
  /// A matrix whose block on this rank lies in `memory`, which must have room for it. The rank must be a
  /// member of the grid.
  template <Scalar T>
  DistMatrix<T> matrix(const Partition& cols, const Buffer<T>& memory) const {
    return DistMatrix<T>(grid, layout(cols), memory.matrix(local_rows(), local_columns(cols)));
  }

  template <Scalar T>
  bool contains(const ConstDistMatrix<T>& X) const {
    return X.grid() == grid && X.layout().rows == rows && X.layout().cols.axis == columns;
  }
  /// Throws ShapeError unless the space contains X. The message refers to X by `name`.
  template <Scalar T>
  void require_contains(const ConstDistMatrix<T>& X, std::string_view name) const;
  /// A short description for messages.
  std::string describe() const;
  /// Describes this and another space that should be equal, and says whether identity() can map between them.
  std::string describe_with(const Space& other) const;
  /// The box of an array that this rank holds. The rank must be a member of the grid.
  Box local_box() const { return dims.block(grid->my_part(rows.axis)); }

  /// Whether the matrices of both spaces have the same elements at the same places. Apart from that, the
  /// dimensions of an array do not matter.
  friend bool operator==(const Space& a, const Space& b) {
    return a.grid == b.grid && a.rows == b.rows && a.columns == b.columns && a.dims.ordered_as(b.dims);
  }
};

/// The space of arrays with these dims, whose blocks are the parts of the rows along the axis. Throws
/// ShapeError if the numbers of blocks and parts differ.
GRIDLOPS_EXPORT Space array_space(std::shared_ptr<const ProcessGrid> grid, Dims dims, Axis rows,
                                  Axis columns = Axis::uncut);
/// The space of arrays of these sizes, cut along one dimension into balanced parts.
GRIDLOPS_EXPORT Space array_space(std::shared_ptr<const ProcessGrid> grid, const std::vector<Index>& sizes,
                                  int cut, Axis rows = Axis::all, Axis columns = Axis::uncut);

/// The space of the same vectors with their rows along another axis, balanced. An array keeps its dimensions
/// and is cut along the slowest dimension that was cut before. identity() between the two spaces
/// redistributes.
GRIDLOPS_EXPORT Space moved_to(Axis rows, const Space& space);

}  // namespace gridlops
