// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/base/export.hpp"
#include "gridlops/comm/grid_shape.hpp"
#include "gridlops/dist/partition.hpp"

namespace gridlops {

class ProcessGrid;

/// How one dimension is distributed over a grid: the axis, and the partition, which has parts(axis) parts.
struct GRIDLOPS_EXPORT Cut {
  Axis axis = Axis::uncut;
  Partition partition;

  static Cut balanced(Axis axis, Index total, const ProcessGrid& grid);
  static Cut uncut(Index total);
  friend bool operator==(const Cut&, const Cut&) = default;
};

/// How a matrix is distributed over a grid. If several ranks hold copies of a block, the lowest of them is
/// its canonical owner: its copy counts in dot products, gathers and writes. A value; two layouts are equal
/// if all their parts are.
struct GRIDLOPS_EXPORT Layout {
  Cut rows;
  Cut cols;

  Index row_count() const { return rows.partition.total(); }
  Index col_count() const { return cols.partition.total(); }

  /// Throws ShapeError unless the partitions fit the grid and the two axes use different grid dimensions.
  void check(const ProcessGrid& grid) const;

  /// The global rows and columns of the block on the rank at (row, col) of the grid.
  Range row_range(const ProcessGrid& grid, int row, int col) const;
  Range col_range(const ProcessGrid& grid, int row, int col) const;
  /// Whether the rank at (row, col) is the canonical owner of its block.
  bool owned_at(const ProcessGrid& grid, int row, int col) const;

  /// A short text for messages: the shape, and the axes along which it is cut.
  std::string describe() const;

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Cuts rows along grid rows, and columns along grid columns.
GRIDLOPS_EXPORT Layout blocks_2d(const ProcessGrid& grid, Index rows, Index cols);
/// row_blocks cuts rows along all ranks and leaves columns whole; col_blocks does the reverse.
GRIDLOPS_EXPORT Layout row_blocks(const ProcessGrid& grid, Index rows, Index cols);
GRIDLOPS_EXPORT Layout column_blocks(const ProcessGrid& grid, Index rows, Index cols);
/// Puts the whole matrix on every rank.
GRIDLOPS_EXPORT Layout replicated(Index rows, Index cols);

}  // namespace gridlops
