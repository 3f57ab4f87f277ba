// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

#include "benchmarks.hpp"
#include "grid.hpp"
#include "gridlops/matrix_mult.hpp"
#include "gridlops/random.hpp"

namespace gridlops::bench {

/// One combination of the lists, with the algorithm and the storage that are used.
struct Case {
  std::shared_ptr<const ProcessGrid> grid;
  ProductShape shape;
  Algorithm algorithm = Algorithm::automatic;
  Index panel = 0;
  Storage storage = Storage::columns;
};

/// Calls run() for every combination, on the ranks of its grid (collective over world). Throws on all ranks
/// what run() throws on all ranks of a grid.
void for_each_case(Communicator& world, const Cases& cases, const std::function<void(const Case&)>& run);

/// Elements are functions of these seeds and the global index, so that results can be checked without a
/// second copy of anything.
inline constexpr std::uint64_t seed_of_A = 1, seed_of_input = 2;

/// A product with a random matrix (collective over the grid).
template <Scalar T>
OperatorPtr<T> random_product(const Case& what) {
  DistMatrix<T> A = program::allocate_matrix<T>(
      what.grid, matrix_layout(what.algorithm, *what.grid, what.shape.rows, what.shape.cols));
  A.fill([](Index i, Index j) { return counter_random<T>(seed_of_A, i, j); });
  return matrix_mult(what.algorithm, std::move(A), {.panel = what.panel, .storage = what.storage});
}

template <Scalar T>
DistMatrix<T> random_input(const Case& what, const Space& space) {
  DistMatrix<T> X = program::allocate_matrix<T>(what.grid, space.layout(what.shape.nrhs));
  X.fill([](Index i, Index j) { return counter_random<T>(seed_of_input, i, j); });
  return X;
}

}  // namespace gridlops::bench
