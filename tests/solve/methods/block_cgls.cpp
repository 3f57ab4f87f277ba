// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "solve/methods/block_problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {
constexpr Index m = 90, n = 60;
}

namespace {

void compare_iterations(const GridPtr& grid, Index rows, Index cols, Index outliers, Index nrhs) {
  const KnownSpectrum<double> matrix(rows, cols, with_outliers(cols, outliers));
  const auto A = uncut_operator<double>(grid, rows, cols, matrix);
  const Element<double> b = random_elements<double>(4);
  SolveOptions options;
  options.tolerance = 1e-6;
  options.max_iterations = 500;
  const auto alone = solve<double>(cgls, *A, nrhs, b, options);
  const auto together = solve<double>(block_cgls, *A, nrhs, b, options);
  if (!grid->is_member()) return;
  CAPTURE(grid->rows(), grid->cols(), alone.report.iterations, together.report.iterations);
  for (Index j = 0; j < nrhs; ++j) {
    CHECK(together.verdict(j).reason == StopReason::converged);
    CHECK(relative_difference(together.column(j), alone.column(j)) <= 1e-3);
  }
  CHECK(3 * together.report.iterations <= alone.report.iterations);
}

}  // namespace

TEST_CASE("Columns that share a space need a third of the iterations where few directions are large") {
  for (const auto& grid : compact_grids()) compare_iterations(grid, 320, 240, 10, 16);
}

TEST_CASE("A shared space saves iterations for 32 columns of a 3200 x 2400 problem with 20 outliers",
          "[.full]") {
  compare_iterations(compact_grids().back(), 3200, 2400, 20, 32);
}

namespace {

template <Scalar T>
void compare_with_lapack(const GridPtr& grid, double condition, double damp, bool initial_guess, Index nrhs) {
  const KnownSpectrum<T> matrix(m, n, geometric(n, condition));
  const Element<T> b = random_elements<T>(4), guess = initial_guess ? random_elements<T>(9) : Element<T>{};
  SolveOptions options;
  options.damp = damp;
  options.tolerance = sizeof(Real<T>) == 4 ? 1e-5 : 1e-11;
  options.max_iterations = 1000;
  const auto A = uncut_operator<T>(grid, m, n, matrix);
  const Solution<T> solution = solve<T>(block_cgls, *A, nrhs, b, options, guess);
  if (!grid->is_member()) return;
  CAPTURE(grid->rows(), grid->cols(), condition, damp, initial_guess, solution.report.iterations);
  check_all<T>(grid, m, n, matrix, b, options, solution, guess);
  const double kappa = std::min(condition, damp > 0 ? 1 / damp : condition);
  for (Index j = 0; j < nrhs; ++j) {
    CHECK(std::string(name_of(solution.verdict(j).reason)) == "converged");
    const auto expected = lapack_solution<T>(m, n, matrix, b, j, damp);
    CHECK(relative_difference(solution.column(j), expected) <= 10 * kappa * options.tolerance->one_or(0));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("Block CGLS finds what LAPACK's least squares find", "", float, double,
                   std::complex<float>, std::complex<double>) {
  for (const auto& grid : compact_grids())
    for (const double damp : {0.0, 0.3})
      for (const bool guess : {false, true}) compare_with_lapack<TestType>(grid, 30, damp, guess, 5);
}

TEMPLATE_TEST_CASE("Block CGLS finds what LAPACK's least squares find at a condition of 1e4", "", double,
                   std::complex<double>) {
  for (const auto& grid : compact_grids())
    for (const Index nrhs : {1, 7}) compare_with_lapack<TestType>(grid, 1e4, 0, false, nrhs);
}

TEST_CASE("Block CGLS goes on from a gradient that is near the rounding of A") {
  using T = std::complex<float>;
  const auto grid = compact_grids().back();
  const KnownSpectrum<T> matrix(m, n, geometric(n, 30));
  const auto A = uncut_operator<T>(grid, m, n, matrix);
  SolveOptions options;
  options.damp = 0.3;
  options.tolerance = 4e-6;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    const auto solution = solve<T>(block_cgls, *A, 5, random_elements<T>(seed), options);
    if (!grid->is_member()) continue;
    CAPTURE(seed);
    // Rounding decides whether the last step reaches the tolerance.
    for (Index j = 0; j < 5; ++j) {
      CHECK(is_solved(solution.verdict(j).reason));
      CHECK(solution.verdict(j).tested_norm <= 2 * options.tolerance->one_or(0));
    }
  }
}

TEST_CASE("Block CGLS takes the iterations of CGLS for a single column where rounding cannot decide") {
  for (const auto& grid : compact_grids()) {
    const KnownSpectrum<double> matrix(m, n, geometric(n, 3));
    const auto A = uncut_operator<double>(grid, m, n, matrix);
    const Element<double> b = random_elements<double>(4);
    const auto alone = solve<double>(cgls, *A, 1, b), block = solve<double>(block_cgls, *A, 1, b);
    if (!grid->is_member()) continue;
    CHECK(alone.report.iterations == block.report.iterations);
    CHECK(relative_difference(block.column(0), alone.column(0)) <= 1e-10);
    REQUIRE(alone.report.history.size() == block.report.history.size());
    for (std::size_t k = 0; k < alone.report.history.size(); ++k) {
      CHECK(block.report.history[k].tested_norms[0] ==
            Approx(alone.report.history[k].tested_norms[0]).epsilon(1e-4));
      CHECK(block.report.history[k].residual_norms[0] ==
            Approx(alone.report.history[k].residual_norms[0]).epsilon(1e-8));
    }
  }
}

TEMPLATE_TEST_CASE("Block CGLS solves for more columns than there are unknowns, and than data", "", float,
                   std::complex<double>) {
  for (const auto& grid : compact_grids()) {
    for (const Index rows : {Index{30}, Index{7}}) {
      const KnownSpectrum<TestType> matrix(rows, 11, geometric(std::min<Index>(rows, 11), 10));
      const auto A = uncut_operator<TestType>(grid, rows, 11, matrix);
      const Element<TestType> b = random_elements<TestType>(4);
      const auto solution = solve<TestType>(block_cgls, *A, 40, b);
      if (!grid->is_member()) continue;
      CAPTURE(grid->rows(), grid->cols(), rows, solution.report.iterations);
      check_all<TestType>(grid, rows, 11, matrix, b, {}, solution);
      for (Index j = 0; j < 40; ++j) CHECK(solution.verdict(j).reason == StopReason::converged);
      const IterationRecord& last = solution.report.history.back();
      for (std::size_t k = 0; k < last.columns.size(); ++k)
        CHECK(std::abs(last.residual_norms[k] - solution.verdict(last.columns[k]).residual_norm) <= 1e-4);
      CHECK(solution.report.iterations <= 4);
    }
  }
}

TEST_CASE("Block CGLS finds the solution of least norm where the matrix has lost rank") {
  for (const auto& grid : compact_grids()) {
    std::vector<double> values = geometric(n, 100);
    std::fill(values.begin() + n / 2, values.end(), 0.0);
    const KnownSpectrum<double> matrix(m, n, values);
    const auto A = uncut_operator<double>(grid, m, n, matrix);
    const Element<double> b = random_elements<double>(4);
    SolveOptions options;
    options.tolerance = 1e-11;
    const auto solution = solve<double>(block_cgls, *A, 8, b, options);
    if (!grid->is_member()) continue;
    check_all<double>(grid, m, n, matrix, b, options, solution);
    for (Index j = 0; j < 8; ++j) {
      CHECK(solution.verdict(j).reason == StopReason::converged);
      for (Index k = n / 2; k < n; ++k) {
        double in_kernel = 0;
        for (Index i = 0; i < n; ++i)
          in_kernel += matrix.right(i, k) * solution.column(j)[static_cast<std::size_t>(i)];
        CHECK(std::abs(in_kernel) <= 1e-11 * norm_of(solution.column(j)));
      }
    }
  }
}
