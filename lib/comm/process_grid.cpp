// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/comm/process_grid.hpp"

#include <algorithm>
#include <utility>

#include "base/message.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

namespace {

void require_positive(GridShape shape) {
  require<UsageError>(shape.rows > 0 && shape.cols > 0, "a process grid of ", shape.rows, "x", shape.cols,
                      " is empty; both numbers must be positive");
}

}  // namespace

const char* name_of(Axis axis) {
  switch (axis) {
    case Axis::grid_rows:
      return "grid_rows";
    case Axis::grid_cols:
      return "grid_cols";
    case Axis::all:
      return "all";
    case Axis::all_transposed:
      return "all_transposed";
    case Axis::uncut:
      break;
  }
  return "uncut";
}

ProcessGrid::ProcessGrid(GridShape shape, std::shared_ptr<Backend> backend)
    : shape_(shape), backend_(std::move(backend)) {
  require_positive(shape);
}

// Ranks always agree on a grid: if GRIDLOPS_CHECK differed between ranks, they would wait for each other
// later.
ProcessGrid::ProcessGrid(Communicator& comm, GridShape shape, std::shared_ptr<Backend> backend)
    : shape_(shape), backend_(std::move(backend)) {
  agree(comm, "making a process grid", [&](Agreement& agreement) {
    agreement.on("its shape", shape.rows, "x", shape.cols).on("GRIDLOPS_CHECK", name_of(check_level()));
    require_positive(shape);
    require<UsageError>(shape.rows <= comm.size() / shape.cols, "a process grid of ", shape.rows, "x",
                        shape.cols, " needs more ranks than the ", comm.size(),
                        " of the communicator; start more ranks or choose a smaller grid");
  });
  const int rank = comm.rank();
  grid_ = comm.split(rank < shape.size() ? std::optional(0) : std::nullopt, rank);
  if (grid_ == nullptr) return;
  row_ = grid_->split(my_row(), my_col());
  col_ = grid_->split(my_col(), my_row());
}

ProcessGrid::ProcessGrid(const ProcessGrid& ranks, std::shared_ptr<Backend> backend)
    : shape_(ranks.shape_),
      backend_(std::move(backend)),
      grid_(ranks.grid_),
      row_(ranks.row_),
      col_(ranks.col_) {}

void ProcessGrid::throw_idle() const {
  throw UsageError(message("a rank beyond the ", shape_.rows, "x", shape_.cols,
                           " of its process grid is idle: it has no row, column or communicator there; ask "
                           "is_member() first"),
                   KnownTo::one_rank);
}

int ProcessGrid::parts(Axis axis) const {
  switch (axis) {
    case Axis::grid_rows:
      return rows();
    case Axis::grid_cols:
      return cols();
    case Axis::all:
    case Axis::all_transposed:
      return shape_.size();
    case Axis::uncut:
      break;
  }
  return 1;
}

int ProcessGrid::part_at(Axis axis, int row, int col) const {
  switch (axis) {
    case Axis::grid_rows:
      return row;
    case Axis::grid_cols:
      return col;
    case Axis::all:
      return row * cols() + col;
    case Axis::all_transposed:
      return col * rows() + row;
    case Axis::uncut:
      break;
  }
  return 0;
}

}  // namespace gridlops
