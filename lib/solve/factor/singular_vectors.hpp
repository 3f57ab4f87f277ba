// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/local/buffer.hpp"
#include "local/products/lapack.hpp"

namespace gridlops {

/// The largest of what the ranks compute (collective).
template <class Compute>
double largest_of(Communicator& comm, const Compute& compute) {
  std::array<double, 1> found{};
  attempt(comm, [&] { found[0] = compute(); });
  comm.all_reduce(found, ReduceOp::max);
  return found[0];
}

template <class S>
void clear_below_diagonal(MatrixView<S> R) {
  for (Index j = 0; j < R.cols; ++j) std::fill(R.column(j) + j + 1, R.column(j) + R.rows, S(0));
}

/// The singular value decomposition of a square matrix without gaps.
template <class S>
struct SingularVectors {
  std::vector<double> values{};  ///< in descending order
  Buffer<S> left{};
  Buffer<S> right_adjoint{};
};

/// Every rank computes that of its own R, which is the same on all of them, and is overwritten (collective).
/// Throws UsageError on all ranks if R is too large for LAPACK, InputError if the iteration fails,
/// OutOfMemory.
template <class S>
SingularVectors<S> singular_vectors(Communicator& comm, const std::shared_ptr<Backend>& backend,
                                    MatrixView<S> R) {
  const TraceRegion region("singular values");
  SingularVectors<S> found;
  attempt(comm, [&] {
    constexpr Index most = 20000;  // LAPACK counts its memory, 4n² elements, in 32 bits
    require<UsageError>(R.cols <= most, "the factor has ", R.cols,
                        " columns; singular values are computed of at most ", most,
                        ": take another solver, or one with a damping for all columns");
    found.left = Buffer<S>(backend, R.cols * R.cols);
    found.right_adjoint = Buffer<S>(backend, R.cols * R.cols);
    found.values.resize(at(R.cols));
    require<InputError>(
        lapack::singular_values(R, found.values.data(), found.left.data(), found.right_adjoint.data()),
        "the singular values of a factor with ", R.cols, " columns did not converge");
  });
  return found;
}

}  // namespace gridlops
