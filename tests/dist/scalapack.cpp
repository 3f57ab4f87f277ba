// SPDX-License-Identifier: BSD-3-Clause
// ScaLAPACK's own copies between its grids are the reference here.
#include <mpi.h>

#include <algorithm>
#include <array>

#include "gridlops/dist/block_cyclic.hpp"
#include "support/test_data.hpp"

// ScaLAPACK and its BLACS have no headers.
extern "C" {
int Csys2blacs_handle(MPI_Comm comm);
void Cfree_blacs_system_handle(int handle);
void Cblacs_gridinit(int* context, const char* order, int rows, int cols);
void Cblacs_gridinfo(int context, int* rows, int* cols, int* row, int* col);
void Cblacs_gridexit(int context);
int numroc_(const int* size, const int* block, const int* coordinate, const int* first, const int* parts);
void descinit_(int* descriptor, const int* rows, const int* cols, const int* row_block, const int* col_block,
               const int* first_row, const int* first_col, const int* context, const int* stride, int* info);
void Cpdgemr2d(int rows, int cols, double* A, int row_a, int col_a, int* descriptor_a, double* B, int row_b,
               int col_b, int* descriptor_b, int context);
}

using namespace gridlops;
using namespace gridlops::testing;

namespace {

class BlacsGrid {
 public:
  BlacsGrid(GridShape shape, RankOrder order)
      : shape_(shape), order_(order), handle_(Csys2blacs_handle(MPI_COMM_WORLD)), context_(handle_) {
    Cblacs_gridinit(&context_, order == RankOrder::row_major ? "Row" : "Column", shape.rows, shape.cols);
  }
  ~BlacsGrid() {
    if (context_ >= 0) Cblacs_gridexit(context_);
    Cfree_blacs_system_handle(handle_);
  }
  BlacsGrid(const BlacsGrid&) = delete;
  BlacsGrid& operator=(const BlacsGrid&) = delete;

  GridShape shape() const { return shape_; }
  RankOrder order() const { return order_; }
  int context() const { return context_; }  // negative on ranks beyond the grid

 private:
  GridShape shape_;
  RankOrder order_;
  int handle_, context_;
};

/// A matrix of zeros with a descriptor of ScaLAPACK's, which says on other ranks only that they have none.
struct BlacsMatrix {
  BlacsMatrix(const BlacsGrid& grid, int rows, int cols, int row_block, int col_block, int first_row,
              int first_col) {
    if (grid.context() >= 0) {
      int P = 0, Q = 0, row = 0, col = 0, failed = 0;
      const int context = grid.context();
      Cblacs_gridinfo(context, &P, &Q, &row, &col);
      const int local_rows = numroc_(&rows, &row_block, &row, &first_row, &P);
      const int stride = std::max(local_rows, 1) + 1;
      descinit_(descriptor.data(), &rows, &cols, &row_block, &col_block, &first_row, &first_col, &context,
                &stride, &failed);
      REQUIRE(failed == 0);
      const int local_cols = numroc_(&cols, &col_block, &col, &first_col, &Q);
      values.resize(static_cast<std::size_t>(stride) * static_cast<std::size_t>(std::max(local_cols, 1)));
    }
    layout = BlockCyclic::of_descriptor(descriptor.data(), grid.shape(), grid.order());
  }

  std::array<int, 9> descriptor{0, -1};
  std::vector<double> values;
  BlockCyclic layout;
};

double value_at(Index i, Index j) { return static_cast<double>(1 + i + 1000 * j); }

/// ScaLAPACK deals a matrix that lies on rank 0 out to `shape`, and collects what comes back.
void check_against_scalapack(const GridPtr& grid, const Layout& layout, const BlacsGrid& all,
                             const BlacsGrid& dealt_grid, int row_block, int col_block, int first_row,
                             int first_col) {
  const int m = static_cast<int>(layout.row_count()), n = static_cast<int>(layout.col_count());
  const BlacsGrid alone({1, 1}, RankOrder::row_major);
  BlacsMatrix whole(alone, m, n, m, n, 0, 0), back(alone, m, n, m, n, 0, 0);
  BlacsMatrix dealt(dealt_grid, m, n, row_block, col_block, first_row, first_col), returned = dealt;
  if (alone.context() >= 0)
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) whole.values[static_cast<std::size_t>(i + j * (m + 1))] = value_at(i, j);

  Cpdgemr2d(m, n, whole.values.data(), 1, 1, whole.descriptor.data(), dealt.values.data(), 1, 1,
            dealt.descriptor.data(), all.context());
  DistMatrix<double> X(grid, layout);
  from_block_cyclic<double>(world(), dealt.layout, dealt.values.data(), X);
  CHECK(mismatches(X, value_at) == 0);

  to_block_cyclic<double>(world(), X, returned.layout, returned.values.data());
  CHECK(returned.values == dealt.values);
  Cpdgemr2d(m, n, returned.values.data(), 1, 1, returned.descriptor.data(), back.values.data(), 1, 1,
            back.descriptor.data(), all.context());
  CHECK(back.values == whole.values);
}

}  // namespace

TEST_CASE("ScaLAPACK reads what is written for it, and writes what is read", "[scalapack]") {
  const BlacsGrid all({1, world().size()}, RankOrder::row_major);
  for (const GridPtr& grid : compact_grids()) {
    for (const GridShape shape : all_shapes(world().size())) {
      for (const RankOrder order : {RankOrder::row_major, RankOrder::column_major}) {
        const BlacsGrid dealt(shape, order);
        for (const auto& [row_block, col_block] : {std::pair{1, 1}, {3, 2}, {4, 7}, {40, 40}}) {
          INFO(describe(*grid) << ", blocks of " << row_block << " x " << col_block << " on a grid of "
                               << shape.rows << " x " << shape.cols);
          for (const Layout& layout : {blocks_2d(*grid, 23, 17), row_blocks(*grid, 6, 2), replicated(5, 9)})
            check_against_scalapack(grid, layout, all, dealt, row_block, col_block, shape.rows - 1,
                                    shape.cols / 2);
        }
      }
    }
  }
}
