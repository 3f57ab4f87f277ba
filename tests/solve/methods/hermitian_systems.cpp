// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <string>

#include "gridlops/ops/operator_algebra.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index n = 37;

/// Computes (A + D²I)⁻¹ b by eigenvectors.
template <Scalar T>
std::vector<T> exact_solution(const KnownSpectrum<T>& A, const std::vector<double>& values, double damp,
                              const Element<T>& b, Index j) {
  std::vector<T> x(values.size(), T(0));
  for (Index k = 0; k < A.cols(); ++k) {
    T component(0);
    for (Index i = 0; i < A.cols(); ++i) component += conjugate(A.right(i, k)) * b(i, j);
    component *= static_cast<Real<T>>(1 / (values[static_cast<std::size_t>(k)] + damp * damp));
    for (Index i = 0; i < A.cols(); ++i) x[static_cast<std::size_t>(i)] += component * A.right(i, k);
  }
  return x;
}

/// Every other eigenvalue is negative.
std::vector<double> indefinite(std::vector<double> values) {
  for (std::size_t k = 1; k < values.size(); k += 2) values[k] = -values[k];
  return values;
}

template <Scalar T>
void check_solution(SolverFunction<T> solver, const GridPtr& grid, Algorithm algorithm,
                    const std::vector<double>& values, double condition, SolveOptions options,
                    bool initial_guess) {
  const Index nrhs = 7;
  const auto matrix = KnownSpectrum<T>::hermitian(values);
  const OperatorPtr<T> A = square_operator(grid, algorithm, matrix);
  const Element<T> b = [&](Index i, Index j) {
    return j == 1 ? matrix.left(i, 3) : j == 2 ? T(0) : counter_random<T>(4, i, j);
  };
  const Element<T> guess = initial_guess ? random_elements<T>(9) : Element<T>{};
  const Solution<T> solution = solve<T>(solver, *A, nrhs, b, options, guess);
  if (!grid->is_member()) {
    CHECK(solution.report.columns.empty());
    return;
  }
  const WholeSystem<T> system(cg, n, n, Element<T>(matrix), b, options, guess);
  check_report(system, solution, grid->comm());
  CHECK(solution.report.solver == (solver == SolverFunction<T>(&cg<T>) ? "cg" : "minres"));
  const bool to_the_end = system.tolerance() < 1e-100;
  for (Index j = 0; j < nrhs; ++j) {
    CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), condition, options.damp, initial_guess, j,
            solution.verdict(j).iterations);
    const bool exact = j == 2 && !initial_guess;
    if (exact) CHECK(solution.verdict(j).iterations == 0);
    CHECK(std::string(name_of(solution.verdict(j).reason)) ==
          (to_the_end && !exact ? "stagnated" : "converged"));
    const std::vector<T> expected = exact_solution(matrix, values, options.damp.one_or(0), b, j);
    const std::vector<T> x = solution.column(j);
    if (j == 2) {
      CHECK(norm_of(x) <= 10 * condition * std::max(system.tolerance(), 20 * epsilon_of<T>) * std::sqrt(n));
    } else if (to_the_end) {
      CHECK(relative_difference(x, expected) <= 20 * condition * epsilon_of<T>);
    } else {
      const auto norms = system.norms(j, x);
      CHECK(relative_difference(x, expected) <=
            2 * condition * system.tolerance() * norms.reference / norm_of(expected) +
                100 * condition * epsilon_of<T>);
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("CG and MINRES solve Hermitian positive definite systems", "", float, double,
                   std::complex<float>, std::complex<double>) {
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const double damp : {0.0, 0.3}) {
        SolveOptions options;
        options.damp = damp;
        for (const bool guess : {false, true}) {
          const std::vector<double> values = geometric(n, 30);
          check_solution<TestType>(cg, grid, algorithm, values, 30, options, guess);
          check_solution<TestType>(minres, grid, algorithm, values, 30, options, guess);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("CG far past convergence stagnates, as accurate as it can be", "", double,
                   std::complex<float>) {
  const auto grid = compact_grids().front();
  for (const double condition : {3.0, 30.0, 1e4}) {
    for (const double damp : {0.0, 0.1}) {
      SolveOptions options;
      options.damp = damp;
      options.tolerance = 1e-300;
      options.max_iterations = 2000;
      check_solution<TestType>(cg, grid, Algorithm::summa, geometric(n, condition), condition, options,
                               false);
    }
  }
}

TEST_CASE("CG takes columns up again whose recurrence claimed too much") {
  for (const auto& grid : compact_grids()) {
    const std::vector<double> values = geometric(n, 100);
    const auto matrix = KnownSpectrum<std::complex<float>>::hermitian(values);
    const auto A = square_operator(grid, Algorithm::stationary_a, matrix);
    const auto b = random_elements<std::complex<float>>(4);
    for (const double tolerance : {1e-5, 3e-6, 1e-6}) {
      SolveOptions options;
      options.tolerance = tolerance;
      const auto solution = solve<std::complex<float>>(cg, *A, 20, b, options);
      if (!grid->is_member()) continue;
      check_report(WholeSystem<std::complex<float>>(cg, n, n, matrix, b, options), solution, grid->comm());
      for (const ColumnReport& column : solution.report.columns)
        CHECK((column.reason == StopReason::converged || column.reason == StopReason::stagnated ||
               column.reason == StopReason::iteration_limit));
    }
  }
}

TEMPLATE_TEST_CASE("CG breaks down for the columns that meet a negative eigenvalue, and for no other", "",
                   double, std::complex<float>) {
  std::vector<double> values = geometric(n, 3);
  values[4] = -0.5;
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : {Algorithm::block, Algorithm::summa}) {
      const auto matrix = KnownSpectrum<TestType>::hermitian(values);
      const auto A = square_operator(grid, algorithm, matrix);
      const Element<TestType> b = [&](Index i, Index j) {
        switch (j) {
          case 0:
          case 3:
            return matrix.left(i, 4);  // an eigenvector of the negative eigenvalue
          case 1:
            return matrix.left(i, 3);
          case 2:
            return TestType(0);
          default:  // the positive eigenvalues alone
            return matrix.left(i, 5) + matrix.left(i, 6) + matrix.left(i, 20);
        }
      };
      SolveOptions options;
      const auto solution = solve<TestType>(cg, *A, 6, b, options);
      if (!grid->is_member()) continue;
      check_report(WholeSystem<TestType>(cg, n, n, Element<TestType>(matrix), b, options), solution,
                   grid->comm());
      for (Index j = 0; j < 6; ++j) {
        const bool negative = j == 0 || j == 3;
        CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), j);
        CHECK(solution.verdict(j).reason == (negative ? StopReason::breakdown : StopReason::converged));
        if (negative) CHECK(norm_of(solution.column(j)) == 0);
      }
      // Damping past the eigenvalue makes it positive definite.
      options.damp = 1;
      const auto damped_solution = solve<TestType>(cg, *A, 6, b, options);
      for (const ColumnReport& column : damped_solution.report.columns)
        CHECK(column.reason == StopReason::converged);
    }
    std::vector<double> negative = geometric(n, 3);
    for (double& value : negative) value = -value;
    const auto A = square_operator(grid, Algorithm::summa, KnownSpectrum<TestType>::hermitian(negative));
    const auto solution = solve<TestType>(cg, *A, 3, random_elements<TestType>(1));
    for (const ColumnReport& column : solution.report.columns) CHECK(column.reason == StopReason::breakdown);
  }
}

TEMPLATE_TEST_CASE("MINRES solves indefinite systems, and its residual never rises", "", float, double,
                   std::complex<float>, std::complex<double>) {
  const std::vector<double> values = indefinite(geometric(n, 30));
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms)
      for (const bool guess : {false, true})
        check_solution<TestType>(minres, grid, algorithm, values, 30, {}, guess);
    const auto A = square_operator(grid, Algorithm::summa, KnownSpectrum<TestType>::hermitian(values));
    const auto report = solve<TestType>(minres, *A, 3, random_elements<TestType>(4)).report;
    std::vector<double> last(3, std::numeric_limits<double>::infinity());
    for (const IterationRecord& record : report.history)
      for (std::size_t k = 0; k < record.columns.size(); ++k) {
        double& before = last[static_cast<std::size_t>(record.columns[k])];
        CHECK(record.residual_norms[k] <= before);
        before = record.residual_norms[k];
      }
  }
}

TEST_CASE("MINRES takes a shift D² for each column") {
  const std::vector<double> values = indefinite(geometric(n, 30)), damps{0, 0.3, 1.5};
  const auto matrix = KnownSpectrum<std::complex<double>>::hermitian(values);
  const auto b = random_elements<std::complex<double>>(4);
  for (const auto& grid : compact_grids()) {
    const auto A = square_operator(grid, Algorithm::stationary_a, matrix);
    SolveOptions options;
    options.damp = damps;
    options.tolerance = 1e-10;
    const auto solution = solve<std::complex<double>>(minres, *A, 3, b, options);
    if (!grid->is_member()) continue;
    for (Index j = 0; j < 3; ++j) {
      CAPTURE(describe(*grid), j);
      CHECK(solution.verdict(j).reason == StopReason::converged);
      const auto expected = exact_solution(matrix, values, damps[static_cast<std::size_t>(j)], b, j);
      CHECK(relative_difference(solution.column(j), expected) <= 1e-7);
    }
  }
}

TEMPLATE_TEST_CASE(
    "MINRES on a singular matrix solves what it can, and leaves the least residual of the rest", "", double,
    std::complex<float>) {
  std::vector<double> values = indefinite(geometric(n, 3));
  values[4] = values[9] = 0;
  const auto matrix = KnownSpectrum<TestType>::hermitian(values);
  const Element<TestType> b = [&](Index i, Index j) {
    switch (j) {
      case 0:
        return matrix.left(i, 4);  // nothing of it is in the range
      case 1:
        return matrix.left(i, 3) + matrix.left(i, 20);
      case 2:
        return matrix.left(i, 3) + matrix.left(i, 4) + matrix.left(i, 9);
      default:
        return counter_random<TestType>(4, i, j);
    }
  };
  for (const auto& grid : compact_grids()) {
    const auto A = square_operator(grid, Algorithm::summa, matrix);
    const auto solution = solve<TestType>(minres, *A, 4, b);
    SolveOptions loose;
    loose.tolerance = 1e-2;  // holds for the residual's part in the range, too, so columns end earlier
    const auto early = solve<TestType>(minres, *A, 4, b, loose);
    if (!grid->is_member()) continue;
    CHECK(early.verdict(3).reason == StopReason::breakdown);
    CHECK(early.verdict(3).iterations + 4 <= solution.verdict(3).iterations);
    for (Index j = 0; j < 4; ++j) {
      const std::vector<TestType> x = solution.column(j);
      double outside = 0, gradient = 0;
      for (Index k = 0; k < n; ++k) {  // of the residual, in the basis of eigenvectors
        TestType of_b(0), of_x(0);
        for (Index i = 0; i < n; ++i) {
          of_b += conjugate(matrix.left(i, k)) * b(i, j);
          of_x += conjugate(matrix.left(i, k)) * x[static_cast<std::size_t>(i)];
        }
        const double value = values[static_cast<std::size_t>(k)];
        if (value == 0) outside += std::norm(of_b);
        gradient += std::norm(value * (std::complex<double>(of_b) - value * std::complex<double>(of_x)));
      }
      const double tolerance = default_tolerance(scalar_type_of<TestType>),
                   error = 2 * tolerance * std::sqrt(static_cast<double>(n));
      CAPTURE(describe(*grid), j, std::sqrt(outside), std::sqrt(gradient));
      CHECK(solution.verdict(j).reason == (j == 1 ? StopReason::converged : StopReason::breakdown));
      CHECK(std::abs(solution.verdict(j).residual_norm - std::sqrt(outside)) <= error);
      if (j != 1) CHECK(std::sqrt(gradient) <= error);
      CHECK(norm_of(x) <= 10 * std::sqrt(static_cast<double>(n)));
    }
  }
}

TEMPLATE_TEST_CASE("CG and MINRES hand out nothing worse than 0 where a singular system has no solution", "",
                   float, double) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    for (const int digits : {0, 3, 6}) {
      std::vector<double> values = geometric(n, std::pow(10.0, digits));
      std::fill(values.begin() + 12, values.end(), 0.0);
      const auto A = square_operator(grid, Algorithm::stationary_a, KnownSpectrum<T>::hermitian(values));
      for (const double tolerance : {1e-4, 0.0}) {
        SolveOptions options;
        options.tolerance = tolerance;
        options.max_iterations = 500;
        const Element<T> b = random_elements<T>(4);
        const Solution<T> by_cg = solve<T>(cg, *A, 8, b, options),
                          by_minres = solve<T>(minres, *A, 8, b, options);
        if (!grid->is_member()) continue;
        for (Index j = 0; j < 8; ++j) {
          double bb = 0;
          for (Index i = 0; i < n; ++i) bb += std::norm(b(i, j));
          const double of_zero = std::sqrt(bb);
          CAPTURE(describe(*grid), digits, tolerance, j, name_of(by_cg.verdict(j).reason));
          CHECK_FALSE(is_solved(by_cg.verdict(j).reason));
          // A limit of iterations is reached where residuals still may rise by √κ.
          const bool breaks_down = by_cg.verdict(j).reason == StopReason::breakdown;
          CHECK(by_cg.verdict(j).residual_norm <=
                of_zero * (breaks_down ? 1.001 : 1 / std::sqrt(epsilon_of<T>)));
          CHECK(epsilon_of<T> * norm_of(by_cg.column(j)) <= 1.001 * of_zero);
          CHECK(by_minres.verdict(j).reason == StopReason::breakdown);
          CHECK(by_minres.verdict(j).residual_norm <= 1.001 * of_zero);
        }
      }
    }
  }
}

// The residual of a solution is rounding of ‖A‖‖x‖, which is more than half of the digits of b.
TEST_CASE("MINRES says that rounding explains what it leaves, in single precision, too") {
  for (const auto& grid : compact_grids()) {
    for (const double condition : {3e4, 3e5}) {
      std::vector<double> values = indefinite(geometric(n, 3));
      values[7] = 1 / condition;
      const auto matrix = KnownSpectrum<float>::hermitian(values);
      const auto A = square_operator(grid, Algorithm::stationary_a, matrix);
      SolveOptions options;
      options.max_iterations = 3000;
      for (const double tolerance : {1e-4, 1e-6, 0.0}) {
        options.tolerance = tolerance;
        const Element<float> b = [&](Index i, Index j) {
          return counter_random<float>(4, i, j) + 4 * matrix.left(i, 7);
        };
        const auto solution = solve<float>(minres, *A, 6, b, options);
        if (!grid->is_member()) continue;
        for (Index j = 0; j < 6; ++j) {
          const ColumnReport& column = solution.verdict(j);
          CAPTURE(describe(*grid), condition, tolerance, j, name_of(column.reason), column.iterations,
                  column.residual_norm, norm_of(solution.column(j)));
          CHECK(is_solved(column.reason));
          // As the record of verdicts has it, with the rounding of sums.
          CHECK(
              column.residual_norm <=
              std::max(10 * epsilon_of<float> * std::sqrt(n) * norm_of(solution.column(j)), 20 * tolerance));
        }
      }
    }
  }
}

TEST_CASE("CG keeps a column that is not finite to itself") {
  for (const auto& grid : compact_grids()) {
    const auto matrix = KnownSpectrum<double>::hermitian(geometric(n, 3));
    const auto A = square_operator(grid, Algorithm::summa, matrix);
    const Element<double> b = [](Index i, Index j) {
      return i == 5 && j == 1 ? std::nan("") : counter_random<double>(4, i, j);
    };
    const auto solution = solve<double>(cg, *A, 4, b);
    if (!grid->is_member()) continue;
    check_report(WholeSystem<double>(cg, n, n, Element<double>(matrix), b, {}), solution, grid->comm());
    for (Index j = 0; j < 4; ++j)
      CHECK(solution.verdict(j).reason == (j == 1 ? StopReason::non_finite : StopReason::converged));
  }
}

TEST_CASE("CG refuses an operator whose models and data differ, and says what to do") {
  for (const auto& grid : compact_grids()) {
    const auto wide = dense_operator<double>(grid, Algorithm::summa, 5, 9, random_elements<double>(1));
    DistMatrix<double> B(grid, wide->range().layout(2)), X(grid, wide->domain().layout(2));
    CHECK_THROWS_AS(cg(*wide, B, X), ShapeError);
    CHECK(message_of<Error>([&] { cg(*wide, B, X); }).find("cgls()") != std::string::npos);
    const auto square =
        dense_operator<double>(grid, Algorithm::stationary_a, 9, 9, random_elements<double>(1));
    DistMatrix<double> B_square(grid, square->range().layout(2)), X_square(grid, square->domain().layout(2));
    CHECK_THROWS_AS(cg(*square, B_square, X_square), ShapeError);
    CHECK(message_of<Error>([&] { cg(*square, B_square, X_square); }).find("identity()") !=
          std::string::npos);
  }
}

TEST_CASE("An exact guess ends before the first iteration, whatever the size of A") {
  using T = double;
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    const Space space{grid, Cut::balanced(Axis::all, 5, *grid), Axis::uncut};
    for (const int power : {0, 444, -444}) {
      const OperatorPtr<T> A = scale(std::ldexp(5.0, power), identity<T>(space));
      DistMatrix<T> X(grid, space.layout(2)), B(grid, space.layout(2));
      for (const auto solver : {&cg<T>, &minres<T>}) {
        CAPTURE(describe(*grid), power);
        X.fill([&](Index i, Index j) { return std::ldexp(1 / (3.0 + static_cast<double>(i + j)), -power); });
        A->apply(1, X, 0, B);
        const SolveReport report = solver(*A, B, X, {.tolerance = 1e-12, .initial_guess = true});
        for (const ColumnReport& column : report.columns) {
          CHECK(column.reason == StopReason::converged);
          CHECK(column.iterations == 0);
        }
      }
    }
  }
}
