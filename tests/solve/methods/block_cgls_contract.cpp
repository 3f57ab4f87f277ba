// SPDX-License-Identifier: BSD-3-Clause
// Block CGLS takes columns that differ, and keeps the promises of all solvers.
#include <algorithm>
#include <limits>

#include "solve/methods/block_problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {
constexpr Index m = 90, n = 60;
}

namespace {

/// Column 0 is zero, 1 holds NaN or infinity, 2 equals 3, 4 is tiny, the guess solves 5, 6 is nearly 7, and 8
/// is a combination of others.
template <Scalar T>
Element<T> awkward_columns(const KnownSpectrum<T>& matrix, double nearly) {
  const Element<T> x = random_elements<T>(9), b = random_elements<T>(4);
  return [=](Index i, Index j) {
    switch (j) {
      case 0:
        return T(0);
      case 1:
        return i == 17 ? T(nearly < 1e-10 ? std::numeric_limits<Real<T>>::infinity()
                                          : std::numeric_limits<Real<T>>::quiet_NaN())
                       : b(i, 1);
      case 3:
        return b(i, 2);
      case 4:
        return static_cast<Real<T>>(1e-12) * b(i, 4);
      case 5: {
        T sum(0);
        for (Index k = 0; k < matrix.cols(); ++k) sum += matrix(i, k) * x(k, 5);
        return sum;
      }
      case 6:
        return b(i, 7) + static_cast<Real<T>>(nearly) * b(i, 6);
      case 8:
        return b(i, 9) + b(i, 10) - b(i, 11);
      default:
        return b(i, j);
    }
  };
}

template <Scalar T>
void solve_awkward_columns(const GridPtr& grid, double nearly, bool guess_given) {
  const Index nrhs = 40;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 10));
  const Element<T> b = awkward_columns(matrix, nearly), x = random_elements<T>(9);
  const Element<T> guess =
      guess_given ? Element<T>([x](Index i, Index j) { return j == 5 ? x(i, j) : T(0); }) : Element<T>{};
  const auto A = uncut_operator<T>(grid, m, n, matrix);
  SolveOptions options;
  const Solution<T> solution = solve<T>(block_cgls, *A, nrhs, b, options, guess);
  if (!grid->is_member()) return;
  CAPTURE(grid->rows(), grid->cols(), nearly, guess_given, solution.report.iterations);
  check_all<T>(grid, m, n, matrix, b, options, solution, guess);
  const double tolerance = sizeof(Real<T>) == 4 ? 1e-4 : 1e-8;
  for (Index j = 0; j < nrhs; ++j) {
    CAPTURE(j, solution.verdict(j).iterations);
    if (j == 1) {
      CHECK(solution.verdict(j).reason == StopReason::non_finite);
      continue;
    }
    CHECK(std::string(name_of(solution.verdict(j).reason)) == "converged");
    if (j == 0) {
      CHECK(norm_of(solution.column(j)) == 0);
      continue;
    }
    CHECK(relative_difference(solution.column(j), lapack_solution<T>(m, n, matrix, b, j, 0)) <=
          100 * tolerance);
  }
  CHECK(solution.verdict(0).iterations == 0);
  if (guess_given) CHECK(solution.verdict(5).iterations <= 1);
  CHECK(relative_difference(solution.column(2), solution.column(3)) <= 20 * tolerance);
}

}  // namespace

TEMPLATE_TEST_CASE("Zero, infinite, equal, tiny, solved and dependent columns leave each other right", "",
                   float, double, std::complex<float>, std::complex<double>) {
  for (const auto& grid : compact_grids())
    for (const double nearly : {1e-4, 1e-9, 1e-12, 1e-14})
      for (const bool guess : {false, true}) solve_awkward_columns<TestType>(grid, nearly, guess);
}

TEST_CASE("Columns that are done early keep what the others have learnt") {
  for (const auto& grid : compact_grids()) {
    const KnownSpectrum<double> matrix(320, 240, with_outliers(240, 10));
    const auto A = uncut_operator<double>(grid, 320, 240, matrix);
    // Every other column has only two singular directions.
    const Element<double> b = [&](Index i, Index j) {
      return j % 2 == 0 ? matrix.left(i, j % 10) + 0.01 * matrix.left(i, (3 * j) % 10)
                        : counter_random<double>(4, i, j);
    };
    SolveOptions options;
    options.tolerance = 1e-6;
    options.max_iterations = 300;
    const auto alone = solve<double>(cgls, *A, 24, b, options),
               together = solve<double>(block_cgls, *A, 24, b, options);
    if (!grid->is_member()) continue;
    check_all<double>(grid, 320, 240, matrix, b, options, together);
    for (Index j = 0; j < 24; ++j) {
      CAPTURE(grid->rows(), grid->cols(), j, together.verdict(j).iterations);
      CHECK(together.verdict(j).reason == StopReason::converged);
      CHECK((j % 2 == 1 || together.verdict(j).iterations <= 3));
    }
    CHECK(3 * together.report.iterations <= alone.report.iterations);
  }
}

TEMPLATE_TEST_CASE("A scale of 1e25 in A or in B changes nothing in block CGLS", "", float,
                   std::complex<float>) {
  for (const auto& grid : compact_grids()) {
    for (const double exponent : {-25.0, 25.0}) {
      for (const bool scales_matrix : {false, true}) {
        const auto factor = static_cast<Real<TestType>>(std::pow(10.0, exponent));
        const KnownSpectrum<TestType> matrix(m, n, geometric(n, 10));
        const Element<TestType> plain(matrix), b = random_elements<TestType>(4);
        const auto scaled = [factor](const Element<TestType>& element) -> Element<TestType> {
          return [element, factor](Index i, Index j) { return factor * element(i, j); };
        };
        const auto A = uncut_operator<TestType>(grid, m, n, scales_matrix ? scaled(plain) : plain);
        const auto solution = solve<TestType>(block_cgls, *A, 5, scales_matrix ? b : scaled(b));
        if (!grid->is_member()) continue;
        CAPTURE(exponent, scales_matrix);
        for (Index j = 0; j < 5; ++j) {
          CHECK(solution.verdict(j).reason == StopReason::converged);
          std::vector<TestType> x = solution.column(j),
                                expected = lapack_solution<TestType>(m, n, plain, b, j, 0);
          for (TestType& element : x) element *= scales_matrix ? factor : 1 / factor;
          CHECK(relative_difference(x, expected) <= 1e-2);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("Far past convergence columns of block CGLS stagnate, as accurate as they can be", "",
                   double, std::complex<float>) {
  for (const auto& grid : compact_grids()) {
    for (const double condition : {3.0, 30.0, 1e4}) {
      if (sizeof(Real<TestType>) == 4 && condition > 1000) continue;
      for (const double damp : {0.0, 0.1}) {
        const KnownSpectrum<TestType> matrix(m, n, geometric(n, condition));
        const auto A = uncut_operator<TestType>(grid, m, n, matrix);
        const Element<TestType> x = random_elements<TestType>(9);
        const Element<TestType> b = [&](Index i, Index j) {
          if (j % 2 == 1) return counter_random<TestType>(4, i, j);
          TestType sum(0);
          for (Index k = 0; k < n; ++k) sum += matrix(i, k) * x(k, j);
          return sum;
        };
        SolveOptions options;
        options.damp = damp;
        options.tolerance = 1e-300;
        options.max_iterations = 500;
        const auto solution = solve<TestType>(block_cgls, *A, 8, b, options);
        if (!grid->is_member()) continue;
        check_all<TestType>(grid, m, n, matrix, b, options, solution);
        const double kappa = std::sqrt((1 + damp * damp) / (1 / (condition * condition) + damp * damp));
        const WholeSystem<TestType> system(block_cgls<TestType>, m, n, matrix, b, options);
        for (Index j = 0; j < 8; ++j) {
          CAPTURE(grid->rows(), grid->cols(), condition, damp, j, solution.verdict(j).iterations);
          CHECK(std::string(name_of(solution.verdict(j).reason)) == "stagnated");
          CHECK(solution.verdict(j).iterations < 500);
          const auto expected = lapack_solution<TestType>(m, n, matrix, b, j, damp);
          const double r = system.norms(j, solution.column(j)).residual + damp * norm_of(expected);
          const double sensitivity = kappa + kappa * kappa * r / norm_of(expected);
          CHECK(relative_difference(solution.column(j), expected) <= 50 * epsilon_of<TestType> * sensitivity);
        }
      }
    }
  }
}

TEST_CASE("Batches bound the block of block CGLS, and each has a space of its own") {
  for (const auto& grid : compact_grids()) {
    const KnownSpectrum<double> matrix(m, n, geometric(n, 30));
    const auto A = uncut_operator<double>(grid, m, n, matrix);
    const Element<double> b = random_elements<double>(4);
    SolveOptions options;
    options.batch = 5;
    const auto batches = solve<double>(block_cgls, *A, 12, b, options);
    const Element<double> last = [&](Index i, Index j) { return b(i, 10 + j); };
    const auto last_two = solve<double>(block_cgls, *A, 2, last, options);
    if (!grid->is_member()) continue;
    check_all<double>(grid, m, n, matrix, b, options, batches);
    for (Index j = 0; j < 12; ++j) CHECK(batches.verdict(j).reason == StopReason::converged);
    // The second time, sums over ranks may be in another order.
    for (Index j = 0; j < 2; ++j)
      CHECK(std::abs(batches.verdict(10 + j).iterations - last_two.verdict(j).iterations) <= 1);
  }
}

TEST_CASE("Block CGLS honours limits, requests to stop and empty blocks") {
  for (const auto& grid : compact_grids()) {
    const KnownSpectrum<double> matrix(m, n, geometric(n, 100));
    const auto A = uncut_operator<double>(grid, m, n, matrix);
    const Element<double> b = random_elements<double>(4);
    SolveOptions options;
    options.max_iterations = 3;
    const auto limited = solve<double>(block_cgls, *A, 4, b, options);
    options.max_iterations = 0;
    const auto none = solve<double>(block_cgls, *A, 4, b, options);
    options.max_iterations = 100;
    options.observers = {after_each_iteration([&](const IterationInfo& info) {
      return info.iteration == 4 && grid->comm().rank() == grid->comm().size() - 1;
    })};
    const auto stopped = solve<double>(block_cgls, *A, 4, b, options);
    const auto empty = solve<double>(block_cgls, *A, 0, b, {});
    if (!grid->is_member()) continue;
    check_all<double>(grid, m, n, matrix, b, options, stopped);
    for (Index j = 0; j < 4; ++j) {
      CHECK(limited.verdict(j).reason == StopReason::iteration_limit);
      CHECK(limited.verdict(j).iterations == 3);
      CHECK(none.verdict(j).reason == StopReason::iteration_limit);
      CHECK(norm_of(none.column(j)) == 0);
      CHECK(stopped.verdict(j).reason == StopReason::user_stop);
      CHECK(stopped.verdict(j).iterations == 4);
    }
    CHECK(limited.report.history.size() == 4);
    CHECK(empty.report.columns.empty());
  }
}

namespace {

void check_reductions(const GridPtr& grid, Index nrhs, bool initial_guess, double damp) {
  const auto A = uncut_operator<double>(grid, m, n, KnownSpectrum<double>(m, n, geometric(n, 3)));
  std::vector<Index> reductions, allocations;
  SolveOptions options;
  options.damp = damp;
  options.observers = {after_each_iteration([&](const IterationInfo&) {
    reductions.push_back(grid->comm().traffic().calls_of(CommOperation::all_reduce));
    allocations.push_back(grid->backend()->allocations());
    return false;
  })};
  const Element<double> guess = initial_guess ? random_elements<double>(2) : Element<double>{};
  const auto solution = solve<double>(block_cgls, *A, nrhs, random_elements<double>(1), options, guess);
  if (!grid->is_member()) return;
  CAPTURE(grid->rows(), grid->cols(), nrhs, initial_guess, damp);
  REQUIRE(reductions.size() > 2);
  for (std::size_t k = 1; k < reductions.size(); ++k) {
    CHECK(reductions[k] - reductions[k - 1] == 4);
    CHECK(allocations[k] == allocations[0]);
  }
}

}  // namespace

TEST_CASE("An iteration of block CGLS takes four reductions, and allocates nothing") {
  for (const auto& grid : compact_grids())
    for (const Index nrhs : {1, 6})
      for (const bool guess : {false, true})
        for (const double damp : {0.0, 0.1}) check_reductions(grid, nrhs, guess, damp);
}

TEST_CASE("An iteration of block CGLS takes at most eight reductions where the block is ill-conditioned") {
  for (const auto& grid : compact_grids()) {
    const KnownSpectrum<double> matrix(m, n, geometric(n, 10));
    const auto A = uncut_operator<double>(grid, m, n, matrix);
    std::vector<Index> reductions;
    SolveOptions options;
    options.observers = {after_each_iteration([&](const IterationInfo&) {
      reductions.push_back(grid->comm().traffic().calls_of(CommOperation::all_reduce));
      return false;
    })};
    solve<double>(block_cgls, *A, 40, awkward_columns(matrix, 1e-9), options);
    if (!grid->is_member()) continue;
    for (std::size_t k = 1; k < reductions.size(); ++k) {
      CHECK(reductions[k] - reductions[k - 1] >= 4);
      CHECK(reductions[k] - reductions[k - 1] <= 8);
    }
  }
}

TEST_CASE("Block CGLS refuses columns that are cut on all ranks, and names a way out") {
  for (const auto& grid : compact_grids()) {
    const auto A =
        dense_operator<double>(grid, Algorithm::summa, KnownSpectrum<double>(m, n, geometric(n, 3)));
    DistMatrix<double> B(grid, A->range().layout(4)), X(grid, A->domain().layout(4));
    B.fill(random_elements<double>(1));
    if (grid->cols() > 1) {
      CHECK_THROWS_AS(block_cgls(*A, B, X), ShapeError);
    } else {
      const SolveReport report = block_cgls(*A, B, X);
      for (const ColumnReport& column : report.columns) CHECK(column.reason == StopReason::converged);
    }
  }
}
