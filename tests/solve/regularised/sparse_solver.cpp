// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>

#include "gridlops/solve/spectrum.hpp"
#include "solve/regularised/sparse_problems.hpp"
#include "support/catch.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 21, n = 34;
constexpr double alpha = 0.9;  // ‖A‖ = 1

template <Scalar T>
KnownSpectrum<T> test_matrix(double condition = 5) {
  return {m, n, geometric(m, condition)};
}

/// A problem with a unique optimum, to which iterations come nearer by a constant factor at least.
constexpr Index tall_m = 40, tall_n = 24;
template <Scalar T>
KnownSpectrum<T> tall_matrix(double condition) {
  return {tall_m, tall_n, geometric(tall_n, condition)};
}

/// Right-hand sides that need thresholds of their own.
std::vector<double> own_lambdas(Index nrhs) {
  std::vector<double> lambdas;
  for (Index j = 0; j < nrhs; ++j) lambdas.push_back(0.02 * static_cast<double>(j + 1));
  return lambdas;
}

struct NaiveCase {
  Threshold kind = Threshold::soft;
  bool momentum = false, sparsifier = false, guess = false;
  std::vector<double> decay{};
};

template <Scalar T>
void compare_with_naive(const GridPtr& grid, Algorithm algorithm, const NaiveCase& chosen) {
  constexpr Index nrhs = 4, iterations = 25;
  const KnownSpectrum<T> matrix = test_matrix<T>(), unitary(n, n, std::vector<double>(n, 1.0), 7);
  const auto A = dense_operator(grid, algorithm, matrix);
  OperatorPtr<T> S = dense_operator(grid, algorithm, unitary);
  S = product(identity<T>(A->domain(), S->range()), S);
  const Element<T> b = random_elements<T>(4), guess = chosen.guess ? random_elements<T>(6) : Element<T>{};
  SolveOptions options;
  options.lambda = own_lambdas(nrhs);
  options.threshold = chosen.kind;
  options.decay = chosen.decay;
  options.step = alpha;
  options.tolerance = 0;
  options.max_iterations = iterations;
  const Solution<T> solution =
      solve_sparse(chosen.momentum, *A, chosen.sparsifier ? S.get() : nullptr, nrhs, b, options, guess);
  if (!grid->is_member()) return;
  CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), static_cast<int>(chosen.kind), chosen.momentum,
          chosen.sparsifier, chosen.guess);
  check_same_everywhere(solution.report, grid->comm());
  CHECK(solution.report.solver == (chosen.momentum ? "fista" : "ista"));
  for (Index j = 0; j < nrhs; ++j) {
    NaiveSparse<T> naive(m, n, Element<T>(matrix), b, j);
    if (chosen.sparsifier) naive.set_sparsifier(Element<T>(unitary));
    std::vector<T> start(n, T(0));
    for (Index i = 0; chosen.guess && i < n; ++i) start[static_cast<std::size_t>(i)] = guess(i, j);
    const auto expected = naive.solve(chosen.momentum, chosen.kind, options.lambda[j], alpha, iterations,
                                      naive.widened(start), chosen.decay);
    CHECK(relative_difference(solution.column(j), expected) <= 1e-11);
    // Where a threshold leaves nothing, zero is the solution.
    const bool nothing = norm_of(solution.column(j)) == 0;
    CHECK(solution.verdict(j).reason == (nothing ? StopReason::converged : StopReason::iteration_limit));
    if (!nothing) CHECK(solution.verdict(j).iterations == iterations);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("The iterates of ISTA and FISTA are those of their definitions", "", double,
                   std::complex<double>) {
  for (const auto& grid : compact_grids()) {
    for (const Threshold kind : {Threshold::soft, Threshold::hard, Threshold::half}) {
      for (const bool momentum : {false, true}) {
        for (const Algorithm algorithm : all_algorithms)
          compare_with_naive<TestType>(grid, algorithm, {kind, momentum});
        compare_with_naive<TestType>(grid, Algorithm::summa, {kind, momentum, true});
        compare_with_naive<TestType>(grid, Algorithm::block,
                                     {kind, momentum, true, true, {1, 0.9, 0.5, 0.8}});
        compare_with_naive<TestType>(grid, Algorithm::stationary_a, {kind, momentum, false, true, {2, 1}});
      }
    }
  }
}

namespace {

struct Way {
  bool momentum = false, backtracking = false, restart = false;
  std::optional<double> step{};
};

std::vector<Way> ways() {
  return {{false},
          {true},
          {true, false, true},
          {false, true},
          {true, true},
          {true, true, true, 50.0},
          {false, true, false, 1e6},
          {false, false, false, 1.6}};
}

/// λ = 0.3‖Aᴴb‖∞.
template <Scalar T>
SolveOptions lasso_options(const Element<T>& A, const Element<T>& b, Index nrhs, const Way& way) {
  SolveOptions options;
  std::vector<double> lambdas;
  for (Index j = 0; j < nrhs; ++j)
    lambdas.push_back(0.3 * NaiveSparse<T>(tall_m, tall_n, A, b, j).largest_lambda());
  options.lambda = lambdas;
  options.tolerance = sizeof(Real<T>) == 8 ? 1e-10 : 1e-5;
  options.max_iterations = 3000;
  options.backtracking = way.backtracking;
  options.monotone = way.restart;
  options.step = way.step;
  return options;
}

}  // namespace

TEMPLATE_TEST_CASE("Sparse columns that converge are at the optimum of the lasso, whatever the options", "",
                   float, double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  constexpr Index nrhs = 5;
  for (const auto& grid : compact_grids()) {
    const KnownSpectrum<T> matrix = tall_matrix<T>(3);
    // The columns of SUMMA lie on different ranks, and need not all take the same steps.
    const auto A = dense_operator(grid, Algorithm::summa, matrix);
    const Element<T> b = random_elements<T>(4);
    for (const Way& way : ways()) {
      const auto options = lasso_options<T>(Element<T>(matrix), b, nrhs, way);
      const auto solution = solve_sparse<T>(way.momentum, *A, nullptr, nrhs, b, options);
      if (!grid->is_member()) continue;
      check_same_everywhere(solution.report, grid->comm());
      for (Index j = 0; j < nrhs; ++j) {
        CAPTURE(way.momentum, way.backtracking, way.restart, way.step.value_or(0), j,
                name_of(solution.verdict(j).reason), solution.verdict(j).iterations);
        CHECK(solution.verdict(j).reason == StopReason::converged);
        const NaiveSparse<T> naive(tall_m, tall_n, Element<T>(matrix), b, j);
        const auto x = naive.widened(solution.column(j));
        const double lambda = options.lambda[j];
        CHECK(naive.optimality_defect(x, lambda) <= (sizeof(Real<T>) == 8 ? 1e-7 : 2e-2));
        CHECK(std::count(x.begin(), x.end(), Extended<T>(0)) >= 3);
        double squares = 0;
        for (const auto& r : naive.residual(x)) squares += static_cast<double>(std::norm(r));
        CHECK(solution.verdict(j).residual_norm == Approx(std::sqrt(squares)).epsilon(100 * epsilon_of<T>));
        CHECK(solution.verdict(j).operator_norm <= 1 + 1e-3);
      }
    }
  }
}

namespace {

constexpr Index many = 40, zero_column = 3, nan_column = 11, twin = 17, scaled_column = 23,
                solved_column = 29;
constexpr double tiny_factor = 1e-12;

/// Column 17 is column 16 once more.
template <Scalar T>
Element<T> odd_columns() {
  return [](Index i, Index j) {
    if (j == zero_column) return T(0);
    if (j == nan_column && i == 5) return T(std::numeric_limits<Real<T>>::quiet_NaN());
    if (j == twin) return counter_random<T>(4, i, twin - 1);
    return counter_random<T>(4, i, j) * static_cast<Real<T>>(j == scaled_column ? tiny_factor : 1.0);
  };
}

template <Scalar T>
void check_odd_columns(const GridPtr& grid, Algorithm algorithm, bool momentum, Index batch,
                       bool careful = false) {
  MatrixMultOptions mult_options;
  mult_options.column_stable = true;
  const auto A = dense_operator(grid, algorithm, tall_matrix<T>(2), mult_options);
  const Element<T> b = odd_columns<T>();
  SolveOptions options;
  std::vector<double> lambdas(many, 0.1);
  lambdas[scaled_column] = 0.1 * tiny_factor;
  options.lambda = lambdas;
  options.column_stable = true;
  options.max_iterations = 2000;
  options.tolerance = 1e-6;
  if (careful) options.step = 20;  // each column refuses other steps
  options.backtracking = careful;
  options.monotone = careful && momentum;
  const auto alone = [&](Index j, const Element<T>& guess) {
    SolveOptions single = options;
    single.lambda = options.lambda[j];
    return solve_sparse<T>(
        momentum, *A, nullptr, 1, [&b, j](Index i, Index) { return b(i, j); }, single, guess);
  };
  const Element<T> nothing = [](Index, Index) { return T(0); };
  SolveOptions exact = options;
  exact.tolerance = 1e-9;
  exact.monotone = true;
  exact.step = 0.9;
  exact.lambda = {0.1};
  const std::vector<T> model =
      solve_sparse<T>(
          true, *A, nullptr, 1, [&b](Index i, Index) { return b(i, solved_column); }, exact)
          .X;
  const Element<T> guess = [&model](Index i, Index j) {
    return j == solved_column ? model[static_cast<std::size_t>(i)] : T(0);
  };
  options.batch = batch;
  const auto together = solve_sparse<T>(momentum, *A, nullptr, many, b, options, guess);
  options.batch = 0;
  if (!grid->is_member()) {
    CHECK(together.report.columns.empty());
    return;
  }
  CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), momentum, batch);
  check_same_everywhere(together.report, grid->comm());
  CHECK(together.verdict(zero_column).reason == StopReason::converged);
  CHECK(together.verdict(zero_column).iterations == 0);
  CHECK(together.verdict(solved_column).reason == StopReason::converged);
  CHECK(together.verdict(solved_column).iterations == 0);
  CHECK(together.column(solved_column) == model);
  CHECK(together.verdict(nan_column).reason == StopReason::non_finite);
  CHECK(std::isnan(std::abs(together.column(nan_column)[0])));
  CHECK(together.column(twin) == together.column(twin - 1));
  CHECK(together.verdict(twin).iterations == together.verdict(twin - 1).iterations);
  for (const Index j : {Index{0}, Index{16}, scaled_column, Index{31}, Index{39}}) {
    const auto single = alone(j, nothing);
    CAPTURE(j);
    CHECK(together.verdict(j).reason == StopReason::converged);
    CHECK(together.verdict(j).iterations == single.verdict(0).iterations);
    CHECK(together.column(j) == single.X);
  }
}

}  // namespace

TEST_CASE("A sparse column of many is solved as if it were alone") {
  for (const auto& grid : compact_grids()) {
    for (const bool momentum : {false, true}) {
      check_odd_columns<double>(grid, Algorithm::stationary_a, momentum, 0);
      check_odd_columns<double>(grid, Algorithm::summa, momentum, 7);
      check_odd_columns<double>(grid, Algorithm::summa, momentum, 0, true);
    }
    check_odd_columns<std::complex<double>>(grid, Algorithm::block, true, 0);
    check_odd_columns<std::complex<double>>(grid, Algorithm::stationary_b, false, 0);
  }
}

TEMPLATE_TEST_CASE("A step that is too large is a verdict of the columns that it spoils", "", float, double,
                   std::complex<double>) {
  using T = TestType;
  // Columns 0 and 2 meet the large singular value, column 1 does not.
  const Element<T> diagonal_matrix = [](Index i, Index j) { return T(i != j ? 0 : i == 0 ? 4 : 1); };
  const Element<T> b = [](Index i, Index j) { return T(i == (j == 1 ? 3 : 0) ? 1 : 0); };
  for (const auto& grid : compact_grids()) {
    const auto A = dense_operator<T>(grid, Algorithm::stationary_a, m, n, diagonal_matrix);
    for (const bool momentum : {false, true}) {
      for (const double step : {0.9, 1e5}) {
        SolveOptions options;
        options.step = step;
        options.max_iterations = 300;
        options.tolerance = 1e-5;
        const auto solution = solve_sparse<T>(momentum, *A, nullptr, 3, b, options);
        if (!grid->is_member()) continue;
        CAPTURE(momentum, step);
        for (const Index j : {0, 2}) {
          CHECK(std::string(name_of(solution.verdict(j).reason)) == "breakdown");
          CHECK(solution.verdict(j).residual_norm <= 1 + 1e-6);  // as for x = 0
          CHECK(std::isfinite(norm_of(solution.column(j))));
        }
        CHECK(solution.verdict(1).reason == (step < 1 ? StopReason::converged : StopReason::breakdown));
        CHECK(std::isfinite(norm_of(solution.column(1))));
      }
    }
  }
}

TEMPLATE_TEST_CASE("The estimated norm with its factor is above the norm", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  std::vector<double> linear;
  for (Index k = 0; k < 60; ++k) linear.push_back(1 - static_cast<double>(k) / 60);
  for (const auto& grid : compact_grids()) {
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      for (const auto& values : {geometric(60, 1.1), geometric(60, 3), geometric(60, 1e5), linear}) {
        const auto A = dense_operator(grid, Algorithm::summa, KnownSpectrum<T>(80, 60, values, seed));
        if (grid->is_member()) CHECK(1.02 * estimate_norm(*A) >= 1);
      }
    }
  }
}
