// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/proximal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gridlops/base/error.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/solve/sparse_solver.hpp"
#include "support/arrays.hpp"
#include "support/problems.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Steps of their own for three columns.
ColumnScalars own_steps() { return ColumnScalars(std::vector<double>{0.3, 0.05, 1.7}); }

/// Calls check(X) with X of 101 rows and three columns in every layout.
template <Scalar T, class Check>
void for_each_operand(Check&& check) {
  for_each_layout(101, 3, 0, [&](const GridPtr& grid, const Layout& layout) {
    check(filled(grid, layout, random_elements<T>(8)));
  });
}

/// Checks element (i, j) of X, and that all sums are these.
template <Scalar T>
void check_map(const ProximalOperator<T>& f, const std::function<T(T x, double tau)>& expected,
               const std::function<double(T x)>& term) {
  const Element<T> x = random_elements<T>(8);
  const ColumnScalars tau = own_steps();
  for_each_operand<T>([&](DistMatrix<T> X) {
    const ColumnScalars values = value(f, X);
    f.prox(tau, X);
    CHECK(mismatches(
              X, [&](Index i, Index j) { return expected(x(i, j), tau[j]); }, 4 * epsilon_of<T>) == 0);
    if (!X.grid()->is_member()) return;
    for (Index j = 0; j < 3; ++j) {
      double sum = 0;
      for (Index i = 0; i < 101; ++i) sum += term(x(i, j));
      CHECK(values[j] == Approx(sum).epsilon(101 * epsilon_of<T>));
    }
  });
}

template <Scalar T>
T clipped(T x, double lower, double upper) {
  const auto clip = [=](double y) { return std::min(std::max(y, lower), upper); };
  return number<T>(clip(static_cast<double>(std::real(x))), clip(static_cast<double>(std::imag(x))));
}

/// x shortened to a modulus.
template <Scalar T>
T with_modulus(T x, double modulus) {
  const auto own = static_cast<double>(std::abs(x));
  return own == 0 ? T(0) : x * static_cast<Real<T>>(modulus / own);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Proximal maps and values are those of their closed forms", "[proximal]", Scalars) {
  using T = TestType;
  const auto modulus = [](T x) { return static_cast<double>(std::abs(x)); };
  for (const double sigma : {1.0, 0.4, 0.0}) {
    check_map<T>(
        *threshold_penalty<T>(Threshold::soft, sigma),
        [=](T x, double tau) { return with_modulus(x, std::max(modulus(x) - tau * sigma, 0.0)); },
        [=](T x) { return sigma * modulus(x); });
    check_map<T>(
        *threshold_penalty<T>(Threshold::hard, sigma),
        [=](T x, double tau) { return modulus(x) > std::sqrt(2 * tau * sigma) ? x : T(0); },
        [=](T) { return sigma; });
  }
  check_map<T>(
      *box<T>(-0.25, 0.5), [](T x, double) { return clipped(x, -0.25, 0.5); }, [](T) { return infinity; });
  check_map<T>(
      *box<T>(-infinity, 9), [](T x, double) { return x; }, [](T) { return 0.0; });
}

TEMPLATE_LIST_TEST_CASE("The map of a conjugate is what Moreau's decomposition leaves", "[proximal]",
                        Scalars) {
  using T = TestType;
  const ColumnScalars tau = own_steps();
  const Element<T> x = random_elements<T>(8);
  for_each_operand<T>([&](DistMatrix<T> X) {
    DistMatrix<T> Y = X.clone(), W(X.grid(), X.layout());
    // The conjugate of σ‖x‖₁ is the indicator of ‖y‖∞ ≤ σ, and that of a box the largest yᵢ times a bound.
    prox_of_conjugate(*threshold_penalty<T>(Threshold::soft, 0.4), tau, X, W);
    CHECK(mismatches(
              X,
              [&](Index i, Index j) {
                const T y = x(i, j);
                return with_modulus(y, std::min(static_cast<double>(std::abs(y)), 0.4));
              },
              8 * epsilon_of<T>) == 0);
    prox_of_conjugate(*box<T>(-0.25, 0.5), 0.7, Y, W);
    CHECK(mismatches(
              Y,
              [&](Index i, Index j) {
                const T y = x(i, j), scaled = y / static_cast<Real<T>>(0.7);
                return y - static_cast<Real<T>>(0.7) * clipped(scaled, -0.25, 0.5);
              },
              8 * epsilon_of<T>) == 0);
  });
}

TEMPLATE_TEST_CASE("The map of an L2 misfit solves its normal equations, with a step for each column",
                   "[proximal]", double, std::complex<double>) {
  using T = TestType;
  constexpr double sigma = 0.6;
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      const OperatorPtr<T> A = dense_operator<T>(grid, algorithm, 23, 11, random_elements<T>(1));
      const DistMatrix<T> B = filled(grid, A->range().layout(3), random_elements<T>(2)),
                          V = filled(grid, A->domain().layout(3), random_elements<T>(3));
      SolveOptions solve;
      solve.tolerance = 1e-13;
      const ProximalPtr<T> f = l2_misfit(A, B, sigma, solve);
      for (const bool alike : {true, false}) {
        const ColumnScalars tau = alike ? ColumnScalars(3, 0.8) : ColumnScalars({0.8, 0, 2.5});
        DistMatrix<T> X = V.clone(), G(grid, V.layout()), R(grid, B.layout());
        f->prox(tau, X);
        copy(B, R);
        A->apply(T(-1), X, T(1), R);
        A->apply_adjoint(T(1), R, T(0), G);  // Aᴴ(b − A x)
        G *= sigma * tau;
        G -= X;
        G += V;
        const std::vector<double> defects = column_norms(G), norms = column_norms(R);
        const ColumnScalars values = value(*f, X);
        for (std::size_t j = 0; j < defects.size(); ++j) {
          CHECK(defects[j] <= 1e-10);
          CHECK(values[static_cast<Index>(j)] == Approx(0.5 * sigma * norms[j] * norms[j]));
        }
      }
    }
  }
}

namespace {

constexpr Index m = 40, n = 24, nrhs = 4;

/// Whether two solutions have the same bits, on members.
template <Scalar T>
void check_same_bits(const SolveReport& a, const SolveReport& b, const DistMatrix<T>& X,
                     const DistMatrix<T>& Y) {
  CHECK(a.iterations == b.iterations);
  CHECK(everywhere(X) == everywhere(Y));
}

}  // namespace

TEMPLATE_TEST_CASE("The proximal gradient method with a threshold is ISTA or FISTA", "[proximal]", double,
                   std::complex<double>) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    const auto A = dense_operator(grid, Algorithm::summa, KnownSpectrum<T>(m, n, geometric(n, 3)));
    const DistMatrix<T> B = filled(grid, A->range().layout(nrhs), random_elements<T>(4));
    DistMatrix<T> X(grid, A->domain().layout(nrhs)), Y(grid, A->domain().layout(nrhs));
    for (const Threshold kind : {Threshold::soft, Threshold::hard}) {
      SolveOptions options;
      options.lambda = {0.02, 0.05, 0.1, 0.2};
      options.max_iterations = 60;
      SolveOptions with_kind = options;
      with_kind.threshold = kind;
      const ProximalPtr<T> g = threshold_penalty<T>(kind);
      SolveReport given = fista(*A, B, X, with_kind);
      check_same_bits(given, proximal_gradient(*A, g, B, Y, options), X, Y);
      options.acceleration = Acceleration::none;
      given = ista(*A, B, X, with_kind);
      check_same_bits(given, proximal_gradient(*A, g, B, Y, options), X, Y);
    }
  }
}

TEST_CASE("Vandenberghe's acceleration has its momentum", "[proximal]") {
  constexpr double alpha = 0.9, lambda = 0.05;
  constexpr Index iterations = 12;
  const KnownSpectrum<double> matrix(m, n, geometric(n, 3));
  // The method for one column, written from its definition.
  std::vector<double> b, x(n), y(n);
  for (Index i = 0; i < m; ++i) b.push_back(random_elements<double>(4)(i, 0));
  for (Index k = 1; k <= iterations; ++k) {
    std::vector<double> r = b, next = y;
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j)
        r[static_cast<std::size_t>(i)] -= matrix(i, j) * y[static_cast<std::size_t>(j)];
    for (std::size_t j = 0; j < n; ++j) {
      for (Index i = 0; i < m; ++i)
        next[j] += alpha * matrix(i, static_cast<Index>(j)) * r[static_cast<std::size_t>(i)];
      next[j] = std::copysign(std::max(std::abs(next[j]) - alpha * lambda, 0.0), next[j]);
      y[j] = next[j] + (static_cast<double>(k) - 1) / (static_cast<double>(k) + 2) * (next[j] - x[j]);
    }
    x = next;
  }
  for (const auto& grid : compact_grids()) {
    const auto A = dense_operator(grid, Algorithm::summa, matrix);
    const DistMatrix<double> B = filled(grid, A->range().layout(1), random_elements<double>(4));
    DistMatrix<double> X(grid, A->domain().layout(1));
    SolveOptions options;
    options.lambda = lambda;
    options.step = alpha;
    options.acceleration = Acceleration::vandenberghe;
    options.tolerance = 0;
    options.max_iterations = iterations;
    proximal_gradient(*A, threshold_penalty<double>(Threshold::soft), B, X, options);
    if (grid->is_member()) CHECK(relative_difference(everywhere(X), x) <= 1e-12);
  }
}

TEST_CASE("Columns in a box that converge fulfil the conditions of optimality", "[proximal]") {
  const KnownSpectrum<double> matrix(m, n, geometric(n, 3));
  for (const auto& grid : compact_grids()) {
    const auto A = dense_operator(grid, Algorithm::summa, matrix);
    const DistMatrix<double> B = filled(grid, A->range().layout(nrhs), random_elements<double>(4));
    DistMatrix<double> X(grid, A->domain().layout(nrhs)), R(grid, B.layout()), G(grid, X.layout());
    for (const Acceleration acceleration :
         {Acceleration::none, Acceleration::fista, Acceleration::vandenberghe}) {
      SolveOptions options;
      options.lambda = 1;
      options.acceleration = acceleration;
      options.tolerance = 1e-11;
      options.max_iterations = 5000;
      const SolveReport report = proximal_gradient(*A, box<double>(-0.1, 0.3), B, X, options);
      copy(B, R);
      A->apply(-1, X, 1, R);
      A->apply_adjoint(1, R, 0, G);
      if (!grid->is_member()) continue;
      check_same_everywhere(report, grid->comm());
      CHECK(report.solver == "proximal-gradient");
      for (const ColumnReport& column : report.columns) CHECK(column.reason == StopReason::converged);
      const std::vector<double> x = everywhere(X), g = everywhere(G);
      for (std::size_t i = 0; i < x.size(); ++i) {
        CHECK((x[i] >= -0.1 && x[i] <= 0.3));
        CHECK((std::abs(g[i]) <= 1e-8 || (g[i] > 0 && x[i] == 0.3) || (g[i] < 0 && x[i] == -0.1)));
      }
    }
  }
}

TEMPLATE_TEST_CASE("ADMM with an identity finds the optimum of the lasso", "[proximal]", double,
                   std::complex<double>) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    const auto A = dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<T>(m, n, geometric(n, 3)));
    const OperatorPtr<T> I = dense_operator<T>(grid, Algorithm::stationary_a, n, n,
                                               [](Index i, Index j) { return T(i == j ? 1 : 0); });
    const DistMatrix<T> B = filled(grid, A->range().layout(nrhs), random_elements<T>(4));
    DistMatrix<T> X(grid, A->domain().layout(nrhs)), Y(grid, A->domain().layout(nrhs));
    SolveOptions sparse;
    sparse.lambda = 0.1;
    sparse.tolerance = 1e-12;
    sparse.max_iterations = 5000;
    fista(*A, B, X, sparse);
    AdmmOptions options;
    options.common.tolerance = 1e-9;
    options.common.max_iterations = 1000;
    options.inner_iterations = 30;
    const SolveReport report = admm(A, I, threshold_penalty<T>(Threshold::soft, 0.1), B, Y, options);
    if (!grid->is_member()) continue;
    check_same_everywhere(report, grid->comm());
    CHECK(report.solver == "admm");
    for (const ColumnReport& column : report.columns) CHECK(column.reason == StopReason::converged);
    CHECK(relative_difference(everywhere(Y), everywhere(X)) <= 1e-7);
  }
}

TEST_CASE("What ADMM calls converged is the optimum, whatever tau and the weight", "[proximal]") {
  constexpr double tolerance = 1e-7;
  const auto grid = compact_grids().front();
  const auto A = dense_operator(grid, Algorithm::summa, KnownSpectrum<double>(m, n, geometric(n, 3)));
  const OperatorPtr<double> I = identity<double>(A->domain());
  const DistMatrix<double> B = filled(grid, A->range().layout(nrhs), random_elements<double>(4));
  DistMatrix<double> best(grid, A->domain().layout(nrhs)), X(grid, A->domain().layout(nrhs)), R = B.clone();
  for (const double sigma : {1e-6, 0.3, 100.0}) {
    const ProximalPtr<double> g = threshold_penalty<double>(Threshold::soft, sigma);
    const auto objectives = [&](const DistMatrix<double>& of) {
      copy(B, R);
      A->apply(-1, of, 1, R);
      const std::vector<double> misfits = column_norms(R), sums = column_norms(of, 1);
      std::vector<double> values;
      for (std::size_t j = 0; j < misfits.size(); ++j)
        values.push_back(0.5 * misfits[j] * misfits[j] + sigma * sums[j]);
      return values;
    };
    SolveOptions sparse;
    sparse.lambda = sigma;
    sparse.tolerance = 1e-13;
    sparse.max_iterations = 5000;
    fista(*A, B, best, sparse);
    const std::vector<double> least = objectives(best);
    for (const double tau : {1e-4, 1.0, 10.0, 1e4}) {
      AdmmOptions options;
      options.tau = tau;
      options.common.tolerance = tolerance;
      const bool is_fast = tau == 1 || tau == 10;
      options.inner_iterations = 12;
      options.common.max_iterations = is_fast ? 600 : 50;
      const SolveReport report = admm(A, I, g, B, X, options);
      const std::vector<double> found = objectives(X);
      if (!grid->is_member()) continue;
      for (std::size_t j = 0; j < found.size(); ++j) {
        CAPTURE(sigma, tau, j, found[j], least[j]);
        const bool converged = report.columns[j].reason == StopReason::converged;
        // Of the objective, T bounds y·r and s·(x − x*) by T times products of norms of about its size.
        if (converged) CHECK(found[j] <= least[j] * (1 + 100 * tolerance));
        if (is_fast) CHECK(converged);
      }
    }
  }
}

TEMPLATE_TEST_CASE("Total variation by ADMM is exact, column by column, wherever the array is cut",
                   "[proximal]", double, std::complex<double>) {
  using T = TestType;
  constexpr Index samples = 30, columns = 3;
  constexpr double sigma = 0.4;
  // Two steps with noise, of another size in each column; the last column is zero.
  const Element<T> b = [](Index i, Index j) {
    const T step = i < 11 ? number<T>(1, 0.5) : i < 20 ? number<T>(-2, 1) : number<T>(0.5, 0.5);
    return j == 2 ? T(0) : step * static_cast<double>(j + 1) + 0.2 * counter_random<T>(5, i, j);
  };
  for (const auto& grid : compact_grids()) {
    const Space space = array_space(grid, {samples}, 0);
    const OperatorPtr<T> I = identity<T>(space), L = gradient<T>(space, {1}, Derivative::Kind::forward);
    const ProximalPtr<T> g = threshold_penalty<T>(Threshold::soft, sigma);
    const DistMatrix<T> B = filled(grid, space.layout(columns), b);
    DistMatrix<T> X(grid, space.layout(columns));
    AdmmOptions options;
    options.common.tolerance = 1e-10;
    options.common.max_iterations = 3000;
    const SolveReport report = admm(I, L, g, B, X, options);
    if (!grid->is_member()) continue;
    check_same_everywhere(report, grid->comm());
    const std::vector<T> x = everywhere(X);
    for (Index j = 0; j < columns; ++j) {
      CAPTURE(j);
      CHECK(report.columns[static_cast<std::size_t>(j)].reason == StopReason::converged);
      // x = b − Lᴴu with |uᵢ| ≤ σ, and uᵢ = σ (xᵢ₊₁ − xᵢ)/|xᵢ₊₁ − xᵢ| at each jump: the solution is unique.
      T u = 0;
      for (Index i = 0; i < samples; ++i) {
        const auto at_i = static_cast<std::size_t>(i + j * samples);
        u -= b(i, j) - x[at_i];
        if (i == samples - 1) {
          CHECK(std::abs(u) <= 1e-8);
          continue;
        }
        const T jump = x[at_i + 1] - x[at_i];
        CHECK(std::abs(u) <= sigma + 1e-8);
        if (std::abs(jump) > 1e-6) CHECK(std::abs(u - sigma / std::abs(jump) * jump) <= 1e-7);
      }
      // A column alone has the same solution.
      const DistMatrix<T> one = filled(grid, space.layout(1), [&](Index i, Index) { return b(i, j); });
      DistMatrix<T> alone(grid, space.layout(1));
      admm(I, L, g, one, alone, options);
      const std::vector<T> y = everywhere(alone);
      for (Index i = 0; i < samples; ++i)
        CHECK(std::abs(y[static_cast<std::size_t>(i)] - x[static_cast<std::size_t>(i + j * samples)]) <=
              1e-9);
    }
  }
}

TEST_CASE("ADMM goes on from an initial guess", "[proximal]") {
  for (const auto& grid : compact_grids()) {
    const Space space = array_space(grid, {7}, 0);
    const OperatorPtr<double> I = identity<double>(space);
    const DistMatrix<double> B = filled(grid, space.layout(2), random_elements<double>(1));
    DistMatrix<double> X = filled(grid, space.layout(2), random_elements<double>(2));
    const std::vector<double> b = everywhere(B), guess = everywhere(X);
    AdmmOptions options;
    options.common.initial_guess = true;
    options.common.max_iterations = 1;
    options.tau = 0.25;
    admm(I, I, threshold_penalty<double>(Threshold::soft, 0.1), B, X, options);
    if (!grid->is_member()) continue;
    // The first x minimises ½‖x − b‖² + ‖x − guess‖²/(2τ).
    const std::vector<double> x = everywhere(X);
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(std::abs(x[i] - (0.25 * b[i] + guess[i]) / 1.25) <= 1e-14);
  }
}

TEST_CASE("ADMM does not take the solution of least squares alone for its own", "[proximal]") {
  for (const auto& grid : compact_grids()) {
    const Space space = array_space(grid, {7}, 0);
    const OperatorPtr<double> I = identity<double>(space);
    const DistMatrix<double> B = filled(grid, space.layout(2), random_elements<double>(1));
    DistMatrix<double> X = filled(grid, space.layout(2), random_elements<double>(1));
    AdmmOptions options;
    options.common.initial_guess = true;
    options.common.tolerance = 1e-12;
    const ProximalPtr<double> g = threshold_penalty<double>(Threshold::soft, 0.1);
    options.common.max_iterations = 0;
    const SolveReport none = admm(I, I, g, B, X, options);
    options.common.max_iterations = 100;
    const SolveReport report = admm(I, I, g, B, X, options);
    if (!grid->is_member()) continue;
    for (const ColumnReport& column : none.columns) CHECK(column.reason == StopReason::iteration_limit);
    for (const ColumnReport& column : report.columns) CHECK(column.reason == StopReason::converged);
    const std::vector<double> b = everywhere(B), x = everywhere(X);
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(std::abs(x[i] - std::copysign(std::max(std::abs(b[i]) - 0.1, 0.0), b[i])) <= 1e-10);
  }
}

TEST_CASE("Wrong arguments of proximal operators and their solvers are refused on all ranks", "[proximal]") {
  CHECK_THROWS_AS(threshold_penalty<double>(Threshold::soft, -1), UsageError);
  CHECK_THROWS_AS(box<double>(1, 0), UsageError);
  CHECK_THROWS_AS(box<double>(std::nan(""), 0), UsageError);
  for (const auto& grid : compact_grids()) {
    const Space space = array_space(grid, {6}, 0), other = array_space(grid, {7}, 0);
    const OperatorPtr<double> I = identity<double>(space);
    const DistMatrix<double> B = filled(grid, space.layout(2), random_elements<double>(1)),
                             C = filled(grid, other.layout(2), random_elements<double>(1));
    DistMatrix<double> X(grid, space.layout(2)), W(grid, space.layout(2));
    const ProximalPtr<double> g = threshold_penalty<double>(Threshold::soft), f = l2_misfit(I, B);
    CHECK_THROWS_AS(l2_misfit(I, B, -1), UsageError);
    CHECK_THROWS_AS(l2_misfit(I, C), ShapeError);
    CHECK_THROWS_AS(g->prox(ColumnScalars(3, 1), X), ShapeError);
    CHECK_THROWS_AS(proximal_gradient(*I, f, B, X), UsageError);
    CHECK_THROWS_AS(admm(I, I, f, B, X), UsageError);
    AdmmOptions options;
    options.tau = 0;
    CHECK_THROWS_AS(admm(I, I, g, B, X, options), UsageError);
    options = {};
    options.inner_iterations = 0;
    CHECK_THROWS_AS(admm(I, I, g, B, X, options), UsageError);
    options = {};
    options.common.damp = 1;
    CHECK_THROWS_AS(admm(I, I, g, B, X, options), UsageError);
    CHECK_THROWS_AS(admm(I, identity<double>(other), g, B, X), ShapeError);
    // No columns are no problem.
    DistMatrix<double> none(grid, space.layout(0));
    CHECK(admm(I, I, g, none, none).columns.empty());
    CHECK(proximal_gradient(*I, g, none, none, {}).columns.empty());
  }
}
