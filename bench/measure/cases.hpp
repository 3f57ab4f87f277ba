// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "bench/benchmarks.hpp"
#include "command_line/grid.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/ops/matrix_mult.hpp"

namespace gridlops::bench {

/// The entries of the lists for a case. "auto" may mean different things on different numbers of ranks, but
/// names one series.
struct Asked {
  std::string algorithm, storage, transport;
};

/// One combination of the lists, with the algorithm and the storage in use.
struct Case {
  std::shared_ptr<const ProcessGrid> grid;
  ProductShape shape;
  Algorithm algorithm = Algorithm::automatic;
  Index panel = 0;
  Storage storage = Storage::columns;
  Asked asked{};
  bool positive_definite = false;  ///< A is Hermitian positive definite, and square
};

/// How A lies on a grid: the number of parts along rows and along columns, and of copies of each.
struct MatrixForm {
  int row_parts = 1, col_parts = 1, copies = 1;
  /// "2-D", "1-D rows", "1-D cols" or "whole"; "1-D rows x2" with two copies.
  std::string text() const;
};
MatrixForm form_of(Algorithm algorithm, GridShape grid);

/// Rank 0 prints to standard error which cases keep copies of A. Throws UsageError on all ranks if zipped
/// lists differ in length.
void warn_of_copies(const Communicator& world, const Cases& cases);

class LastProduct;

/// Calls run() for every combination, on the ranks of its grid (collective over world), with one LastProduct
/// for each grid. If run() throws on all ranks of a grid, all ranks of world throw that error.
void for_each_case(Communicator& world, const Cases& cases,
                   const std::function<void(const Case&, LastProduct&)>& run);

/// Elements are functions of these seeds and the global index, so a check of the results needs no second copy
/// of any data.
inline constexpr std::uint64_t seed_of_A = 1, seed_of_input = 2;

/// The positive definite matrix is a random one plus a diagonal that makes its condition number about 20: the
/// eigenvalues of a random Hermitian matrix with elements of variance v fill ±2√(nv) (Wigner, Ann. Math. 67,
/// 1958).
template <Scalar T>
T element_of_A(const Case& what, Index i, Index j) {
  if (!what.positive_definite) return counter_random<T>(seed_of_A, i, j);
  constexpr double variance = is_complex<T> ? 2.0 / 3 : 1.0 / 3;
  const auto order = static_cast<double>(what.shape.rows);
  if (i == j) return T(static_cast<Real<T>>(2.2 * std::sqrt(order * variance)));
  return i < j ? counter_random<T>(seed_of_A, i, j) : conjugate(counter_random<T>(seed_of_A, j, i));
}

/// A product with a random matrix (collective over the grid).
template <Scalar T>
OperatorPtr<T> random_product(const Case& what) {
  DistMatrix<T> A = allocate_matrix<T>(
      what.grid, matrix_layout(what.algorithm, *what.grid, what.shape.rows, what.shape.cols));
  A.fill([&what](Index i, Index j) { return element_of_A<T>(what, i, j); });
  return matrix_mult(what.algorithm, std::move(A), {.panel = what.panel, .storage = what.storage});
}

/// The product of the last case. The next case has it, too, if only its right-hand sides differ: to fill A
/// takes longer than most of what is measured.
class LastProduct {
 public:
  /// Collective over the grid.
  template <Scalar T>
  OperatorPtr<T> of(const Case& what) {
    OperatorPtr<T>& product = std::get<OperatorPtr<T>>(products_);
    if (product == nullptr || !is_of_last(what)) {
      products_ = {};  // before the next A takes memory
      last_ = what;
      product = random_product<T>(what);
    }
    return product;
  }

 private:
  bool is_of_last(const Case& what) const {
    const auto matrix_of = [](const Case& one) {
      return std::tuple(one.grid, one.shape.rows, one.shape.cols, one.shape.type, one.algorithm, one.panel,
                        one.storage, one.positive_definite);
    };
    return matrix_of(what) == matrix_of(last_);
  }

  Case last_;
  std::tuple<OperatorPtr<float>, OperatorPtr<double>, OperatorPtr<std::complex<float>>,
             OperatorPtr<std::complex<double>>>
      products_;
};

template <Scalar T>
DistMatrix<T> random_input(const Case& what, const Space& space) {
  DistMatrix<T> X = allocate_matrix<T>(what.grid, space.layout(what.shape.nrhs));
  X.fill([](Index i, Index j) { return counter_random<T>(seed_of_input, i, j); });
  return X;
}

}  // namespace gridlops::bench
