// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "base/square_sum.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "local/tiles/tile_order.hpp"
#include "ops/stationary/local_block.hpp"

namespace gridlops {

namespace {

constexpr std::size_t parts_of_sum = SquareSum().parts.size();

}  // namespace

template <Scalar T>
std::vector<double> column_norms(const LinearOperator<T>& A) {
  const MatrixInBlocks<T>* const matrix = matrix_in_blocks(A);
  const ProcessGrid& grid = *A.domain().grid;
  require<UsageError>(
      matrix != nullptr && grid.backend()->memory_space() == MemorySpace::host, "an operator of ", A.rows(),
      " x ", A.cols(),
      " does not know the norms of its columns: a matrix in host memory, or on disks, does, by "
      "block or stationary-a");
  if (!grid.is_member()) return std::vector<double>(at(A.cols()));
  const Layout& layout = matrix->layout_of_matrix();
  const bool counts = layout.owned_at(grid, grid.my_row(), grid.my_col());
  const std::size_t first = at(layout.col_range(grid, grid.my_row(), grid.my_col()).begin);
  std::vector<double> parts;  // of the sum of squares of each column
  const auto sum_of = [&parts](std::size_t column) {
    SquareSum sum;
    std::copy_n(parts.begin() + static_cast<std::ptrdiff_t>(column * parts_of_sum), parts_of_sum,
                sum.parts.begin());
    return sum;
  };
  FailureScope failures;
  const auto add_squares = [&](Range, MatrixView<const T> rows) {
    const MatrixView<const Real<T>> reals = real_view(rows);
    for (Index j = 0; j < reals.cols; ++j) {
      const std::size_t column = first + at(j);
      SquareSum sum = sum_of(column);
      sum.add(reals.column(j), reals.rows);
      std::copy(sum.parts.begin(), sum.parts.end(),
                parts.begin() + static_cast<std::ptrdiff_t>(column * parts_of_sum));
    }
  };
  std::vector<double> norms;
  visit_rows<T>(*matrix, Op::none, grid, counts, failures, add_squares, [&] {
    norms.reserve(at(A.cols()));
    parts.reserve(parts_of_sum * at(A.cols()) + 1);  // and a number for failures
    parts.resize(parts_of_sum * at(A.cols()));
  });
  failures.reduce(grid.comm(), parts);
  for (std::size_t j = 0; j < at(A.cols()); ++j) norms.push_back(sum_of(j).root());
  return norms;
}

template <Scalar T>
Index column_norms_bytes(Index cols, Index rows_of_block, Index cols_of_block) {
  const TileOrder<T> order(std::max<Index>(rows_of_block, 1), cols_of_block, *kernel_choice().set);
  constexpr Index of_messages = 2;
  const Index sums = static_cast<Index>(parts_of_sum) * cols;
  return order.strip_rows(0).size * cols_of_block * Index{sizeof(T)} +
         ((1 + of_messages) * sums + cols) * Index{sizeof(double)};
}

#define GRIDLOPS_INSTANTIATE(T)                                        \
  template std::vector<double> column_norms(const LinearOperator<T>&); \
  template Index column_norms_bytes<T>(Index, Index, Index);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
