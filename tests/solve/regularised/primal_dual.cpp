// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/solve/checkpoint.hpp"
#include "gridlops/solve/proximal.hpp"
#include "gridlops/solve/sparse_solver.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "io/npy_files.hpp"
#include "support/arrays.hpp"
#include "support/problems.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 40, n = 24, nrhs = 4;
constexpr double infinity = std::numeric_limits<double>::infinity();

PrimalDualOptions at_most(Index iterations, double tolerance) {
  PrimalDualOptions options;
  options.common.max_iterations = iterations;
  options.common.tolerance = tolerance;
  return options;
}

void check_all_converged(const SolveReport& report, const GridPtr& grid) {
  check_same_everywhere(report, grid->comm());
  CHECK(report.solver == "primal-dual");
  for (const ColumnReport& column : report.columns) CHECK(column.reason == StopReason::converged);
}

/// For each column ½‖A x − b‖² + λ‖x‖₁, and by how much it exceeds the value of the dual problem, −½‖y‖² − Re
/// bᴴy for ‖Aᴴy‖∞ ≤ λ, at this y, which is shortened to be feasible. No objective is below a dual value.
struct LassoValues {
  std::vector<double> objectives, gaps;
};
template <Scalar T>
LassoValues lasso_values(const LinearOperator<T>& A, double lambda, const ConstDistMatrix<T>& B,
                         const ConstDistMatrix<T>& X, const ConstDistMatrix<T>& Y) {
  DistMatrix<T> R = B.clone(), G(X.grid(), X.layout());
  A.apply(T(1), X, T(-1), R);
  A.apply_adjoint(T(1), Y, T(0), G);
  const std::vector<double> misfits = column_norms(R), sums = column_norms(X, 1),
                            largest = column_norms(G, infinity), norms = column_norms(Y);
  const auto products = column_dots(B, Y);
  LassoValues values;
  for (std::size_t j = 0; j < misfits.size(); ++j) {
    const double scale = std::min(1.0, lambda / largest[j]);
    values.objectives.push_back(0.5 * misfits[j] * misfits[j] + lambda * sums[j]);
    values.gaps.push_back(values.objectives[j] + 0.5 * scale * scale * norms[j] * norms[j] +
                          scale * static_cast<double>(std::real(products[j])));
  }
  return values;
}

}  // namespace

TEMPLATE_TEST_CASE("The primal-dual method finds the optimum of the lasso, which the gap bounds",
                   "[primal_dual]", double, std::complex<double>) {
  using T = TestType;
  constexpr double lambda = 0.1, tolerance = 1e-9;
  for (const GridPtr& grid : compact_grids()) {
    const auto A = dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<T>(m, n, geometric(n, 3)));
    const DistMatrix<T> B = filled(grid, A->range().layout(nrhs), random_elements<T>(4));
    DistMatrix<T> X(grid, A->domain().layout(nrhs)), best(grid, X.layout()), Y(grid, B.layout());
    SolveOptions sparse;
    sparse.lambda = lambda;
    sparse.tolerance = 1e-13;
    sparse.max_iterations = 5000;
    fista(*A, B, best, sparse);
    const SolveReport report = primal_dual(A, quadratic<T>(1), threshold_penalty<T>(Threshold::soft, lambda),
                                           B, X, at_most(2000, tolerance), &Y);
    const LassoValues found = lasso_values<T>(*A, lambda, B, X, Y),
                      least = lasso_values<T>(*A, lambda, B, best, Y);
    if (!grid->is_member()) continue;
    check_all_converged(report, grid);
    CHECK(relative_difference(everywhere(X), everywhere(best)) <= 100 * tolerance);
    for (std::size_t j = 0; j < found.gaps.size(); ++j) {
      const double excess = found.objectives[j] - least.objectives[j];
      CAPTURE(j, excess, found.gaps[j]);
      CHECK(found.gaps[j] >= excess - 1e-14);
      CHECK(found.gaps[j] <= 100 * tolerance * found.objectives[j]);
    }
  }
}

TEST_CASE("What the primal-dual method calls converged is the optimum, whatever the steps and the weight",
          "[primal_dual]") {
  constexpr double tolerance = 1e-7;
  const auto grid = compact_grids().front();
  const auto A = dense_operator(grid, Algorithm::summa, KnownSpectrum<double>(m, n, geometric(n, 3)));
  const DistMatrix<double> B = filled(grid, A->range().layout(nrhs), random_elements<double>(4));
  DistMatrix<double> X(grid, A->domain().layout(nrhs)), best(grid, X.layout()), Y(grid, B.layout());
  for (const double lambda : {1e-6, 0.3, 100.0}) {
    const ProximalPtr<double> f = quadratic<double>(1),
                              g = threshold_penalty<double>(Threshold::soft, lambda);
    SolveOptions sparse;
    sparse.lambda = lambda;
    sparse.tolerance = 1e-13;
    sparse.max_iterations = 5000;
    fista(*A, B, best, sparse);
    Y.set_zero();
    const std::vector<double> least = lasso_values<double>(*A, lambda, B, best, Y).objectives;
    struct Steps {
      std::optional<double> tau, sigma;
      bool is_fast;
      double theta = 1;
    };
    for (const Steps& steps :
         {Steps{{}, {}, true}, Steps{10, {}, true}, Steps{{}, 0.8, true}, Steps{0.5, 0.5, true},
          Steps{1e-4, {}, false}, Steps{{}, 1e-4, false}, Steps{1e-9, 1e-9, false}, Steps{1e-20, {}, false},
          Steps{1e-9, 1.0, false}, Steps{{}, {}, true, 0}, Steps{{}, {}, true, 0.5},
          Steps{1e-4, {}, false, 0}, Steps{1e-20, {}, false, 0.5}}) {
      PrimalDualOptions options = at_most(steps.is_fast ? 1000 : 60, tolerance);
      options.tau = steps.tau;
      options.sigma = steps.sigma;
      options.theta = steps.theta;
      const SolveReport report = primal_dual(A, f, g, B, X, options, &Y);
      const LassoValues found = lasso_values<double>(*A, lambda, B, X, Y);
      if (!grid->is_member()) continue;
      for (std::size_t j = 0; j < found.objectives.size(); ++j) {
        CAPTURE(lambda, steps.tau.value_or(0), steps.sigma.value_or(0), steps.theta, j, found.objectives[j],
                least[j], report.columns[j].tested_norm);
        const bool converged = report.columns[j].reason == StopReason::converged;
        CHECK(report.columns[j].reason != StopReason::stagnated);
        // The residuals change the objective by T times products of norms of about its size.
        if (converged) CHECK(found.objectives[j] <= least[j] * (1 + 100 * tolerance));
        if (steps.is_fast) CHECK(converged);
      }
    }
  }
}

TEMPLATE_TEST_CASE(
    "Isotropic total variation fulfils its conditions of optimality, wherever the array is cut",
    "[primal_dual]", double, std::complex<double>) {
  using T = TestType;
  constexpr Index rows = 5, cols = 4, columns = 3;
  constexpr double sigma = 0.3;
  for (const GridPtr& grid : compact_grids()) {
    for (const int cut : {0, 1}) {
      const Space space = array_space(grid, {rows, cols}, cut);
      const OperatorPtr<T> I = identity<T>(space), L = gradient<T>(space, {1, 1}, Derivative::Kind::forward);
      const std::vector<Space> stack{space, L->range()}, pair{space, space};
      const OperatorPtr<T> K = vertical_stack<T>({I, L});
      const ProximalPtr<T> f = separable_sum<T>(stack, {quadratic<T>(1), l21_norm<T>(pair, sigma)});
      DistMatrix<T> B(grid, K->range().layout(columns)), X(grid, space.layout(columns)), Y(grid, B.layout());
      B.set_zero();
      // A step with noise, of another size in each column; the last column is zero.
      DistMatrix<T> noisy = stack_rows(stack, 0, B);
      noisy.fill([&](Index i, Index j) {
        const std::vector<Index> place = place_of(space.dims, i);
        const T step = place[0] < 2 ? number<T>(1, 0.5) : number<T>(-2, 1);
        return j == 2 ? T(0)
                      : step * static_cast<Real<T>>(j + 1) +
                            number<T>(0.2, 0) * counter_random<T>(5, number_of(space.dims, place), j);
      });
      const SolveReport report = primal_dual(K, f, quadratic<T>(0), B, X, at_most(5000, 1e-11), &Y);
      // q = the dual of the gradient: x = b − Lᴴq, |q| ≤ σ, and q = σ Lx/|Lx| where Lx ≠ 0. x is unique.
      DistMatrix<T> q = stack_rows(stack, 1, Y), defect = noisy.clone(), jumps(grid, q.layout());
      defect -= X;
      L->apply_adjoint(T(-1), q, T(1), defect);
      L->apply(T(1), X, T(0), jumps);
      const DistMatrix<T> d0 = stack_rows(pair, 0, jumps), d1 = stack_rows(pair, 1, jumps),
                          q0 = stack_rows(pair, 0, q), q1 = stack_rows(pair, 1, q);
      if (!grid->is_member()) continue;
      check_all_converged(report, grid);
      for (const double norm : column_norms(defect)) CHECK(norm <= 1e-9);
      const std::vector<T> a = on_host(d0), b = on_host(d1), qa = on_host(q0), qb = on_host(q1);
      for (std::size_t i = 0; i < a.size(); ++i) {
        const double jump = std::hypot(std::abs(a[i]), std::abs(b[i])),
                     dual = std::hypot(std::abs(qa[i]), std::abs(qb[i]));
        CHECK(dual <= sigma + 1e-9);
        if (jump <= 1e-3) continue;
        CHECK(std::abs(qa[i] - sigma / jump * a[i]) <= 1e-6);
        CHECK(std::abs(qb[i] - sigma / jump * b[i]) <= 1e-6);
      }
      CHECK(report.columns[2].iterations <= 1);
      const std::vector<T> x = everywhere(X);
      for (std::size_t i = static_cast<std::size_t>(2 * rows * cols); i < x.size(); ++i) CHECK(x[i] == T(0));
      // A column alone has the same solution.
      DistMatrix<T> one(grid, K->range().layout(1)), alone(grid, space.layout(1));
      one.set_zero();
      DistMatrix<T> top = stack_rows(stack, 0, one);
      copy(noisy.column_slice({1}, Partition::balanced(1, 1)), top);
      const SolveReport single = primal_dual(K, f, quadratic<T>(0), one, alone, at_most(5000, 1e-11));
      CHECK(std::abs(single.columns[0].iterations - report.columns[1].iterations) <= 2);
      const std::vector<T> y = everywhere(alone);
      for (std::size_t i = 0; i < y.size(); ++i)
        CHECK(std::abs(y[i] - x[i + static_cast<std::size_t>(rows * cols)]) <= 1e-9);
    }
  }
}

TEMPLATE_TEST_CASE("Iterates of the primal-dual method follow a recurrence with θ, from any x and y",
                   "[primal_dual]", double, std::complex<double>) {
  using T = TestType;
  // With g = 0 and f = 0 at 0, else ∞, the errors e = x − b/k obey, with a = τσk², eₙ₊₁ = (2 − a(1 + θ))eₙ −
  // (1 − aθ)eₙ₋₁ from e₁ = (1 − a)e₀ − τk y₀, and τk yₙ₊₁ = eₙ − eₙ₊₁.
  constexpr double k = 2, tau = 0.25, sigma = 0.5, a = tau * sigma * k * k;
  const Element<T> b = random_elements<T>(1), x = random_elements<T>(2), y = random_elements<T>(3);
  for (const GridPtr& grid : compact_grids()) {
    const Space space = array_space(grid, {4, 3}, 0);
    const OperatorPtr<T> K = scale(T(k), identity<T>(space));
    const DistMatrix<T> B = filled(grid, space.layout(nrhs), b);
    for (const double theta : {0.0, 0.5, 1.0}) {
      for (const bool dual_guess : {false, true}) {
        for (const Index steps : {1, 2, 7}) {
          PrimalDualOptions options = at_most(steps, 0);
          options.common.initial_guess = true;
          options.tau = tau;
          options.sigma = sigma;
          options.theta = theta;
          options.dual_guess = dual_guess;
          DistMatrix<T> X = filled(grid, space.layout(nrhs), x), Y = filled(grid, space.layout(nrhs), y);
          const SolveReport report = primal_dual(K, box<T>(0, 0), quadratic<T>(0), B, X, options, &Y);
          if (!grid->is_member()) continue;
          check_same_everywhere(report, grid->comm());
          const std::vector<T> found_x = everywhere(X), found_y = everywhere(Y);
          CAPTURE(theta, dual_guess, steps);
          for (Index j = 0; j < nrhs; ++j) {
            CHECK(report.columns[static_cast<std::size_t>(j)].iterations == steps);
            for (Index i = 0; i < space.dimension(); ++i) {
              T e = x(i, j) - b(i, j) / k, next = (1 - a) * e - tau * k * (dual_guess ? y(i, j) : T(0));
              for (Index step = 1; step < steps; ++step) {
                const T after = (2 - a * (1 + theta)) * next - (1 - a * theta) * e;
                e = next;
                next = after;
              }
              const auto place = static_cast<std::size_t>(i + j * space.dimension());
              CHECK(std::abs(found_x[place] - (b(i, j) / k + next)) <= 1e-14);
              CHECK(std::abs(found_y[place] - (e - next) / (tau * k)) <= 1e-14);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("Where the primal-dual method without over-relaxation goes round for ever, no verdict hides it",
          "[primal_dual]") {
  // In the recurrence of the test above a = 1 and θ = 0 make eₙ₊₁ = eₙ − eₙ₋₁, which returns after 6 steps.
  const auto b = [](Index i, Index j) { return 2 * small_integer<double>(1, i, j) + 1; };
  const auto x = [](Index i, Index j) { return small_integer<double>(2, i, j); };
  for (const GridPtr& grid : compact_grids()) {
    const Space space = array_space(grid, {5}, 0);
    const DistMatrix<double> B = filled(grid, space.layout(nrhs), b);
    const std::vector<double> begun = everywhere(filled(grid, space.layout(nrhs), x));
    for (const double theta : {0.0, 1.0}) {
      DistMatrix<double> X = filled(grid, space.layout(nrhs), x);
      PrimalDualOptions options = at_most(600, 1e-8);
      options.common.initial_guess = true;
      options.tau = options.sigma = 0.5;
      options.theta = theta;
      const SolveReport report = primal_dual(scale(2.0, identity<double>(space)), box<double>(0, 0),
                                             quadratic<double>(0), B, X, options);
      if (!grid->is_member()) continue;
      for (const ColumnReport& column : report.columns)
        CHECK(column.reason == (theta == 0 ? StopReason::iteration_limit : StopReason::converged));
      if (theta == 0) CHECK(everywhere(X) == begun);
    }
  }
}

TEMPLATE_TEST_CASE("What begins with the x and the y of a solve has converged at once", "[primal_dual]",
                   double, std::complex<double>) {
  using T = TestType;
  for (const GridPtr& grid : compact_grids()) {
    const auto A = dense_operator(grid, Algorithm::summa, KnownSpectrum<T>(m, n, geometric(n, 3)));
    const DistMatrix<T> B = filled(grid, A->range().layout(nrhs), random_elements<T>(4));
    const Layout one_column{A->domain().rows, {Axis::uncut, Partition::balanced(1, 1)}};
    DistMatrix<T> c = filled(grid, one_column, random_elements<T>(5)), none(grid, B.layout());
    none.set_zero();
    struct Case {
      const char* name;
      ProximalPtr<T> f, g;
      const DistMatrix<T>& b;
    };
    for (const Case& problem :
         {Case{"lasso", quadratic<T>(1), threshold_penalty<T>(Threshold::soft, 0.1), B},
          Case{"absolute values", threshold_penalty<T>(Threshold::soft), quadratic<T>(1), B},
          Case{"bounds that do not matter, so y is 0", box<T>(-99, 99), quadratic<T>(1, std::move(c)), none},
          Case{"x is 0", quadratic<T>(1), threshold_penalty<T>(Threshold::soft, 1e3), B}}) {
      for (const double theta : {0.5, 1.0}) {
        PrimalDualOptions options = at_most(3000, 1e-10);
        options.theta = theta;
        DistMatrix<T> X(grid, A->domain().layout(nrhs)), Y(grid, B.layout());
        const SolveReport report = primal_dual<T>(A, problem.f, problem.g, problem.b, X, options, &Y);
        const std::vector<T> x = everywhere(X), y = everywhere(Y);
        options.common.initial_guess = true;
        options.dual_guess = true;
        const SolveReport again = primal_dual<T>(A, problem.f, problem.g, problem.b, X, options, &Y);
        if (!grid->is_member()) continue;
        CAPTURE(problem.name, theta);
        check_all_converged(report, grid);
        check_all_converged(again, grid);
        CHECK(again.iterations == 0);
        CHECK(everywhere(X) == x);
        CHECK(everywhere(Y) == y);
      }
    }
  }
}

TEST_CASE("Bounds that hold and bounds that do not matter both converge", "[primal_dual]") {
  const KnownSpectrum<double> matrix(m, n, geometric(n, 3));
  std::vector<Index> iterations;
  for (const GridPtr& grid : compact_grids()) {
    const auto A = dense_operator(grid, Algorithm::summa, matrix);
    const DistMatrix<double> B = filled(grid, A->range().layout(nrhs), random_elements<double>(4));
    DistMatrix<double> X(grid, A->domain().layout(nrhs)), best(grid, X.layout()), Y(grid, B.layout());
    SolveOptions options;
    options.lambda = 1;
    options.tolerance = 1e-12;
    options.max_iterations = 5000;
    proximal_gradient(*A, box<double>(-0.1, 0.3), B, best, options);
    const SolveReport bounded =
        primal_dual(A, quadratic<double>(1), box<double>(-0.1, 0.3), B, X, at_most(2000, 1e-10));
    // The nearest x to c with |A x| ≤ 9 is c itself, and y = 0.
    const Layout one_column{A->domain().rows, {Axis::uncut, Partition::balanced(1, 1)}};
    DistMatrix<double> c = filled(grid, one_column,
                                  [](Index i, Index) { return static_cast<double>(i % 3) - 1; }),
                       none(grid, B.layout()), nearest(grid, X.layout());
    none.set_zero();
    const std::vector<double> expected = everywhere(c);
    c *= -1;
    const SolveReport free = primal_dual(A, box<double>(-9, 9), quadratic<double>(1, std::move(c)), none,
                                         nearest, at_most(2000, 1e-10), &Y);
    if (!grid->is_member()) continue;
    check_all_converged(bounded, grid);
    check_all_converged(free, grid);
    CHECK(relative_difference(everywhere(X), everywhere(best)) <= 1e-7);
    const std::vector<double> x = everywhere(nearest);
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(std::abs(x[i] - expected[i % static_cast<std::size_t>(n)]) <= 1e-12);
    for (const double norm : column_norms(Y)) CHECK(norm <= 1e-12);
    // Verdicts do not depend on the grid, and counts only by rounding.
    if (iterations.empty())
      for (const ColumnReport& column : bounded.columns) iterations.push_back(column.iterations);
    for (std::size_t j = 0; j < iterations.size(); ++j)
      CHECK(std::abs(bounded.columns[j].iterations - iterations[j]) <=
            std::max<Index>(2, iterations[j] / 20));
  }
}

TEST_CASE("The primal-dual method does not take a y that rounding hides for 0", "[primal_dual]") {
  // |k x − b| + ρx²/2 has its minimum where y = −1 and x = k/ρ = 10. Beside b, y/σ ≈ k is nothing.
  constexpr float k = 0x1p-40F, b = 2;
  for (const GridPtr& grid : compact_grids()) {
    const Space space = array_space(grid, {7}, 0);
    const OperatorPtr<float> K = scale(k, identity<float>(space));
    DistMatrix<float> B(grid, space.layout(1)), X(grid, space.layout(1));
    B.fill([](Index, Index) { return b; });
    X.fill([](Index, Index) { return b / k; });
    PrimalDualOptions options = at_most(1000, 0.01);
    options.common.initial_guess = true;
    const SolveReport report =
        primal_dual(K, threshold_penalty<float>(Threshold::soft), quadratic<float>(k / 10), B, X, options);
    if (!grid->is_member()) continue;
    CHECK(report.columns[0].reason == StopReason::iteration_limit);
  }
}

TEMPLATE_LIST_TEST_CASE("The primal-dual method takes odd columns, guesses and blocks that are empty",
                        "[primal_dual]", Scalars) {
  using T = TestType;
  for (const GridPtr& grid : compact_grids()) {
    for (const Index size : {1, 2, 5}) {
      const Space space = array_space(grid, {size}, 0);
      const OperatorPtr<T> I = identity<T>(space);
      const ProximalPtr<T> f = quadratic<T>(1), g = threshold_penalty<T>(Threshold::soft, 0.25);
      const auto b = [](Index i, Index j) {
        return j == 0             ? T(0)
               : j == 1 && i == 0 ? quiet_nan<T>()
                                  : number<T>(2, 0) * small_integer<T>(3, i, j);
      };
      const DistMatrix<T> B = filled(grid, space.layout(4), b);
      DistMatrix<T> X(grid, space.layout(4));
      PrimalDualOptions options;
      options.common.max_iterations = 500;
      const SolveReport report = primal_dual(I, f, g, B, X, options);
      // The guess is b.
      options.common.initial_guess = true;
      DistMatrix<T> Z =
          filled(grid, space.layout(4), [&](Index i, Index j) { return j == 1 ? T(1) : b(i, j); });
      const SolveReport again = primal_dual(I, f, g, B, Z, options);
      DistMatrix<T> none(grid, space.layout(0));
      CHECK(primal_dual(I, f, g, none, none, options).columns.empty());
      if (!grid->is_member()) continue;
      check_same_everywhere(report, grid->comm());
      const double tolerance = sizeof(Real<T>) == 4 ? 1e-3 : 1e-7;
      for (const DistMatrix<T>* solution : {&X, &Z}) {
        const std::vector<T> x = everywhere(*solution);
        for (const Index j : {0, 2, 3}) {
          CHECK(report.columns[static_cast<std::size_t>(j)].reason == StopReason::converged);
          CHECK(again.columns[static_cast<std::size_t>(j)].reason == StopReason::converged);
          for (Index i = 0; i < size; ++i) {
            const double modulus = std::abs(b(i, j));
            const T expected = modulus <= 0.25 ? T(0) : b(i, j) * static_cast<Real<T>>(1 - 0.25 / modulus);
            CHECK(std::abs(x[static_cast<std::size_t>(i + j * size)] - expected) <= tolerance);
          }
        }
      }
      CHECK(report.columns[1].reason == StopReason::non_finite);
      CHECK(report.columns[0].iterations <= 1);
    }
  }
}

TEST_CASE(
    "A restart of the primal-dual method refuses another θ and another start of y, and takes the saved y",
    "[primal_dual]") {
  for (const GridPtr& grid : compact_grids()) {
    const ScratchFolder folder;  // of all ranks
    if (!grid->is_member()) continue;
    const auto A = dense_operator(grid, Algorithm::summa, KnownSpectrum<double>(m, n, geometric(n, 3)));
    const DistMatrix<double> B = filled(grid, A->range().layout(nrhs), random_elements<double>(4));
    DistMatrix<double> X(grid, A->domain().layout(nrhs)), whole_X(grid, X.layout()), Y(grid, B.layout()),
        whole_Y(grid, B.layout());
    PrimalDualOptions options = at_most(8, 0);
    options.common.column_stable = true;
    options.common.batch = 2;
    options.theta = 0.5;
    options.dual_guess = true;
    const auto run = [&](DistMatrix<double>& x, DistMatrix<double>& y) {
      primal_dual(A, quadratic<double>(1), threshold_penalty<double>(Threshold::soft, 0.1), B, x, options,
                  &y);
    };
    for (DistMatrix<double>* guess : {&Y, &whole_Y}) guess->fill(random_elements<double>(5));
    run(whole_X, whole_Y);
    Index iteration = 0;
    options.common.checkpoint.directory = folder.file("saved");
    options.common.checkpoint.requested = [&iteration] { return ++iteration == 3; };
    REQUIRE_THROWS_AS(run(X, Y), Suspended);
    options.common.checkpoint.requested = {};
    options.common.checkpoint.restart = options.common.checkpoint.directory;
    for (DistMatrix<double>* forgotten : {&X, &Y}) forgotten->set_zero();
    options.theta = 1;
    CHECK(contains(message_of<InputError>([&] { run(X, Y); }), "theta 0.5"));
    options.theta = 0.5;
    options.dual_guess = false;
    CHECK(contains(message_of<InputError>([&] { run(X, Y); }), "from a guess of y"));
    options.dual_guess = true;
    run(X, Y);
    CHECK(relative_difference(everywhere(X), everywhere(whole_X)) <= 1e-14);
    CHECK(relative_difference(everywhere(Y), everywhere(whole_Y)) <= 1e-14);
  }
}

TEST_CASE("Wrong arguments of the primal-dual method are refused on all ranks", "[primal_dual]") {
  for (const GridPtr& grid : compact_grids()) {
    const Space space = array_space(grid, {6}, 0), other = array_space(grid, {7}, 0);
    const OperatorPtr<double> I = identity<double>(space), twice = scale(2.0, I);
    const DistMatrix<double> B = filled(grid, space.layout(2), random_elements<double>(1));
    DistMatrix<double> X(grid, space.layout(2)), wrong(grid, other.layout(2)), Y(grid, space.layout(3));
    const ProximalPtr<double> f = quadratic<double>(1), g = box<double>(0, 1);
    const auto with = [](std::optional<double> tau, std::optional<double> sigma) {
      PrimalDualOptions options;
      options.tau = tau;
      options.sigma = sigma;
      return options;
    };
    CHECK_THROWS_AS(primal_dual(I, f, g, B, X, with(0, {})), UsageError);
    CHECK_THROWS_AS(primal_dual(I, f, g, B, X, with({}, -1)), UsageError);
    CHECK_THROWS_AS(primal_dual(I, f, g, B, X, with(infinity, {})), UsageError);
    for (const double theta : {-0.25, 1.25, std::nan("")}) {
      PrimalDualOptions relaxed;
      relaxed.theta = theta;
      const std::string text = message_of<UsageError>([&] { primal_dual(I, f, g, B, X, relaxed); });
      CHECK(contains(text, std::isnan(theta) ? "nan" : theta < 0 ? "-0.25" : "1.25"));
    }
    PrimalDualOptions guessed;
    guessed.dual_guess = true;
    CHECK_THROWS_AS(primal_dual(I, f, g, B, X, guessed), UsageError);
    CHECK_THROWS_AS(primal_dual(I, f, l2_misfit(I, B), B, X), UsageError);
    CHECK_THROWS_AS(primal_dual(I, l2_misfit(I, B), g, B, X), UsageError);
    CHECK_THROWS_AS(primal_dual(I, f, g, B, wrong), ShapeError);
    CHECK_THROWS_AS(primal_dual(I, f, g, B, X, {}, &Y), ShapeError);
    PrimalDualOptions damped;
    damped.common.damp = 1;
    CHECK_THROWS_AS(primal_dual(I, f, g, B, X, damped), UsageError);
    // τσ‖2I‖² = 1 is the most.
    if (!grid->is_member()) continue;
    CHECK_NOTHROW(primal_dual(twice, f, g, B, X, with(0.5, 0.5)));
    CHECK_THROWS_AS(primal_dual(twice, f, g, B, X, with(0.5, 0.6)), UsageError);
    const std::string out_of_range =
        message_of<UsageError>([&] { primal_dual(scale(1e156, I), f, g, B, X); });
    CHECK(contains(out_of_range, "the norm of A is about 1"));
  }
}
