// SPDX-License-Identifier: BSD-3-Clause
// The cases of test_matrixmult.py, on any grid. Integers make all sums exact.
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/band.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "pylops_mpi/whole_arrays.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Y = A X and X = Aᴴ Y of A n × k and X k × m; the matrices have an imaginary part or not.
template <Scalar T>
void check_products(Index n, Index k, Index m, bool complex_A, bool complex_X) {
  const auto matrix = [](std::uint64_t seed, Index rows, Index cols, bool complex) {
    Whole<T> X = integers<T>(seed, rows, cols);
    if (!complex)
      for (T& value : X.values) value = T(std::real(value));
    return X;
  };
  const Whole<T> A = matrix(1, n, k, complex_A), X = matrix(2, k, m, complex_X),
                 Y = matrix(3, n, m, complex_X);
  const Whole<T> forward = multiplied(Op::none, A, X), back = multiplied(Op::adjoint, A, Y);
  for (const GridPtr& grid : all_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      INFO(describe(*grid) << ": " << name_of(algorithm) << ", " << n << " x " << k << " x " << m);
      DistMatrix<T> placed_A(grid, matrix_layout(algorithm, *grid, n, k));
      placed_A.fill(A);
      const OperatorPtr<T> op = matrix_mult(algorithm, std::move(placed_A));
      DistMatrix<T> model = filled(grid, op->domain().layout(m), X), data(grid, op->range().layout(m));
      op->apply(T(1), model, T(0), data);
      CHECK(mismatches(data, forward) == 0);
      data.fill(Y);
      op->apply_adjoint(T(1), data, T(0), model);
      CHECK(mismatches(model, back) == 0);
    }
  }
}

}  // namespace

TEST_CASE("Products of the sizes of PyLops-MPI's list are right by all algorithms on all grids",
          "[pylops_mpi]") {
  check_products<double>(64, 64, 64, false, false);
  check_products<double>(37, 37, 37, false, false);
  check_products<double>(50, 30, 40, false, false);
  check_products<std::complex<double>>(22, 20, 16, true, true);
  check_products<std::complex<double>>(22, 20, 16, true, false);
  check_products<std::complex<double>>(50, 30, 40, false, true);
  check_products<float>(3, 4, 5, false, false);
  check_products<double>(1, 2, 1, false, false);
  check_products<float>(2, 1, 3, false, false);
}

// PyLops-MPI's SUMMA hangs or fails where (√P − 1)·⌈n/√P⌉ > n for some size, as for 5 on 4 × 4 ranks and 1 on
// 3 × 3, and leaves ranks idle where their number is no square.
TEST_CASE("Products whose blocks are ragged or empty are right on all grids", "[pylops_mpi]") {
  for (const auto& [n, k, m] : {std::array<Index, 3>{5, 5, 5},
                                {1, 1, 1},
                                {4, 1, 4},
                                {5, 3, 1},
                                {1, 7, 5},
                                {3, 0, 2},
                                {0, 3, 2},
                                {3, 2, 0}})
    check_products<std::complex<double>>(n, k, m, true, true);
}

TEST_CASE("A matrix and a derivative make a product", "[pylops_mpi]") {
  constexpr Index n = 37, k = 30, m = 8;
  const Whole<double> A = integers<double>(1, n, k), X = integers<double>(2, k, m),
                      Y = integers<double>(3, n, m);
  // Centred differences along the rows of A X, times two.
  Whole<double> D{n, n, std::vector<double>(n * n)};
  for (Index i = 1; i < n - 1; ++i) {
    D.values[static_cast<std::size_t>(i + (i + 1) * n)] = 1;
    D.values[static_cast<std::size_t>(i + (i - 1) * n)] = -1;
  }
  const Whole<double> DA = multiplied(Op::none, D, A);
  for (const GridPtr& grid : all_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      INFO(describe(*grid) << ": " << name_of(algorithm));
      DistMatrix<double> placed_A(grid, matrix_layout(algorithm, *grid, n, k));
      placed_A.fill(A);
      const OperatorPtr<double> matrix = matrix_mult(algorithm, std::move(placed_A));
      Space rows = matrix->range();
      rows.dims = Dims({rows.rows.partition});
      const OperatorPtr<double> op = product(
          band_operator<double>(rows, 0, first_derivative(n, {Derivative::Kind::centered, 0.5})), matrix);
      DistMatrix<double> model = filled(grid, op->domain().layout(m), X), data(grid, op->range().layout(m));
      op->apply(1, model, 0, data);
      CHECK(mismatches(data, multiplied(Op::none, DA, X)) == 0);
      data.fill(Y);
      op->apply_adjoint(1, data, 0, model);
      CHECK(mismatches(model, multiplied(Op::adjoint, DA, Y)) == 0);
    }
  }
}
