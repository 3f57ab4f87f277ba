// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/base/export.hpp"
#include "gridlops/comm/grid_shape.hpp"
#include "gridlops/dist/partition.hpp"

namespace gridlops {

class ProcessGrid;

/// How one dimension lies on a grid: the axis it is cut along, and where. The partition has parts(axis)
/// parts.
struct GRIDLOPS_EXPORT Cut {
  Axis axis = Axis::uncut;
  Partition partition;

  static Cut balanced(Axis axis, Index total, const ProcessGrid& grid);
  static Cut uncut(Index total);
  friend bool operator==(const Cut&, const Cut&) = default;
};

/// How a matrix lies on a grid. Where several ranks have copies of a block, the lowest of them is its
/// canonical owner, which counts in dots, gathers and writes. A value; compared part by part.
struct GRIDLOPS_EXPORT Layout {
  Cut rows;
  Cut cols;

  Index row_count() const { return rows.partition.total(); }
  Index col_count() const { return cols.partition.total(); }

  /// Throws ShapeError unless the partitions fit the grid and the two axes do not use one grid dimension
  /// twice.
  void check(const ProcessGrid& grid) const;

  /// The global rows and columns of the block on the rank at (row, col) of the grid.
  Range row_range(const ProcessGrid& grid, int row, int col) const;
  Range col_range(const ProcessGrid& grid, int row, int col) const;
  /// Whether the rank at (row, col) is the canonical owner of its block.
  bool owned_at(const ProcessGrid& grid, int row, int col) const;

  /// A short text for messages: the shape, and the axes that it is cut along.
  std::string describe() const;

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Cuts rows along grid rows, and columns along grid columns.
GRIDLOPS_EXPORT Layout blocks_2d(const ProcessGrid& grid, Index rows, Index cols);
/// Cuts rows along all ranks, but not columns; and the other way round.
GRIDLOPS_EXPORT Layout row_blocks(const ProcessGrid& grid, Index rows, Index cols);
GRIDLOPS_EXPORT Layout column_blocks(const ProcessGrid& grid, Index rows, Index cols);
/// Puts the whole matrix on every rank.
GRIDLOPS_EXPORT Layout replicated(Index rows, Index cols);

}  // namespace gridlops
