// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/process_grid.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/message.hpp"
#include "gridlops/error.hpp"

namespace gridlops {

namespace {

/// The number that the whole text stands for; 0 if it is none.
int whole_number(const char* begin, const char* end) {
  int value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  return error == std::errc() && stop == end ? value : 0;
}

}  // namespace

GridShape parse_grid_shape(const std::string& text) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  const char* cross = std::find_if(begin, end, [](char c) { return c == 'x' || c == 'X'; });
  const GridShape shape =
      cross == end ? GridShape{0, 0} : GridShape{whole_number(begin, cross), whole_number(cross + 1, end)};
  require<UsageError>(
      shape.rows > 0 && shape.cols > 0, "'", text,
      "' is no shape of a process grid: two positive numbers with an x between them are needed, as 2x3");
  int size = 0;
  require<UsageError>(
      !__builtin_mul_overflow(shape.rows, shape.cols, &size), "the process grid '", text,
      "' has more ranks than can be counted; P x Q must be at most the number of ranks of the job");
  return shape;
}

GridShape near_square(int ranks) {
  require<UsageError>(ranks > 0, "a process grid of ", ranks,
                      " ranks cannot be formed; at least one is needed");
  int rows = 1;
  for (int divisor = 2; divisor <= ranks / divisor; ++divisor) {
    if (ranks % divisor == 0) rows = divisor;
  }
  return {rows, ranks / rows};
}

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
  require<UsageError>(shape.rows > 0 && shape.cols > 0, "a process grid of ", shape.rows, "x", shape.cols,
                      " is empty; both numbers must be positive");
}

ProcessGrid::ProcessGrid(Communicator& comm, GridShape shape, std::shared_ptr<Backend> backend)
    : ProcessGrid(shape, std::move(backend)) {
  require<UsageError>(shape.rows <= comm.size() / shape.cols, "a process grid of ", shape.rows, "x",
                      shape.cols, " needs more ranks than the ", comm.size(),
                      " of the communicator; start more ranks or choose a smaller grid");
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
                           "is_member() first"));
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
