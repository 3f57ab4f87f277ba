// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "base/square_sum.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "local/products/real_parts.hpp"
#include "ops/matrix/local_block.hpp"

namespace gridlops {

template <Scalar T>
std::vector<double> column_norms(const LinearOperator<T>& A) {
  const auto* const matrix = dynamic_cast<const MatrixInBlocks<T>*>(&A);
  const ProcessGrid& grid = *A.domain().grid;
  require<UsageError>(
      matrix != nullptr && grid.backend()->memory_space() == MemorySpace::host, "an operator of ", A.rows(),
      " x ", A.cols(),
      " does not know the norms of its columns: a matrix in host memory, or on disks, does, by "
      "block or stationary-a");
  std::vector<SquareSum> sums(at(A.cols()));
  constexpr std::size_t parts = SquareSum().parts.size();
  std::vector<double> values(parts * sums.size());
  if (grid.is_member()) {
    FailureScope failures;
    failures.run([&] {
      const Layout& layout = matrix->layout_of_matrix();
      if (!layout.owned_at(grid, grid.my_row(), grid.my_col())) return;
      const Index first = layout.col_range(grid, grid.my_row(), grid.my_col()).begin;
      matrix->local_block()->visit_rows(grid, [&](Range, MatrixView<const T> rows) {
        const MatrixView<const Real<T>> reals = real_view(rows);
        for (Index j = 0; j < reals.cols; ++j) sums[at(first + j)].add(reals.column(j), reals.rows);
      });
      for (std::size_t j = 0; j < sums.size(); ++j)
        std::copy_n(sums[j].parts.begin(), parts, values.begin() + static_cast<std::ptrdiff_t>(parts * j));
    });
    failures.reduce(grid.comm(), values);
  }
  std::vector<double> norms;
  for (std::size_t j = 0; j < sums.size(); ++j) {
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(parts * j), parts, sums[j].parts.begin());
    norms.push_back(sums[j].root());
  }
  return norms;
}

#define GRIDLOPS_INSTANTIATE(T) template std::vector<double> column_norms(const LinearOperator<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
