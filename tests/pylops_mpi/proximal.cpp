// SPDX-License-Identifier: BSD-3-Clause
// The cases of test_prox.py and test_proxsolver.py. Maps and values of L1, L0 and the box are in
// tests/solve/regularised/proximal.cpp, for 101 rows in every layout.
#include "gridlops/solve/proximal.hpp"

#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "pylops_mpi/plain_solvers.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Each rank's matrix: random, with a diagonal that keeps its smallest singular values from zero.
template <Scalar T>
OfRank<T> matrices(double diagonal) {
  return [diagonal](int rank, Index i, Index j) {
    return counter_random<T>(1, 1000 * rank + i, j) + T(i == j ? diagonal : 0.0);
  };
}

/// Solves H x = b by Gaussian elimination with pivots.
template <Scalar T>
Vector<T> solved(Whole<T> H, Vector<T> b) {
  const auto n = static_cast<std::size_t>(H.rows);
  const auto at = [&](std::size_t i, std::size_t j) -> T& { return H.values[i + j * n]; };
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < n; ++i)
      if (std::abs(at(i, k)) > std::abs(at(pivot, k))) pivot = i;
    for (std::size_t j = k; j < n; ++j) std::swap(at(k, j), at(pivot, j));
    std::swap(b[k], b[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const T factor = at(i, k) / at(k, k);
      for (std::size_t j = k; j < n; ++j) at(i, j) -= factor * at(k, j);
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= at(k, j) * b[j];
    b[k] /= at(k, k);
  }
  return b;
}

}  // namespace

TEMPLATE_TEST_CASE("The map and the value of an L2 misfit are those of its definition", "[pylops_mpi]",
                   double, std::complex<double>) {
  using T = TestType;
  constexpr double sigma = 2, tau = 0.7;
  const GridPtr grid = line_of_ranks();
  for (const bool everywhere : {false, true}) {
    const Space space = rows_on_ranks(grid, 101, everywhere);
    const Vector<T> d = random_array<T>(1, space.dimension()), b = random_array<T>(2, space.dimension()),
                    v = random_array<T>(3, space.dimension());
    Vector<T> expected = v;
    double misfit = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      expected[i] = (v[i] + tau * sigma * conjugate(d[i]) * b[i]) / (1 + tau * sigma * std::norm(d[i]));
      misfit += std::norm(d[i] * v[i] - b[i]);
    }
    const DistMatrix<T> B = column(space, b);
    SolveOptions solve;
    solve.tolerance = 1e-15;
    const ProximalPtr<T> f = l2_misfit(diagonal<T>(space, column(space, d)), B, sigma, solve);
    DistMatrix<T> X = column(space, v);
    CHECK(value(*f, X)[0] == Approx(0.5 * sigma * misfit).epsilon(1e-12));
    f->prox(tau, X);
    CHECK(difference(X, expected) <= 1e-12);
  }
}

TEST_CASE("Proximal gradient steps are those of their definition, wherever the model is", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  for (const SolverCase& of : solver_cases) {
    for (const bool everywhere : {false, true}) {
      with_type(of.complex, [&](auto type) {
        using T = decltype(type);
        const Space range = rows_on_ranks(grid, of.rows), domain = rows_on_ranks(grid, of.cols, everywhere);
        const OfRank<T> element = matrices<T>(0);
        const OperatorPtr<T> A = matrices_of_ranks(range, domain, element);
        const Whole<T> matrix = whole_of_ranks(range, domain, element);
        const Vector<T> b = random_array<T>(2, matrix.rows),
                        x0 = of.guess ? random_array<T>(3, matrix.cols)
                                      : Vector<T>(static_cast<std::size_t>(matrix.cols));
        SolveOptions options;
        options.lambda = 0.5;
        options.step = 0.99 / largest_eigenvalue(matrix);
        constexpr int iterations = 400;
        options.max_iterations = iterations;
        options.tolerance = 0;
        options.initial_guess = of.guess;
        for (const auto& [acceleration, momentum] : {std::pair{Acceleration::none, Momentum::none},
                                                     {Acceleration::fista, Momentum::fista},
                                                     {Acceleration::vandenberghe, Momentum::vandenberghe}}) {
          CAPTURE(of.rows, of.guess, of.complex, everywhere, static_cast<int>(momentum));
          options.acceleration = acceleration;
          DistMatrix<T> X = column(domain, x0);
          const SolveReport report =
              proximal_gradient(*A, threshold_penalty<T>(Threshold::soft), column(range, b), X, options);
          CAPTURE(report.iterations, name_of(report.columns[0].reason));
          CHECK(made_its_iterations(report, iterations));
          CHECK(difference(X, plain_proximal_gradient(matrix, b, x0, Threshold::soft, 0.5, *options.step,
                                                      momentum, iterations)) <= 1e-12);
        }
      });
    }
  }
}

TEST_CASE("ADMM makes the iterates of its definition", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  for (const SolverCase& of : solver_cases) {
    with_type(of.complex, [&](auto type) {
      using T = decltype(type);
      constexpr double tau = 1, sigma = 0.3;
      constexpr int iterations = 60;
      const Space range = rows_on_ranks(grid, of.rows);
      const Space domain = array_space(grid, {of.cols * world().size()}, 0);
      const OfRank<T> element = matrices<T>(4);
      const OperatorPtr<T> A = matrices_of_ranks(range, domain, element);
      const Whole<T> matrix = whole_of_ranks(range, domain, element);
      const Index n = matrix.cols;
      // L x: the differences of neighbours, and 0 at the end.
      const Whole<T> L{n, n, dense<T>(n, n, [n](Index i, Index j) {
                         return i == n - 1 ? T(0) : T(j == i + 1 ? 1.0 : j == i ? -1.0 : 0.0);
                       })};
      const OperatorPtr<T> differences =
          band_operator<T>(domain, 0, first_derivative(n, {Derivative::Kind::forward}));
      const Vector<T> b = random_array<T>(2, matrix.rows);
      Whole<T> H = multiplied(Op::adjoint, matrix, matrix);
      const Whole<T> LhL = multiplied(Op::adjoint, L, L);
      H.values = plus(H.values, T(1 / tau), LhL.values);
      const Vector<T> zero(static_cast<std::size_t>(n));
      const Vector<T> x0 = of.guess ? random_array<T>(3, n) : zero;
      Vector<T> x, z = times(L, x0), u = zero;
      for (int k = 0; k < iterations; ++k) {
        const Vector<T> right =
            plus(times(matrix, b, Op::adjoint), T(1 / tau), times(L, plus(z, T(-1), u), Op::adjoint));
        x = solved(H, right);
        const Vector<T> Lx = times(L, x);
        z = plus(Lx, T(1), u);
        for (T& element_of_z : z) element_of_z = thresholded(Threshold::soft, element_of_z, tau * sigma);
        u = plus(plus(u, T(1), Lx), T(-1), z);
      }
      AdmmOptions options;
      options.tau = tau;
      options.common.max_iterations = iterations;
      options.common.tolerance = 0;
      options.inner_iterations = 40;
      options.common.initial_guess = of.guess;
      DistMatrix<T> X = column(domain, x0);
      admm(A, differences, threshold_penalty<T>(Threshold::soft, sigma), column(range, b), X, options);
      CAPTURE(of.rows, of.guess, of.complex);
      CHECK(difference(X, x) <= 1e-3);
    });
  }
}
