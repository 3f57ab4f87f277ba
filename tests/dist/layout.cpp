// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dist/layout.hpp"

#include "gridlops/base/error.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Calls visit(rank, row, col) for every rank of the grid, in rank order.
template <class Function>
void for_each_rank(const ProcessGrid& grid, Function&& visit) {
  for (int rank = 0; rank < grid.shape().size(); ++rank) visit(rank, rank / grid.cols(), rank % grid.cols());
}

bool contains(Range range, Index index) { return range.begin <= index && index < range.end(); }

/// Every element has one owner, the lowest of the ranks that hold it.
void check_owners(const ProcessGrid& grid, const Layout& layout) {
  Index wrong = 0;
  for (Index i = 0; i < layout.row_count(); ++i) {
    for (Index j = 0; j < layout.col_count(); ++j) {
      int lowest_holder = -1;
      std::vector<int> owners;
      for_each_rank(grid, [&](int rank, int row, int col) {
        if (!contains(layout.row_range(grid, row, col), i) || !contains(layout.col_range(grid, row, col), j))
          return;
        if (lowest_holder < 0) lowest_holder = rank;
        if (layout.owned_at(grid, row, col)) owners.push_back(rank);
      });
      if (owners != std::vector<int>{lowest_holder}) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("Each element of a legal layout has one canonical owner, the lowest rank", "[layout]") {
  for (const GridPtr& grid : all_grids()) {
    for (const Axis rows : all_axes) {
      for (const Axis cols : all_axes) {
        if (!legal(rows, cols)) continue;
        for (int variant = 0; variant < cut_variants; ++variant) {
          INFO(describe(*grid) << ", rows along " << name_of(rows) << ", columns along " << name_of(cols)
                               << ", cut in variant " << variant);
          const Layout layout = layout_along(*grid, rows, cols, 7, 5, variant);
          CHECK_NOTHROW(layout.check(*grid));
          check_owners(*grid, layout);
        }
      }
    }
  }
}

TEST_CASE("Ranks that hold one part of a layout hold the same copy", "[layout]") {
  for (const GridPtr& grid : all_grids()) {
    for (const Axis axis : all_axes) {
      INFO(describe(*grid) << " along " << name_of(axis));
      // Part numbers are those of the table in the documentation of Axis.
      std::vector<int> holders(static_cast<std::size_t>(grid->parts(axis)), 0);
      for_each_rank(*grid, [&](int rank, int row, int col) {
        const int part = grid->part_at(axis, row, col);
        ++holders[static_cast<std::size_t>(part)];
        if (axis == Axis::grid_rows) CHECK(part == row);
        if (axis == Axis::grid_cols) CHECK(part == col);
        if (axis == Axis::all) CHECK(part == rank);
        if (axis == Axis::all_transposed) CHECK(part == col * grid->rows() + row);
        if (axis == Axis::uncut) CHECK(part == 0);
      });
      const int copies = grid->shape().size() / grid->parts(axis);
      CHECK(holders == std::vector<int>(holders.size(), copies));
    }
  }
}

TEST_CASE("Layouts that use a grid dimension twice are refused on all ranks", "[layout]") {
  for (const GridPtr& grid : all_grids()) {
    const TrafficSince traffic(world());
    for (const Axis rows : all_axes) {
      for (const Axis cols : all_axes) {
        if (legal(rows, cols)) continue;
        INFO(describe(*grid) << ", rows along " << name_of(rows) << ", columns along " << name_of(cols));
        const Layout layout = layout_along(*grid, rows, cols, 4, 4);
        CHECK_THROWS_AS(layout.check(*grid), ShapeError);
        CHECK_THROWS_AS(DistMatrix<double>(grid, layout), ShapeError);
      }
    }
    CHECK(traffic.nothing());
  }
}

TEST_CASE("Partitions with another number of parts than the axis are refused on all ranks", "[layout]") {
  for (const GridPtr& grid : all_grids()) {
    for (const Axis axis : all_axes) {
      const int parts = grid->parts(axis);
      for (const int wrong : {parts + 1, parts - 1}) {
        if (wrong < 1) continue;
        INFO(describe(*grid) << ", " << wrong << " parts along " << name_of(axis));
        const Cut cut{axis, Partition::balanced(6, wrong)};
        CHECK_THROWS_AS((Layout{cut, Cut::uncut(3)}.check(*grid)), ShapeError);
        CHECK_THROWS_AS((Layout{Cut::uncut(3), cut}.check(*grid)), ShapeError);
      }
    }
  }
}

TEST_CASE("The layouts with names are what their names say", "[layout]") {
  for (const GridPtr& grid : all_grids()) {
    INFO(describe(*grid));
    const Layout blocks = blocks_2d(*grid, 7, 5);
    CHECK(blocks == layout_along(*grid, Axis::grid_rows, Axis::grid_cols, 7, 5));
    CHECK(row_blocks(*grid, 7, 5) == layout_along(*grid, Axis::all, Axis::uncut, 7, 5));
    CHECK(column_blocks(*grid, 7, 5) == layout_along(*grid, Axis::uncut, Axis::all, 7, 5));
    CHECK(replicated(7, 5) == layout_along(*grid, Axis::uncut, Axis::uncut, 7, 5));
    CHECK(blocks.row_count() == 7);
    CHECK(blocks.col_count() == 5);
    CHECK_FALSE(blocks == blocks_2d(*grid, 7, 6));
    CHECK(blocks.describe().find("7 x 5") != std::string::npos);
    CHECK(blocks.describe().find("grid_rows") != std::string::npos);
  }
}
