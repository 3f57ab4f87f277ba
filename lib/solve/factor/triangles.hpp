// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstring>

#include "base/numbers.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

/// The elements of the upper triangle of an n × n matrix.
constexpr Index size_of_triangle(Index n) { return n * (n + 1) / 2; }

/// Moves the upper triangle of a matrix without gaps to the beginning of its memory, column after column.
template <Scalar S>
void pack_triangle(MatrixView<S> R) {
  for (Index j = 1; j < R.cols; ++j)
    std::memmove(R.data + size_of_triangle(j), R.column(j), at(j + 1) * sizeof(S));
}

/// Moves it back. What is below the diagonal is meaningless.
template <Scalar S>
void unpack_triangle(MatrixView<S> R) {
  for (Index j = R.cols - 1; j > 0; --j)
    std::memmove(R.column(j), R.data + size_of_triangle(j), at(j + 1) * sizeof(S));
}

/// Sums the upper triangles over the ranks.
template <Scalar S>
void sum_triangles(Communicator& comm, MatrixView<S> G) {
  if (comm.size() == 1) return;
  const TraceRegion region("sum of Gram matrices");
  pack_triangle(G);
  comm.all_reduce({G.data, size_of_triangle(G.cols)}, ReduceOp::sum);
  unpack_triangle(G);
}

}  // namespace gridlops
