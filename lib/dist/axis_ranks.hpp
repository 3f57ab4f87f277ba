// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/comm/process_grid.hpp"

namespace gridlops {

/// The ranks that together hold one copy of something cut along an axis: this rank, and one for every other
/// part. The grid's other ranks hold further copies, distributed likewise.
struct AxisRanks {
  Communicator* comm;      // null if the axis is uncut: this rank has everything
  std::vector<int> parts;  // the part of each rank of comm
};

/// Only members of the grid may call this.
inline AxisRanks ranks_along(const ProcessGrid& grid, Axis axis) {
  switch (axis) {
    case Axis::uncut:
      return {nullptr, {0}};
    case Axis::grid_rows:
    case Axis::grid_cols:
      break;
    case Axis::all:
    case Axis::all_transposed: {
      AxisRanks ranks{&grid.comm(), {}};
      for (int row = 0; row < grid.rows(); ++row)
        for (int col = 0; col < grid.cols(); ++col) ranks.parts.push_back(grid.part_at(axis, row, col));
      return ranks;
    }
  }
  // A rank's number in its grid column is that of its grid row, and vice versa.
  AxisRanks ranks{axis == Axis::grid_rows ? &grid.col_comm() : &grid.row_comm(), {}};
  for (int rank = 0; rank < ranks.comm->size(); ++rank) ranks.parts.push_back(rank);
  return ranks;
}

}  // namespace gridlops
