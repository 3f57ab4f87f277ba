// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dist/layout.hpp"

#include "base/message.hpp"
#include "dist/describe_layout.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

namespace {

bool uses_grid_rows(Axis axis) { return axis != Axis::grid_cols && axis != Axis::uncut; }
bool uses_grid_cols(Axis axis) { return axis != Axis::grid_rows && axis != Axis::uncut; }

void check_cut(const Cut& cut, const char* dimension, const ProcessGrid& grid) {
  const int needed = grid.parts(cut.axis);
  require<ShapeError>(cut.partition.parts() == needed, "the ", dimension, " of a matrix are cut into ",
                      cut.partition.parts(), " parts, but along ", name_of(cut.axis), " a ", grid.rows(), "x",
                      grid.cols(), " grid has ", needed,
                      "; use Cut::balanced or a partition with as many parts");
}

}  // namespace

Cut Cut::balanced(Axis axis, Index total, const ProcessGrid& grid) {
  return {axis, Partition::balanced(total, grid.parts(axis))};
}

Cut Cut::uncut(Index total) { return {Axis::uncut, Partition::balanced(total, 1)}; }

void Layout::check(const ProcessGrid& grid) const {
  check_cut(rows, "rows", grid);
  check_cut(cols, "columns", grid);
  const bool conflict = (uses_grid_rows(rows.axis) && uses_grid_rows(cols.axis)) ||
                        (uses_grid_cols(rows.axis) && uses_grid_cols(cols.axis));
  require<ShapeError>(!conflict, "rows along ", name_of(rows.axis), " and columns along ", name_of(cols.axis),
                      " leave parts of the matrix on no rank; cut each along another grid dimension");
}

Range Layout::row_range(const ProcessGrid& grid, int row, int col) const {
  return rows.partition.range(grid.part_at(rows.axis, row, col));
}

Range Layout::col_range(const ProcessGrid& grid, int row, int col) const {
  return cols.partition.range(grid.part_at(cols.axis, row, col));
}

bool Layout::owned_at(const ProcessGrid&, int row, int col) const {
  // Ranks with copies differ in the grid dimension that neither axis uses. The first of them has coordinate 0
  // there.
  const bool first_in_grid_rows = uses_grid_rows(rows.axis) || uses_grid_rows(cols.axis) || row == 0;
  const bool first_in_grid_cols = uses_grid_cols(rows.axis) || uses_grid_cols(cols.axis) || col == 0;
  return first_in_grid_rows && first_in_grid_cols;
}

std::string Layout::describe() const {
  return message(row_count(), " x ", col_count(), " (rows along ", name_of(rows.axis), ", columns along ",
                 name_of(cols.axis), ")");
}

std::string describe_cut(const Partition& partition) {
  constexpr int most = 16;
  std::string sizes;
  std::uint64_t number = 0xcbf29ce484222325;  // FNV-1a
  for (int part = 0; part < partition.parts(); ++part) {
    if (part < most) sizes += message(part == 0 ? "" : "+", partition.size(part));
    number = (number ^ static_cast<std::uint64_t>(partition.begin(part))) * 0x100000001b3;
  }
  return partition.parts() <= most ? sizes
                                   : message(sizes, "+… (", partition.parts(), " parts, ", number, ")");
}

Layout blocks_2d(const ProcessGrid& grid, Index rows, Index cols) {
  return {Cut::balanced(Axis::grid_rows, rows, grid), Cut::balanced(Axis::grid_cols, cols, grid)};
}

Layout row_blocks(const ProcessGrid& grid, Index rows, Index cols) {
  return {Cut::balanced(Axis::all, rows, grid), Cut::uncut(cols)};
}

Layout column_blocks(const ProcessGrid& grid, Index rows, Index cols) {
  return {Cut::uncut(rows), Cut::balanced(Axis::all, cols, grid)};
}

Layout replicated(Index rows, Index cols) { return {Cut::uncut(rows), Cut::uncut(cols)}; }

}  // namespace gridlops
