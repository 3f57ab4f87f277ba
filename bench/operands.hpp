// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/matrix_mult.hpp"
#include "gridlops/random.hpp"
#include "members.hpp"
#include "result.hpp"

namespace gridlops::bench {

/// Elements are functions of these seeds and the global index, so that results can be checked without a
/// second copy of anything.
inline constexpr std::uint64_t seed_of_A = 1, seed_of_input = 2;

/// A product with a random matrix (collective over the grid).
template <Scalar T>
OperatorPtr<T> random_product(const Case& what) {
  DistMatrix<T> A = program::allocate_matrix<T>(
      what.grid, matrix_layout(what.algorithm, *what.grid, what.shape.rows, what.shape.cols));
  A.fill([](Index i, Index j) { return counter_random<T>(seed_of_A, i, j); });
  return matrix_mult(what.algorithm, std::move(A),
                     {.panel = what.panel, .form = what.summa_form, .storage = what.storage});
}

template <Scalar T>
DistMatrix<T> random_input(const Case& what, const Space& space) {
  DistMatrix<T> X = program::allocate_matrix<T>(what.grid, space.layout(what.shape.nrhs));
  X.fill([](Index i, Index j) { return counter_random<T>(seed_of_input, i, j); });
  return X;
}

/// This rank's block, without gaps.
template <Scalar T>
std::vector<T> on_host(const DistMatrix<T>& X) {
  const std::shared_ptr<Backend>& backend = X.grid()->backend();
  const MatrixView<const T> local = X.local();
  const Buffer<T> packed(backend, local.size());
  std::vector<T> values(static_cast<std::size_t>(local.size()));
  if (values.empty()) return values;
  backend->kernels<T>().copy(local, packed.matrix(local.rows, local.cols));
  backend->download(packed.data(), values.data(), local.size() * Index{sizeof(T)});
  return values;
}

/// The larger of what the members have (collective over the grid).
inline double maximum(const ProcessGrid& grid, double value) {
  std::array<double, 1> all{value};
  grid.comm().all_reduce(all, ReduceOp::max);
  return all[0];
}

/// The sum of what the members have (collective over the grid).
template <class Number>
Number sum(const ProcessGrid& grid, Number value) {
  std::array<Number, 1> all{value};
  grid.comm().all_reduce(all, ReduceOp::sum);
  return all[0];
}

}  // namespace gridlops::bench
