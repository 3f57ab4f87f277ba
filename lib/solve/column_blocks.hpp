// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "base/numbers.hpp"
#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

/// This rank's block of column j of a matrix. It has no columns if other ranks hold the column.
template <Scalar T>
MatrixView<T> column_block(DistMatrix<T>& X, Index j) {
  const Range mine = X.local_col_range();
  return X.local().col_block(intersect({j - mine.begin, 1}, {0, mine.size}));
}

/// yⱼ ← xⱼ for the columns j with chosen[j]. Adjacent columns go in one copy.
template <Scalar T>
void copy_columns(const std::vector<char>& chosen, const ConstDistMatrix<T>& X, DistMatrix<T>& Y) {
  const Range mine = X.local_col_range();
  const auto is_chosen = [&](Index j) { return j < mine.size && chosen[at(mine.begin + j)] != 0; };
  for (Index begin = 0, end = 0; begin < mine.size; begin = end + 1) {
    for (end = begin; is_chosen(end);) ++end;
    const Range run{begin, end - begin};
    if (run.size > 0)
      X.grid()->backend()->template kernels<T>().copy(X.local().col_block(run), Y.local().col_block(run));
  }
}

}  // namespace gridlops
