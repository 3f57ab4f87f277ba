// SPDX-License-Identifier: BSD-3-Clause
// Every number of B has a weight: each column solves its own weighted problem, as LAPACK and as the column
// alone does.
#include "gridlops/solve/weights.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "gridlops/base/error.hpp"
#include "gridlops/solve/error_bound.hpp"
#include "gridlops/solve/factor.hpp"
#include "solve/run/guard.hpp"
#include "support/grids.hpp"
#include "support/lapack.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 45, n = 13, nrhs = 6;
constexpr Index all_missing = 2, all_there = 4;  // columns of B
constexpr double not_there = std::numeric_limits<double>::quiet_NaN();

/// A third of the numbers are missing, and the others have weights from 1/2 to 3/2 times 2ʲ.
double weight(Index i, Index j) {
  if (j == all_missing) return 0;
  if (j == all_there) return 1;
  if (std::abs(counter_uniform(31, i, j)) < 0.33) return 0;
  return std::ldexp(0.5 + std::abs(counter_uniform(32, i, j)), static_cast<int>(j) - 2);
}

/// NaN where a number is missing.
template <Scalar T>
Element<T> data_with_holes() {
  return [](Index i, Index j) { return weight(i, j) == 0 ? T(not_there) : random_elements<T>(4)(i, j); };
}
template <Scalar T>
Element<T> weighted_data() {
  return [](Index i, Index j) {
    return weight(i, j) == 0 ? T(0) : T(static_cast<Real<T>>(weight(i, j))) * random_elements<T>(4)(i, j);
  };
}
template <Scalar T>
Element<T> weights_of() {
  return [](Index i, Index j) { return T(static_cast<Real<T>>(weight(i, j))); };
}
/// diag(w) A of column j.
template <Scalar T>
Element<T> weighted_matrix(const Element<T>& A, Index j) {
  return [A, j](Index i, Index k) { return T(static_cast<Real<T>>(weight(i, j))) * A(i, k); };
}

/// A matrix whose columns are `gap` elements longer in memory than in number.
template <Scalar T>
DistMatrix<T> filled(const GridPtr& grid, const Layout& layout, Index gap, Buffer<T>& memory,
                     const Element<T>& element) {
  if (!grid->is_member()) return DistMatrix<T>(grid, layout);
  const DistMatrix<T> shape = planned_matrix<T>(grid, layout);
  const Index rows = shape.local().rows, cols = shape.local().cols;
  memory.reserve(grid->backend(), (rows + gap) * cols);
  DistMatrix<T> X(grid, layout, {memory.data(), rows, cols, rows + gap});
  X.fill(element);
  return X;
}

template <Scalar T>
Solution<T> solve_weighted(Solver solver, const LinearOperator<T>& A, SolveOptions options = {},
                           const Element<T>& guess = {}, SolverOperands<T> operands = {},
                           Index columns = nrhs) {
  const Layout data = A.range().layout(columns), models = A.domain().layout(columns);
  Buffer<T> of_B, of_W;
  const Index gap = options.damp.any() ? 3 : 0;
  const DistMatrix<T> B = filled<T>(A.range().grid, data, gap, of_B, data_with_holes<T>());
  const DistMatrix<T> W = filled<T>(A.range().grid, data, gap, of_W, weights_of<T>());
  DistMatrix<T> X(A.domain().grid, models);
  X.fill(guess ? guess : [](Index, Index) { return T(not_there); });
  options.initial_guess = static_cast<bool>(guess);
  operands.weights = &W;
  SolveReport report = solve<T>(solver, A, B, X, options, operands);
  return {std::move(report), everywhere(X), A.cols()};
}

/// Checks verdicts and norms against the weighted system of each column, and x against LAPACK's.
template <Scalar T>
void check_weighted(const Solution<T>& solution, const Element<T>& A, const SolveOptions& options, Index rows,
                    Index cols, double tolerance) {
  for (Index j = 0; j < static_cast<Index>(solution.report.columns.size()); ++j) {
    const ColumnReport& column = solution.verdict(j);
    CAPTURE(j, name_of(column.reason), column.iterations);
    CHECK(is_solved(column.reason));
    const Element<T> of_column = weighted_matrix(A, j);
    const WholeSystem<T> system(&cgls<T>, rows, cols, of_column, weighted_data<T>(), options);
    const auto norms = system.norms(j, solution.column(j));
    const double rounding = 10 * (1 + system.norm_of_A()) * norms.rounding;
    CHECK(std::abs(column.residual_norm - norms.residual) <= rounding);
    CHECK(std::abs(column.normal_residual_norm - norms.normal) <= rounding);
    CHECK(std::abs(column.reference_norm - norms.reference) <= rounding);
    if (j == all_missing) {
      CHECK(norm_of(solution.column(j)) == 0);
      continue;
    }
    const std::vector<T> expected =
        lapack_solution<T>(rows, cols, of_column, weighted_data<T>(), j, options.damp[j]);
    CHECK(relative_difference(solution.column(j), expected) <= tolerance);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("With weights each column has the solution of its weighted rows", "", double,
                   std::complex<double>) {
  using T = TestType;
  const Element<T> matrix = random_elements<T>(7);
  for (const auto& grid : compact_grids())
    for (const Algorithm algorithm : all_algorithms)
      for (const Solver solver : {Solver::cgls, Solver::lsqr, Solver::lsmr})
        for (const double damp : {0.0, 0.3}) {
          const OperatorPtr<T> A = dense_operator<T>(grid, algorithm, m, n, matrix);
          SolveOptions options{.max_iterations = 200, .tolerance = 1e-12, .damp = damp};
          options.batch = damp == 0 ? 0 : 4;
          const Element<T> guess = damp == 0 ? Element<T>() : random_elements<T>(9);
          const Solution<T> solution = solve_weighted<T>(solver, *A, options, guess);
          if (!grid->is_member()) continue;
          CAPTURE(describe(*grid), name_of(algorithm), name_of(solver), damp);
          check_same_everywhere(solution.report, grid->comm());
          check_weighted(solution, matrix, options, m, n, 1e-8);
        }
}

TEST_CASE("A column with weights iterates as it does alone with its rows scaled") {
  using T = double;
  const Element<T> matrix = random_elements<T>(7);
  for (const auto& grid : compact_grids())
    for (const Solver solver : {Solver::cgls, Solver::lsqr, Solver::lsmr, Solver::fista}) {
      const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n, matrix);
      SolveOptions options{.max_iterations = 2000, .tolerance = 1e-9};
      const bool is_sparse = row_of(solver).has(Feature::penalty);
      if (is_sparse) options.lambda = 0.01;
      const Solution<T> together = solve_weighted<T>(solver, *A, options);
      for (Index j = 0; j < nrhs; ++j) {
        DistMatrix<T> w(grid, A->range().layout(1)), b(grid, A->range().layout(1)),
            x(grid, A->domain().layout(1));
        w.fill([j](Index i, Index) { return weight(i, j); });
        b.fill([j](Index i, Index) { return weighted_data<T>()(i, j); });
        const OperatorPtr<T> scaled = product(diagonal<T>(A->range(), std::move(w)), A);
        SolveOptions alone_options = options;
        if (is_sparse && j != all_missing) {  // A's estimated norm, with the largest weight
          double largest = 0;
          for (Index i = 0; i < m; ++i) largest = std::max(largest, weight(i, j));
          alone_options.step = grid->is_member() ? together.report.step / (largest * largest) : 1;
        }
        const SolveReport alone = solve(solver, *scaled, b, x, alone_options);
        const std::vector<T> expected = everywhere(x);
        if (!grid->is_member()) continue;
        CAPTURE(describe(*grid), name_of(solver), j);
        const ColumnReport &one = alone.columns.front(), &of_all = together.verdict(j);
        CHECK(of_all.reason == one.reason);
        CHECK(std::abs(of_all.iterations - one.iterations) <= std::max<Index>(2, one.iterations / 20));
        CHECK(relative_difference(together.column(j), expected) <= 1e-7);
        if (!is_sparse && j != all_missing)
          CHECK(std::abs(of_all.operator_norm - one.operator_norm) <= 0.05 * one.operator_norm);
      }
    }
}

TEST_CASE("One pass, a guard, a preconditioner and bounds of errors are those of the weighted problem") {
  using T = double;
  const Element<T> matrix = random_elements<T>(7);
  const double damp = 0.2, norm = std::sqrt(static_cast<double>(m * n));
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<T> A =
        dense_operator<T>(grid, Algorithm::stationary_a, m, n, matrix, {.storage = Storage::packed});
    SolveOptions options{.max_iterations = 200, .tolerance = 1e-11, .damp = damp};
    SolveOptions one_pass = options, guarded = options, bounded = options;
    one_pass.one_pass = true;
    guarded.guard = 3;
    bounded.tolerance = std::nullopt;
    bounded.error = 1e-3;
    bounded.frobenius_norm = norm;
    const std::shared_ptr<const Factor<T>> M = factor(*A, damp);
    const Solution<T> in_one_pass = solve_weighted<T>(Solver::cgls, *A, one_pass),
                      checked = solve_weighted<T>(Solver::lsqr, *A, guarded),
                      preconditioned =
                          solve_weighted<T>(Solver::pcgls, *A, options, {}, {.preconditioner = M.get()}),
                      near = solve_weighted<T>(Solver::cgls, *A, bounded);
    if (!grid->is_member()) continue;
    CAPTURE(describe(*grid));
    CHECK(in_one_pass.report.solver == "cgls");
    CHECK(checked.report.alarms.empty());
    for (const Solution<T>* solution : {&in_one_pass, &checked, &preconditioned})
      check_weighted(*solution, matrix, options, m, n, 1e-8);
    check_weighted(near, matrix, options, m, n, 1e-3);
    CHECK(preconditioned.report.columns[all_there].iterations <=
          2);  // where the factor is that of the problem
    const auto iterations_of = [](const Solution<T>& solution) {
      Index sum = 0;
      for (const ColumnReport& column : solution.report.columns) sum += column.iterations;
      return sum;
    };
    CHECK(iterations_of(near) < iterations_of(in_one_pass));
  }
}

TEST_CASE("Bounds of errors scale sigma_min and the norm by the weights of each column") {
  using T = double;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 5));
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator(grid, Algorithm::stationary_a, matrix);
    // Weights of a column are from 2^-j to 2^(1-j).
    const Element<T> w = [](Index i, Index j) {
      return std::ldexp(1 + std::abs(counter_uniform(40, i, j)), -static_cast<int>(j));
    };
    DistMatrix<T> B(grid, A->range().layout(nrhs)), W(grid, A->range().layout(nrhs)),
        X(grid, A->domain().layout(nrhs));
    B.fill(random_elements<T>(4));
    W.fill(w);
    const SolveOptions options{.max_iterations = 6, .sigma_min = 0.2, .frobenius_norm = 5};
    const SolveReport report = solve<T>(Solver::cgls, *A, B, X, options, {.weights = &W});
    const std::vector<WeightRange> ranges = weigh<T>(W, B);
    ErrorBoundOptions known{.sigma_min = 0.2, .frobenius_norm = 5};
    known.weights = ranges;
    const std::vector<double> bounds = error_bounds(report, B, X, known);
    const std::vector<T> found = everywhere(X);
    if (!grid->is_member()) continue;
    for (Index j = 0; j < nrhs; ++j) {
      const Element<T> of_column = [&](Index i, Index k) { return w(i, j) * matrix(i, k); };
      const std::vector<T> best = lapack_solution<T>(
          m, n, of_column, [&](Index i, Index k) { return w(i, k) * random_elements<T>(4)(i, k); }, j, 0);
      double squares = 0;
      for (Index k = 0; k < n; ++k)
        squares +=
            std::pow(found[static_cast<std::size_t>(k + j * n)] - best[static_cast<std::size_t>(k)], 2);
      CAPTURE(describe(*grid), j, ranges[static_cast<std::size_t>(j)].least);
      CHECK(ranges[static_cast<std::size_t>(j)].least >= std::ldexp(1.0, -static_cast<int>(j)));
      CHECK(ranges[static_cast<std::size_t>(j)].largest <= std::ldexp(2.0, -static_cast<int>(j)));
      CHECK(std::sqrt(squares) <= bounds[static_cast<std::size_t>(j)]);
      CHECK(bounds[static_cast<std::size_t>(j)] <= 1e4 * std::sqrt(squares));
    }
  }
}

TEST_CASE("Bounds of errors contain what rounding of weighted products hides") {
  using T = float;
  constexpr Index columns = 4000;
  const double a = 1.37F;  // a float
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<T> A =
        dense_operator<T>(grid, Algorithm::stationary_a, 1, 1, [a](Index, Index) { return T(a); });
    DistMatrix<T> B(grid, A->range().layout(columns)), W(grid, A->range().layout(columns)),
        X(grid, A->domain().layout(columns));
    const Element<T> b = [a](Index, Index j) {
      return static_cast<T>(a * (1.5 + 0.5 * counter_uniform(50, 0, j)));
    };
    B.fill(b);
    W.fill([](Index, Index j) { return static_cast<T>(1.5 + 0.5 * counter_uniform(51, 0, j)); });
    const SolveReport report = solve<T>(
        Solver::cgls, *A, B, X,
        {.max_iterations = 50, .tolerance = 1e-7, .sigma_min = a, .frobenius_norm = a}, {.weights = &W});
    ErrorBoundOptions known{.sigma_min = a, .frobenius_norm = a};
    known.weights = weigh<T>(W, B);
    const std::vector<double> bounds = error_bounds(report, B, X, known);
    const std::vector<T> found = everywhere(X);
    if (!grid->is_member()) continue;
    Index outside = 0;
    for (Index j = 0; j < columns; ++j) {
      const double error = std::abs(static_cast<double>(found[static_cast<std::size_t>(j)]) - b(0, j) / a);
      outside += error > bounds[static_cast<std::size_t>(j)] ? 1 : 0;
    }
    CAPTURE(describe(*grid));
    CHECK(outside == 0);
    CHECK(*std::max_element(bounds.begin(), bounds.end()) < 1e-5);
  }
}

TEST_CASE("Bounds of errors are refused unless they know of the weights that a solve had") {
  using T = double;
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n, random_elements<T>(7));
    DistMatrix<T> B(grid, A->range().layout(nrhs)), W(grid, A->range().layout(nrhs)),
        X(grid, A->domain().layout(nrhs));
    B.fill(random_elements<T>(4));
    W.fill([](Index, Index) { return 0.01; });
    const SolveReport plain = solve<T>(Solver::cgls, *A, B, X, {.damp = 0.1}),
                      weighted = solve<T>(Solver::cgls, *A, B, X, {.damp = 0.1}, {.weights = &W});
    const ErrorBoundOptions without{.damp = 0.1, .frobenius_norm = 100};
    ErrorBoundOptions with = without;
    with.weights = weigh<T>(W, B);
    const auto refusal = [&](const SolveReport& report, const ErrorBoundOptions& options) {
      return message_of<UsageError>([&] { error_bounds(report, B, X, options); });
    };
    CHECK(std::ssize(error_bounds(weighted, B, X, with)) == (grid->is_member() ? nrhs : 0));
    if (!grid->is_member()) continue;
    CAPTURE(describe(*grid));
    CHECK(refusal(weighted, without).find("a solve with weights, and none are given") != std::string::npos);
    CHECK(refusal(plain, with).find("a solve without weights, and some are given") != std::string::npos);
  }
}

TEST_CASE("Weights that take data or products out of the range of the type are refused") {
  using T = float;
  for (const auto& grid : compact_grids()) {
    // Column 1 has these numbers and weights, and its neighbours ordinary ones, of which some are small.
    const auto refusal = [&](Solver solver, float b, float w, float of_A = 1,
                             const SolveOptions& options = {}) {
      const Element<T> matrix = [of_A](Index i, Index j) { return of_A * random_elements<T>(7)(i, j); };
      const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n, matrix);
      DistMatrix<T> B(grid, A->range().layout(3)), W(grid, A->range().layout(3)),
          X(grid, A->domain().layout(3));
      const float usual_w = 1 / of_A;
      B.fill([b](Index i, Index j) {
        return random_elements<T>(4)(i, j) * (j == 1 ? b : i % 5 == 0 ? 1e-24F : 1);
      });
      W.fill([w, usual_w](Index i, Index j) {
        return j == 1 && i % 7 > 0 ? w : i % 3 == 0 && j != 1 ? 0.5F * usual_w : j == 1 ? 0 : usual_w;
      });
      return message_of<UsageError>([&] { solve<T>(solver, *A, B, X, options, {.weights = &W}); });
    };
    const auto sparse = [](std::optional<double> step = {}) {
      SolveOptions options{.max_iterations = 3, .lambda = 0.01};
      options.step = step;
      return options;
    };
    const std::string small = refusal(Solver::cgls, 1e-24F, 1e-24F),
                      large = refusal(Solver::lsqr, 1e20F, 1e20F),
                      of_holes = refusal(Solver::cgls, 1e-34F, 1),
                      of_small_data = refusal(Solver::cgls, 1e-20F, 1e-8F),
                      far_weights = refusal(Solver::fista, 1e22F, 1e-22F, 1, sparse()),
                      near_weights = refusal(Solver::fista, 1e6F, 1e-6F, 1, sparse()),
                      of_large_A = refusal(Solver::fista, 1, 1e-16F, 1e16F, sparse()),
                      of_step = refusal(Solver::fista, 1e-10F, 1e10F, 1, sparse(1e-24));
    if (!grid->is_member()) continue;
    CAPTURE(describe(*grid));
    CHECK(small.find("the numbers of column 1 of B, times their weights, are at most about 1e-4") !=
          std::string::npos);
    CHECK(large.find("the numbers of column 1 of B, times their weights, are at most about 1e4") !=
          std::string::npos);
    CHECK(far_weights.find("fista: the norm of A is about") != std::string::npos);
    CHECK(far_weights.find("with the weights of column 1") != std::string::npos);
    for (const std::string& none : {of_holes, of_small_data, near_weights, of_large_A, of_step})
      CHECK(none == "");
  }
}

TEST_CASE("A column without data raises no alarm, whatever norm the guard has for A") {
  const Guard guard(1, std::numeric_limits<double>::infinity(), 1e-16, 10);
  ColumnState column;
  column.first_residual_norm = 1;
  column.weights = {0, 0};
  CHECK(guard.norm_A(column) == 0);
  CHECK(std::isfinite(guard.largest_gap(column, true)));
  column.weights = {0, 1};
  CHECK(std::isinf(guard.norm_A(column)));
}

TEST_CASE("Small and empty problems take weights, and NaN without one is a hole") {
  using T = std::complex<float>;
  for (const auto& grid : compact_grids())
    for (const Index rows : {0, 1, 3})
      for (const Index columns : {0, 1, 3}) {
        const OperatorPtr<T> A =
            dense_operator<T>(grid, Algorithm::stationary_a, rows, 2, random_elements<T>(7));
        const Solution<T> solution = solve_weighted<T>(Solver::lsqr, *A, {}, {}, {}, columns);
        DistMatrix<T> B(grid, A->range().layout(columns)), W(grid, A->range().layout(columns));
        B.fill(data_with_holes<T>());
        W.fill([](Index, Index) { return T(3); });
        const Index holes = mark_holes<T>(B, W);
        const std::vector<T> w = everywhere(W);
        if (!grid->is_member()) continue;
        Index expected = 0;
        for (Index j = 0; j < columns; ++j)
          for (Index i = 0; i < rows; ++i) {
            expected += weight(i, j) == 0 ? 1 : 0;
            CHECK(w[static_cast<std::size_t>(i + j * rows)] == (weight(i, j) == 0 ? T(0) : T(3)));
          }
        CHECK(holes == expected);
        CAPTURE(describe(*grid), rows, columns);
        for (const ColumnReport& column : solution.report.columns) CHECK(is_solved(column.reason));
      }
}

TEST_CASE("A NaN with a weight ends its column, and no other") {
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<double> A =
        dense_operator<double>(grid, Algorithm::stationary_a, m, n, random_elements<double>(7));
    DistMatrix<double> B(grid, A->range().layout(3)), W(grid, A->range().layout(3)),
        X(grid, A->domain().layout(3));
    B.fill([](Index i, Index j) { return i == 7 ? not_there : random_elements<double>(4)(i, j); });
    W.fill([](Index i, Index j) { return i == 7 && j != 1 ? 0.0 : 1.0; });
    const SolveReport report = solve<double>(Solver::cgls, *A, B, X, {}, {.weights = &W});
    if (!grid->is_member()) continue;
    CHECK(is_solved(report.columns[0].reason));
    CHECK(report.columns[1].reason == StopReason::non_finite);
    CHECK(is_solved(report.columns[2].reason));
  }
}

TEST_CASE("Wrong weights, and solvers whose columns share something, are refused on all ranks") {
  const auto says = [](auto&& action, const char* text) {
    return message_of<UsageError>(action).find(text) != std::string::npos;
  };
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<double> A =
        dense_operator<double>(grid, Algorithm::stationary_a, m, n, random_elements<double>(7));
    DistMatrix<double> B(grid, A->range().layout(3)), W(grid, A->range().layout(3)),
        X(grid, A->domain().layout(3)), short_W(grid, A->range().layout(2));
    B.fill(random_elements<double>(4));
    const auto solve_with = [&](const DistMatrix<double>& weights, Solver solver = Solver::cgls) {
      return solve<double>(solver, *A, B, X, {}, {.weights = &weights});
    };
    if (!grid->is_member()) continue;
    for (const double wrong : {-1.0, not_there, std::numeric_limits<double>::infinity()}) {
      W.fill([wrong](Index i, Index j) { return i == 41 && j == 2 ? wrong : 1.0; });
      CHECK(says([&] { solve_with(W); }, "the weight of row 41 of column 2 is"));
    }
    W.fill([](Index, Index) { return 1.0; });
    short_W.fill([](Index, Index) { return 1.0; });
    CHECK_THROWS_AS(solve_with(short_W), ShapeError);
    CHECK(says([&] { solve_with(W, Solver::block_cgls); }, "share no space"));
    CHECK(says([&] { solve_with(W, Solver::direct); }, "share no factor"));
    CHECK_THROWS_AS(solve_with(W, Solver::minres), UsageError);
  }
}
