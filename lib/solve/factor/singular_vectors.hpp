// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/at_work.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/local/buffer.hpp"
#include "local/blas/lapack.hpp"

namespace gridlops {

/// The largest of what the ranks compute (collective).
template <class Compute>
double largest_of(Communicator& comm, const Compute& compute) {
  std::array<double, 1> found{};
  attempt(comm, [&] { found[0] = compute(); });
  comm.all_reduce(found, ReduceOp::max);
  return found[0];
}

/// Singular vectors, in columns, and values in descending order. What a rank would compute for itself from
/// the same matrix, one computes for all: LAPACK's reduction to two diagonals reads the whole matrix for each
/// column, at the rate of memory, which ranks of a machine share.
template <class S>
struct SingularVectors {
  Buffer<S> vectors{};
  std::vector<double> values{};
};

/// LAPACK counts the memory of eigenvectors(), 2n² elements, in 32 bits.
constexpr Index most_eigenvectors = 30000;

/// compute(found), on rank 0, fills the n values, and n × n vectors in this memory, which all ranks have
/// (collective). Throws what it throws on all ranks.
template <class S, class Compute>
SingularVectors<S> of_one_rank(Communicator& comm, Buffer<S> memory, Index n, const Compute& compute) {
  SingularVectors<S> found{std::move(memory), {}};
  attempt(comm, [&] {
    found.values.resize(at(n));
    if (comm.rank() != 0 || n == 0) return;
    const AtWork at_work;
    compute(found);
  });
  comm.broadcast(found.values, 0);
  comm.broadcast(std::span(found.vectors.data(), at(n * n)), 0);
  return found;
}

/// The right singular vectors of an upper triangle R without gaps, in its memory (collective).
/// Throws UsageError on all ranks if R is too large for LAPACK, InputError if the iteration fails,
/// OutOfMemory.
template <class S>
SingularVectors<S> right_singular_vectors(Communicator& comm, Buffer<S> R, Index n) {
  const TraceRegion region("singular values");
  return of_one_rank(comm, std::move(R), n, [n](SingularVectors<S>& found) {
    constexpr Index most = 20000;  // LAPACK counts its memory, 4n² elements, in 32 bits
    require<UsageError>(n <= most, "the factor has ", n, " columns; singular values are computed of at most ",
                        most, ": take another solver, or a larger damping");
    const MatrixView<S> upper(found.vectors.data(), n, n);
    for (Index j = 0; j < n; ++j) std::fill(upper.column(j) + j + 1, upper.column(j) + n, S(0));
    std::vector<S> U(at(n * n)), Vh(at(n * n));
    require<InputError>(lapack::singular_values(upper, found.values.data(), U.data(), Vh.data()),
                        "the singular values of a factor with ", n, " columns did not converge");
    for (Index k = 0; k < n; ++k)
      for (Index i = 0; i < n; ++i) upper(i, k) = conjugate(Vh[at(k + i * n)]);
  });
}

/// The eigenvectors of a Hermitian matrix G, of which the upper triangle is known, in its memory, and its
/// eigenvalues, none below 0, in descending order (collective). Throws as right_singular_vectors().
template <class S>
SingularVectors<S> eigenvectors(Communicator& comm, Buffer<S> G, Index n) {
  const TraceRegion region("eigenvectors");
  return of_one_rank(comm, std::move(G), n, [n](SingularVectors<S>& found) {
    require<UsageError>(n <= most_eigenvectors, "A has ", n,
                        " singular values; they are computed of at most ", most_eigenvectors);
    const MatrixView<S> matrix(found.vectors.data(), n, n);
    require<InputError>(lapack::eigenvectors(matrix, found.values.data()),
                        "the singular values of A, of which there are ", n, ", did not converge");
    std::reverse(found.values.begin(), found.values.end());
    for (double& value : found.values) value = std::max(value, 0.0);
    for (Index k = 0; k < n / 2; ++k)
      std::swap_ranges(matrix.column(k), matrix.column(k) + n, matrix.column(n - 1 - k));
  });
}

}  // namespace gridlops
