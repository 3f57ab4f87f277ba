// SPDX-License-Identifier: BSD-3-Clause
// CG runs with a preconditioner.
#include <algorithm>
#include <cmath>
#include <string>

#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index n = 37, nrhs = 5;

template <Scalar T>
struct Preconditioned {
  Preconditioned(const LinearOperator<T>& A, const LinearOperator<T>& M, Index columns, const Element<T>& b,
                 SolveOptions options, const Element<T>& guess = {})
      : B(A.range().grid, A.range().layout(columns)), X(A.domain().grid, A.domain().layout(columns)) {
    B.fill(b);
    X.fill(guess ? guess : [](Index, Index) { return T(7); });
    options.initial_guess = static_cast<bool>(guess);
    report = cg(A, M, B, X, options);
    solution = {report, everywhere(X), A.cols()};
  }

  DistMatrix<T> B, X;
  SolveReport report;
  Solution<T> solution;
};

std::vector<double> reciprocals(std::vector<double> values) {
  for (double& value : values) value = 1 / value;
  return values;
}

}  // namespace

TEMPLATE_TEST_CASE("Preconditioned with the identity, CG takes its own steps, bit for bit", "", double,
                   std::complex<float>) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    const auto A = square_operator(grid, Algorithm::summa, KnownSpectrum<T>::hermitian(geometric(n, 30)),
                                   {.column_stable = true});
    const auto M = identity<T>(A->domain());
    for (const double damp : {0.0, 0.3}) {
      for (const Element<T>& guess : {Element<T>{}, random_elements<T>(9)}) {
        SolveOptions options;
        options.damp = damp;
        options.column_stable = true;
        const Preconditioned<T> with(*A, *M, nrhs, random_elements<T>(4), options, guess);
        const Solution<T> plain = solve<T>(cg, *A, nrhs, random_elements<T>(4), options, guess);
        CHECK(with.solution.X == plain.X);
        CHECK(numbers_in(with.report) == numbers_in(plain.report));
        CHECK(with.report.solver == "pcg");
      }
    }
  }
}

TEMPLATE_TEST_CASE("Preconditioned with L Lᴴ, CG takes the steps of CG on Lᴴ A L", "", double,
                   std::complex<double>) {
  using T = TestType;
  const Element<T> b = random_elements<T>(4);
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : {Algorithm::block, Algorithm::summa}) {
      const auto A = square_operator(grid, algorithm, KnownSpectrum<T>::hermitian(geometric(n, 30)));
      const auto L = square_operator(grid, algorithm, KnownSpectrum<T>(n, n, geometric(n, 5), 21));
      const auto M = product(L, adjoint(L));
      const auto inner = product(adjoint(L), product(A, L));
      DistMatrix<T> B(grid, A->range().layout(nrhs)), C(grid, A->range().layout(nrhs)),
          Z(grid, A->domain().layout(nrhs)), X = Z.clone();
      B.fill(b);
      L->apply_adjoint(T(1), B, T(0), C);
      for (const Index steps : {1, 4, 9}) {
        SolveOptions options;
        options.tolerance = 0;
        options.max_iterations = steps;
        cg(*inner, C, Z, options);
        L->apply(T(1), Z, T(0), X);
        const std::vector<T> expected = everywhere(X);
        const Preconditioned<T> with(*A, *M, nrhs, b, options);
        if (!grid->is_member()) continue;
        CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), steps);
        // Rounding grows with every step as the directions lose their conjugacy.
        CHECK(relative_difference(with.solution.X, expected) <= 1e-10);
        for (const ColumnReport& column : with.report.columns) {
          CHECK(column.reason == StopReason::iteration_limit);
          CHECK(column.iterations == steps);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("A good preconditioner saves iterations, and is held to the residual itself", "", float,
                   double, std::complex<double>) {
  using T = TestType;
  const std::vector<double> values = geometric(n, 1e3);
  const auto matrix = KnownSpectrum<T>::hermitian(values);
  // M is the inverse of A but for a factor between 1 and 2 in each eigenvalue.
  std::vector<double> rough = reciprocals(values);
  for (std::size_t k = 0; k < rough.size(); ++k) rough[k] *= 1 + static_cast<double>(k % 7) / 6;
  const Element<T> b = random_elements<T>(4);
  for (const auto& grid : compact_grids()) {
    const auto A = square_operator(grid, Algorithm::stationary_a, matrix);
    const auto exact =
        square_operator(grid, Algorithm::stationary_a, KnownSpectrum<T>::hermitian(reciprocals(values)));
    const auto M = square_operator(grid, Algorithm::stationary_a, KnownSpectrum<T>::hermitian(rough));
    SolveOptions options;
    const Preconditioned<T> at_once(*A, *exact, nrhs, b, options), with(*A, *M, nrhs, b, options),
        with_guess(*A, *M, nrhs, b, options, random_elements<T>(9));
    const Solution<T> plain = solve<T>(cg, *A, nrhs, b, options);
    if (!grid->is_member()) continue;
    CAPTURE(grid->rows(), grid->cols());
    const WholeSystem<T> system(cg, n, n, matrix, b, options);
    check_report(system, with.solution, grid->comm());
    check_report(WholeSystem<T>(cg, n, n, matrix, b, options, random_elements<T>(9)), with_guess.solution,
                 grid->comm());
    // Chebyshev: κ = 2 takes at most ln(2√κ(A)/T)/ln((√2+1)/(√2−1)) ≈ 15 iterations for T = 1e-8.
    for (Index j = 0; j < nrhs; ++j) {
      CHECK(with.solution.verdict(j).reason == StopReason::converged);
      CHECK(with.solution.verdict(j).iterations <= 15);
      CHECK(2 * with.solution.verdict(j).iterations < plain.verdict(j).iterations);
      CHECK(at_once.solution.verdict(j).iterations <= 2);
    }
  }
}

TEST_CASE("An indefinite preconditioner breaks down the columns that meet it, and no other") {
  std::vector<double> values = geometric(n, 3);
  const auto matrix = KnownSpectrum<double>::hermitian(values);
  values[4] = -1;
  const auto preconditioner = KnownSpectrum<double>::hermitian(values);
  const Element<double> b = [&](Index i, Index j) {
    return j == 1 ? matrix.left(i, 4) : matrix.left(i, 5 + j) + matrix.left(i, 20);
  };
  for (const auto& grid : compact_grids()) {
    const auto A = square_operator(grid, Algorithm::summa, matrix);
    const auto M = square_operator(grid, Algorithm::summa, preconditioner);
    const Preconditioned<double> with(*A, *M, 3, b, {});
    if (!grid->is_member()) continue;
    for (Index j = 0; j < 3; ++j)
      CHECK(with.solution.verdict(j).reason == (j == 1 ? StopReason::breakdown : StopReason::converged));
    CHECK(norm_of(with.solution.column(1)) == 0);
  }
}

TEST_CASE("A preconditioned iteration takes two reductions, and allocates nothing") {
  for (const auto& grid : compact_grids()) {
    const auto A =
        square_operator(grid, Algorithm::summa, KnownSpectrum<double>::hermitian(geometric(n, 30)));
    const auto M = scale(2.0, identity<double>(A->domain()));
    std::vector<Index> reductions, allocations;
    SolveOptions options;
    options.observers = {after_each_iteration([&](const IterationInfo&) {
      reductions.push_back(grid->comm().traffic().calls_of(CommOperation::all_reduce));
      allocations.push_back(grid->backend()->allocations());
      return false;
    })};
    const Preconditioned<double> with(*A, *M, nrhs, random_elements<double>(4), options);
    if (!grid->is_member()) continue;
    REQUIRE(reductions.size() > 5);
    for (std::size_t k = 1; k < reductions.size(); ++k) CHECK(reductions[k] - reductions[k - 1] == 2);
    CHECK(allocations.front() == allocations.back());
  }
}

TEST_CASE("A preconditioner that does not fit is refused on all ranks") {
  for (const auto& grid : compact_grids()) {
    const auto A = square_operator(grid, Algorithm::summa, KnownSpectrum<double>::hermitian(geometric(n, 3)));
    const auto M =
        square_operator(grid, Algorithm::summa, KnownSpectrum<double>::hermitian(geometric(n - 1, 3)));
    DistMatrix<double> B(grid, A->range().layout(2)), X(grid, A->domain().layout(2));
    CHECK_THROWS_AS(cg(*A, *M, B, X), ShapeError);
    CHECK(message_of<Error>([&] { cg(*A, *M, B, X); }).find("preconditioner") != std::string::npos);
  }
}
