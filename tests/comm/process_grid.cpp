// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <set>
#include <string>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "support/catch.hpp"
#include "support/disagreements.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

std::vector<GridShape> shapes_up_to(int ranks) {
  std::vector<GridShape> shapes;
  for (int rows = 1; rows <= ranks; ++rows) {
    for (int cols = 1; cols <= ranks / rows; ++cols) shapes.push_back({rows, cols});
  }
  return shapes;
}

/// The ranks that the members of comm have in the world, in the order of comm.
std::vector<std::int32_t> members_of(Communicator& comm) {
  const std::array<std::int32_t, 1> mine{world().rank()};
  std::vector<std::int32_t> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(mine, all);
  return all;
}

}  // namespace

TEST_CASE("A grid has its ranks in row-major order, and the others are idle") {
  const auto backend = make_host_backend();
  for (const GridShape shape : shapes_up_to(world().size())) {
    CAPTURE(shape.rows, shape.cols);
    const ProcessGrid grid(world(), shape, backend);
    const int rank = world().rank();
    CHECK(grid.shape() == shape);
    CHECK(grid.backend() == backend);
    CHECK(grid.is_member() == (rank < shape.size()));
    if (!grid.is_member()) continue;

    CHECK(grid.my_row() == rank / shape.cols);
    CHECK(grid.my_col() == rank % shape.cols);
    CHECK(grid.comm().rank() == rank);
    CHECK(grid.row_comm().rank() == grid.my_col());
    CHECK(grid.col_comm().rank() == grid.my_row());
    std::vector<std::int32_t> all, row, col;
    for (int r = 0; r < shape.size(); ++r) {
      all.push_back(r);
      if (r / shape.cols == grid.my_row()) row.push_back(r);
      if (r % shape.cols == grid.my_col()) col.push_back(r);
    }
    CHECK(members_of(grid.comm()) == all);
    CHECK(members_of(grid.row_comm()) == row);
    CHECK(members_of(grid.col_comm()) == col);
  }
}

TEST_CASE("An idle rank that asks for its place or its communicators is told so") {
  const ProcessGrid grid(world(), {1, 1}, make_host_backend());
  if (grid.is_member()) return;
  CHECK(contains(message_of<UsageError>([&] { grid.comm(); }), "1x1"));
  CHECK_THROWS_AS(grid.row_comm(), UsageError);
  CHECK_THROWS_AS(grid.col_comm(), UsageError);
  CHECK_THROWS_AS(grid.my_row(), UsageError);
  CHECK_THROWS_AS(grid.my_col(), UsageError);
  CHECK_THROWS_AS(grid.my_part(Axis::uncut), UsageError);
}

TEST_CASE("An axis numbers its parts as documented, on idle ranks too") {
  for (const GridShape shape : shapes_up_to(world().size())) {
    const ProcessGrid grid(world(), shape, make_host_backend());
    CHECK(grid.parts(Axis::grid_rows) == shape.rows);
    CHECK(grid.parts(Axis::grid_cols) == shape.cols);
    CHECK(grid.parts(Axis::all) == shape.size());
    CHECK(grid.parts(Axis::all_transposed) == shape.size());
    CHECK(grid.parts(Axis::uncut) == 1);
    std::set<int> all, all_transposed;
    for (int row = 0; row < shape.rows; ++row) {
      for (int col = 0; col < shape.cols; ++col) {
        CHECK(grid.part_at(Axis::grid_rows, row, col) == row);
        CHECK(grid.part_at(Axis::grid_cols, row, col) == col);
        CHECK(grid.part_at(Axis::all, row, col) == row * shape.cols + col);
        CHECK(grid.part_at(Axis::all_transposed, row, col) == col * shape.rows + row);
        CHECK(grid.part_at(Axis::uncut, row, col) == 0);
        all.insert(grid.part_at(Axis::all, row, col));
        all_transposed.insert(grid.part_at(Axis::all_transposed, row, col));
      }
    }
    CHECK(all.size() == static_cast<std::size_t>(shape.size()));
    CHECK(all_transposed == all);
    if (grid.is_member()) CHECK(grid.my_part(Axis::all) == world().rank());
  }
}

TEST_CASE("A grid that does not fit is refused on all ranks, before any communication") {
  const Index splits = world().traffic().calls_of(CommOperation::split);
  const int ranks = world().size();
  for (const GridShape shape : {GridShape{1, ranks + 1}, GridShape{ranks + 1, 1}, GridShape{0, 1},
                                GridShape{1, -1}, GridShape{-1, -1}, GridShape{65536, 65536}}) {
    CHECK_THROWS_AS(ProcessGrid(world(), shape, nullptr), UsageError);
  }
  CHECK(contains(message_of<UsageError>([] { ProcessGrid(world(), {7, 11}, nullptr); }), "7x11"));
  CHECK(world().traffic().calls_of(CommOperation::split) == splits);
}

TEST_CASE("Ranks that want different grids all throw") {
  const int ranks = world().size();
  if (ranks == 1) return;
  const auto text = [](GridShape shape) {
    return std::to_string(shape.rows) + "x" + std::to_string(shape.cols);
  };
  for (const int odd : {0, ranks - 1})
    for (const GridShape other : {GridShape{ranks, 1}, GridShape{1, ranks + 1}, GridShape{0, 0}}) {
      const GridShape usual{1, ranks}, mine = world().rank() == odd ? other : usual;
      check_disagreement(world(), {difference("its shape", text(usual), text(other), odd, ranks)},
                         [&] { ProcessGrid(world(), mine, nullptr); });
    }
  ProcessGrid(world(), {1, ranks}, nullptr);
}

TEST_CASE("A grid shape is read from text that has nothing else") {
  CHECK(parse_grid_shape("2x3") == GridShape{2, 3});
  CHECK(parse_grid_shape("12X1") == GridShape{12, 1});
  CHECK(parse_grid_shape("1x2147483647") == GridShape{1, 2147483647});
  for (const std::string text : {"",
                                 "x",
                                 "2",
                                 "2x",
                                 "x3",
                                 "2x3x4",
                                 "2 x3",
                                 " 2x3",
                                 "2x3 ",
                                 "-2x3",
                                 "+2x3",
                                 "2x-3",
                                 "2x+3",
                                 "0x3",
                                 "2x0",
                                 "2.0x3",
                                 "axb",
                                 "0x10",
                                 "2147483648x1",
                                 "99999999999999999999x1",
                                 "65536x65536",
                                 "2xx3"}) {
    CAPTURE(text);
    CHECK(contains(message_of<UsageError>([&] { parse_grid_shape(text); }), "'" + text + "'"));
  }
}

TEST_CASE("near_square factors the ranks nearest to a square") {
  CHECK(near_square(1) == GridShape{1, 1});
  CHECK(near_square(2) == GridShape{1, 2});
  CHECK(near_square(12) == GridShape{3, 4});
  CHECK(near_square(13) == GridShape{1, 13});
  CHECK(near_square(64) == GridShape{8, 8});
  CHECK(near_square(2147483647) == GridShape{1, 2147483647});
  CHECK_THROWS_AS(near_square(0), UsageError);
  CHECK_THROWS_AS(near_square(-4), UsageError);
}

TEST_CASE("Axes have names") {
  CHECK(std::string(name_of(Axis::grid_rows)) == "grid_rows");
  CHECK(std::string(name_of(Axis::grid_cols)) == "grid_cols");
  CHECK(std::string(name_of(Axis::all)) == "all");
  CHECK(std::string(name_of(Axis::all_transposed)) == "all_transposed");
  CHECK(std::string(name_of(Axis::uncut)) == "uncut");
}
