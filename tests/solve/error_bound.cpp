// SPDX-License-Identifier: BSD-3-Clause
// Errors are at most what error_bounds() says; solutions are those of the normal equations in long double.
#include "gridlops/solve/error_bound.hpp"

#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "io/npy_files.hpp"
#include "support/disagreements.hpp"
#include "support/grids.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 31, n = 12, nrhs = 3;
constexpr double least = 0.03125;  // no singular value of A is smaller
using Long = std::complex<long double>;

Long long_of(double x) { return x; }
Long long_of(std::complex<double> x) { return {x.real(), x.imag()}; }

/// The rows of a multiple of I stand above random ones, whose columns become shorter and shorter.
template <Scalar T>
T element_of_A(Index i, Index j) {
  if (i < n) return i == j ? T(least) : T(0);
  return counter_random<T>(5, i, j) * T(static_cast<Real<T>>(std::ldexp(1.0, -static_cast<int>(j) / 2)));
}

/// The x that minimises ‖A x − b‖² + D²‖x‖², by Cholesky's factors of AᴴA + D²I.
template <Scalar T>
std::array<Long, n> solution(Index column, double damp) {
  const auto element = [](T value) { return long_of(Accumulator<T>(value)); };
  std::array<std::array<Long, n>, n> L{};
  std::array<Long, n> x{};
  for (Index i = 0; i < m; ++i) {
    std::array<Long, n> row{};
    for (std::size_t j = 0; j < n; ++j) row[j] = element(element_of_A<T>(i, static_cast<Index>(j)));
    for (std::size_t j = 0; j < n; ++j) {
      x[j] += std::conj(row[j]) * element(counter_random<T>(6, i, column));
      for (std::size_t k = 0; k <= j; ++k) L[j][k] += std::conj(row[j]) * row[k];
    }
  }
  for (std::size_t j = 0; j < n; ++j) {
    L[j][j] += static_cast<long double>(damp) * damp;
    for (std::size_t k = 0; k <= j; ++k) {
      for (std::size_t l = 0; l < k; ++l) L[j][k] -= L[j][l] * std::conj(L[k][l]);
      L[j][k] = j == k ? std::sqrt(L[j][j]) : L[j][k] / L[k][k];
    }
  }
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k) x[j] -= L[j][k] * x[k];
    x[j] /= L[j][j];
  }
  for (std::size_t j = n; j-- > 0;) {
    for (std::size_t k = j + 1; k < n; ++k) x[j] -= std::conj(L[k][j]) * x[k];
    x[j] /= L[j][j];
  }
  return x;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("No error is above its bound, and bounds become as small as rounding lets them",
                        "[error_bound]", Scalars) {
  using T = TestType;
  for (const GridPtr& grid : compact_grids()) {
    DistMatrix<T> matrix(grid, matrix_layout(Algorithm::summa, *grid, m, n));
    matrix.fill(element_of_A<T>);
    const double norm = frobenius_norm(matrix);
    const OperatorPtr<T> A = matrix_mult(Algorithm::summa, std::move(matrix));
    const DistMatrix<T> B = filled(grid, A->range().layout(nrhs), random_elements<T>(6));
    DistMatrix<T> X(grid, A->domain().layout(nrhs));
    for (const Solver solver : {Solver::cgls, Solver::lsqr, Solver::lsmr}) {
      for (const double damp : {0.0, 0.25}) {
        for (const Index iterations : {1, 3, 8, 200}) {
          SolveOptions options;
          options.damp = damp;
          options.max_iterations = iterations;
          options.tolerance = iterations == 200 ? epsilon_of<T> : 0.0;
          options.sigma_min = damp == 0 ? least : 0;
          const SolveReport report = solve(solver, *A, B, X, options);
          const std::vector<double> bounds = error_bounds(report, B, X, {damp, damp == 0 ? least : 0, norm});
          const std::vector<T> found = everywhere(X);
          if (!grid->is_member()) continue;
          for (Index j = 0; j < nrhs; ++j) {
            const std::array<Long, n> x = solution<T>(j, damp);
            long double error = 0, size = 0;
            for (std::size_t i = 0; i < n; ++i) {
              error += std::norm(long_of(Accumulator<T>(found[static_cast<std::size_t>(j * n) + i])) - x[i]);
              size += std::norm(x[i]);
            }
            const double bound = bounds[static_cast<std::size_t>(j)];
            CHECK(std::sqrt(error) <= bound);
            if (iterations == 200) CHECK(bound <= 1e5 * epsilon_of<T> * std::sqrt(size));
          }
        }
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("With three singular values the quadrature of the third gradient is exact",
                        "[error_bound]", Scalars) {
  using T = TestType;
  const auto value = [](Index i) { return std::ldexp(0.5, static_cast<int>(i % 3)); };
  for (const GridPtr& grid : compact_grids()) {
    const Space space{grid, Cut::balanced(Axis::all, 7, *grid), Axis::uncut};
    DistMatrix<T> d(grid, space.layout(1)), B(grid, space.layout(nrhs)), X = B.clone();
    d.fill([&](Index i, Index) { return T(static_cast<Real<T>>(value(i))); });
    B.fill(random_elements<T>(6));
    const OperatorPtr<T> A = diagonal(std::move(d));
    const std::vector<T> b = everywhere(B);
    for (const Solver solver : {Solver::cgls, Solver::lsqr, Solver::cg}) {
      for (const double damp : {0.0, 0.75}) {
        const bool is_definite = solver == Solver::cg;
        const double mu = damp * damp + (is_definite ? 0.5 : 0.25);
        for (const Index iterations : {0, 2}) {
          const SolveReport report =
              solve(solver, *A, B, X,
                    {.max_iterations = iterations, .tolerance = 0.0, .damp = damp, .sigma_min = 0.5});
          const ErrorBoundOptions known{damp, 0.5, 6, is_definite};
          const std::vector<double> bounds = error_bounds(report, B, X, known),
                                    of_less = error_bounds(report, B, X, {damp, 0.25, 6, is_definite});
          const std::vector<T> x = everywhere(X);
          if (!grid->is_member()) continue;
          CHECK(report.sigma_min == 0.5);
          for (std::size_t j = 0; j < static_cast<std::size_t>(nrhs); ++j) {
            long double energy = 0, gradient = 0;  // gᴴM⁻¹g and ‖g‖²
            for (std::size_t i = 0; i < 7; ++i) {
              const long double a = value(static_cast<Index>(i)), M = (is_definite ? a : a * a) + damp * damp;
              const Long g = (is_definite ? 1 : a) * long_of(Accumulator<T>(b[j * 7 + i])) -
                             M * long_of(Accumulator<T>(x[j * 7 + i]));
              energy += std::norm(g) / M;
              gradient += std::norm(g);
            }
            CAPTURE(describe(*grid), name_of(solver), damp, iterations, j);
            const double quadrature = report.columns[j].quadrature;
            if (iterations == 0) CHECK(quadrature == 1);
            if (iterations == 2)
              CHECK(quadrature ==
                    Approx(static_cast<double>(energy / gradient) * mu).epsilon(1e3 * epsilon_of<T>));
            const double of_gradient = std::sqrt(quadrature * static_cast<double>(gradient)) / mu;
            CHECK(bounds[j] == Approx(of_gradient).epsilon(1e4 * epsilon_of<T>));
            // It rests on σ.
            CHECK(of_less[j] >= static_cast<double>(std::sqrt(gradient)) / mu);
          }
        }
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Bounds of one pass hold after a step of length 0", "[error_bound]", Scalars) {
  using T = TestType;
  const bool is_single = sizeof(Real<T>) == 4;
  const double damp = is_single ? 1e-3 : 1e-6;
  const auto value = [&](Index i) {
    return static_cast<Real<T>>(std::pow(damp, 4.0 * static_cast<double>(i) / 3));
  };
  for (const GridPtr& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, 3, 3,
                                               [&](Index i, Index j) { return T(i == j ? value(i) : 0); });
    const DistMatrix<T> B = filled(grid, A->range().layout(nrhs), random_elements<T>(6));
    DistMatrix<T> X(grid, A->domain().layout(nrhs));
    const std::vector<T> b = everywhere(B);
    for (const Index iterations : {1, 2, 3, 4}) {
      const SolveReport report =
          cgls(*A, B, X, {.max_iterations = iterations, .tolerance = 0.0, .damp = damp, .one_pass = true});
      const std::vector<double> bounds = error_bounds(report, B, X, {.damp = damp, .frobenius_norm = 1});
      const std::vector<T> x = everywhere(X);
      if (!grid->is_member()) continue;
      for (std::size_t j = 0; j < static_cast<std::size_t>(nrhs); ++j) {
        long double error = 0;
        for (std::size_t i = 0; i < 3; ++i) {
          const long double a = value(static_cast<Index>(i)), D = damp;
          error += std::norm(long_of(Accumulator<T>(x[j * 3 + i])) -
                             a / (a * a + D * D) * long_of(Accumulator<T>(b[j * 3 + i])));
        }
        CAPTURE(describe(*grid), iterations, j);
        CHECK(std::sqrt(error) <= bounds[j]);
      }
    }
  }
}

TEST_CASE("What a quadrature knows survives a restart, but not one with another σ", "[error_bound]") {
  using T = double;
  const ScratchFolder folder;
  for (const GridPtr& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n, element_of_A<T>);
    const DistMatrix<T> B = filled(grid, A->range().layout(nrhs), random_elements<T>(6));
    DistMatrix<T> X(grid, A->domain().layout(nrhs));
    for (const Solver solver : {Solver::cgls, Solver::lsqr}) {
      const std::string directory = folder.file(describe(*grid) + name_of(solver));
      SolveOptions options{.max_iterations = 4, .tolerance = 0.0, .sigma_min = least};
      options.checkpoint.directory = directory;
      solve(solver, *A, B, X, options);
      world().barrier();
      options.max_iterations = 7;
      options.checkpoint = {.restart = directory};
      const SolveReport resumed = solve(solver, *A, B, X, options);
      options.sigma_min = least / 2;
      const SolveReport other = solve(solver, *A, B, X, options);
      options.checkpoint = {};
      options.sigma_min = least;
      const SolveReport whole = solve(solver, *A, B, X, options);
      if (!grid->is_member()) continue;
      for (std::size_t j = 0; j < static_cast<std::size_t>(nrhs); ++j) {
        CAPTURE(describe(*grid), name_of(solver), j);
        CHECK(whole.columns[j].quadrature < 0.9);
        CHECK(resumed.columns[j].quadrature == whole.columns[j].quadrature);
        CHECK(other.columns[j].quadrature == 1);
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Columns end when their error is certainly small enough", "[error_bound]", Scalars) {
  using T = TestType;
  for (const GridPtr& grid : compact_grids()) {
    DistMatrix<T> matrix(grid, matrix_layout(Algorithm::stationary_a, *grid, m, n));
    matrix.fill(element_of_A<T>);
    SolveOptions options;
    options.frobenius_norm = frobenius_norm(matrix);
    const OperatorPtr<T> A = matrix_mult(Algorithm::stationary_a, std::move(matrix));
    const DistMatrix<T> B = filled(grid, A->range().layout(nrhs), random_elements<T>(6));
    DistMatrix<T> X(grid, A->domain().layout(nrhs));
    for (const Solver solver : {Solver::cgls, Solver::lsqr, Solver::lsmr, Solver::block_cgls}) {
      for (const double damp : {0.0, 0.25}) {
        Index before = 0;
        for (const double error : {0.3, 0.03, 1e-15}) {  // single precision hides 0.003
          options.damp = damp;
          options.sigma_min = damp == 0 ? least : 0;
          options.error = error;
          const SolveReport report = solve(solver, *A, B, X, options);
          const std::vector<T> found = everywhere(X);
          if (!grid->is_member()) continue;
          CHECK(report.iterations >= before);
          before = report.iterations;
          for (Index j = 0; j < nrhs; ++j) {
            const StopReason reason = report.columns[static_cast<std::size_t>(j)].reason;
            if (error < 1e-14) {
              CHECK(reason == StopReason::stagnated);  // what no rounding allows
              continue;
            }
            CHECK(reason == StopReason::converged);
            const std::array<Long, n> x = solution<T>(j, damp);
            long double distance = 0, size = 0;
            for (std::size_t i = 0; i < n; ++i) {
              const Long mine = long_of(Accumulator<T>(found[static_cast<std::size_t>(j * n) + i]));
              distance += std::norm(mine - x[i]);
              size += std::norm(mine);
            }
            CHECK(std::sqrt(distance) <= error * std::sqrt(size));
          }
        }
      }
    }
    options = {.error = 0.1, .frobenius_norm = 1};
    CHECK_THROWS_AS(cgls(*A, B, X, options), UsageError);  // neither D nor σ
    options = {.damp = 1, .error = 0.1};
    CHECK_THROWS_AS(cgls(*A, B, X, options), UsageError);  // no norm
    const OperatorPtr<T> wide = adjoint(A);
    DistMatrix<T> Y(grid, wide->domain().layout(nrhs)), C(grid, wide->range().layout(nrhs));
    options = {.error = 0.1, .sigma_min = 1, .frobenius_norm = 1};
    CHECK_THROWS_AS(cgls(*wide, C, Y, options), UsageError);  // more models than data
  }
}

/// least·I and a matrix of rank 1, VVᴴ for a vector V of length 1.
template <Scalar T>
struct DefiniteSystem {
  static constexpr Index size = 12;
  std::array<Long, size> v{};
  double size_of_A = 0;

  DefiniteSystem() {
    long double squares = 0;
    for (std::size_t i = 0; i < size; ++i) {
      v[i] = long_of(Accumulator<T>(counter_random<T>(8, static_cast<Index>(i), 0)));
      squares += std::norm(v[i]);
    }
    for (Long& element : v) element /= std::sqrt(squares);
  }
  T element(Index i, Index j) const {
    const Long rank_1 = v[static_cast<std::size_t>(i)] * std::conj(v[static_cast<std::size_t>(j)]),
               sum = rank_1 + (i == j ? Long(least) : Long(0));
    if constexpr (is_complex<T>) {
      return T(static_cast<Real<T>>(sum.real()), static_cast<Real<T>>(sum.imag()));
    } else {
      return static_cast<T>(sum.real());
    }
  }
};

TEMPLATE_LIST_TEST_CASE("Errors of conjugate gradients are bounded by the smallest eigenvalue",
                        "[error_bound]", Scalars) {
  using T = TestType;
  const DefiniteSystem<T> system;
  const auto size = DefiniteSystem<T>::size;
  for (const GridPtr& grid : compact_grids()) {
    DistMatrix<T> matrix(grid, matrix_layout(Algorithm::stationary_a, *grid, size, size));
    matrix.fill([&](Index i, Index j) { return system.element(i, j); });
    const double norm = frobenius_norm(matrix);
    const OperatorPtr<T> product_with_A = matrix_mult(Algorithm::stationary_a, std::move(matrix)),
                         A = product(identity<T>(product_with_A->domain(), product_with_A->range()),
                                     product_with_A);
    // A x* for x* of integers, in the type: x* solves the rounded system to rounding.
    const auto exact = [](Index i, Index j) { return static_cast<double>((3 * i + 5 * j) % 7 - 3); };
    for (const double damp : {0.0, 0.5}) {
      DistMatrix<T> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs)), x_star = X.clone();
      x_star.fill([&](Index i, Index j) { return j == 1 ? T(0) : T(static_cast<Real<T>>(exact(i, j))); });
      A->apply(1, x_star, 0, B);
      B += damp * damp * x_star;
      const double sigma = damp == 0 ? least * (1 - 1e-5) : 0.0;
      // B is rounded, by less than this.
      const double of_B = 4 * size * epsilon_of<T> * (norm + damp * damp);
      for (const Index iterations : {0, 1, 2, 60}) {
        SolveOptions options{.max_iterations = iterations, .tolerance = epsilon_of<T>, .damp = damp};
        if (iterations == 60)
          options = {.damp = damp, .error = 0.01, .sigma_min = sigma, .frobenius_norm = norm};
        const SolveReport report = cg(*A, B, X, options);
        const std::vector<double> bounds = error_bounds(report, B, X, {damp, sigma, norm, true});
        DistMatrix<T> difference = X.clone();
        difference -= 1 * x_star;
        const std::vector<double> errors = column_norms(difference), sizes = column_norms(X),
                                  solutions = column_norms(x_star);
        if (!grid->is_member()) continue;
        for (std::size_t j = 0; j < static_cast<std::size_t>(nrhs); ++j) {
          CAPTURE(describe(*grid), damp, iterations, j);
          CHECK(errors[j] <= bounds[j] + of_B * solutions[j] / (sigma + damp * damp));
          if (iterations == 60) CHECK((report.columns[j].reason == StopReason::converged));
          if (iterations == 60) CHECK(bounds[j] <= 0.01 * sizes[j] * (1 + 1e-6));
        }
      }
      // Where all eigenvalues are 3, the bound of x = 0 is its error.
      const SolveReport none = cg(*scale(T(3), identity<T>(A->domain())), B, X, {.max_iterations = 0});
      const std::vector<double> bounds = error_bounds(none, B, X, {0, 3, 3 * std::sqrt(size), true}),
                                sizes = column_norms(B);
      if (!grid->is_member()) continue;
      for (std::size_t j = 0; j < sizes.size(); ++j)
        CHECK(bounds[j] == Approx(sizes[j] / 3).epsilon(1e-4).margin(1e-30));
      SolveOptions options{.error = 0.1, .sigma_min = 1, .frobenius_norm = 1};
      CHECK_THROWS_AS(minres(*A, B, X, options), UsageError);  // its systems may be indefinite
    }
  }
}

TEMPLATE_LIST_TEST_CASE("An error that rounding hides from the gradient is bounded, too", "[error_bound]",
                        Scalars) {
  using T = TestType;
  for (const GridPtr& grid : compact_grids()) {
    const Space space{grid, Cut::balanced(Axis::all, 5, *grid), Axis::uncut};
    const OperatorPtr<T> A = scale(T(3), identity<T>(space));
    DistMatrix<T> B(grid, space.layout(1)), X(grid, space.layout(1));
    B.fill([](Index, Index) { return T(1); });
    const SolveReport report = cgls(*A, B, X);
    const std::vector<double> bounds = error_bounds(report, B, X, {.sigma_min = 3, .frobenius_norm = 7});
    const std::vector<T> found = everywhere(X);
    if (!grid->is_member()) continue;
    CHECK(report.columns[0].normal_residual_norm == 0);  // 3x rounds to 1
    const long double error = std::sqrt(5.0L) * std::abs(long_of(Accumulator<T>(found[0])) - 1 / 3.0L);
    CHECK((error > 0 && error <= bounds[0]));
  }
}

TEMPLATE_LIST_TEST_CASE("Errors after a guess from afar are bounded, of problems of any size",
                        "[error_bound]", Scalars) {
  using T = TestType;
  const DefiniteSystem<T> system;
  const auto size = DefiniteSystem<T>::size;
  const double sigma = least * (1 - 1e-5);
  constexpr int far = sizeof(Real<T>) == 4 ? 30 : 500;
  for (const GridPtr& grid : compact_grids()) {
    for (const int power : {0, far, -far}) {  // of A
      const auto unit = static_cast<Real<T>>(std::ldexp(1.0, power));
      DistMatrix<T> matrix(grid, matrix_layout(Algorithm::stationary_a, *grid, size, size));
      matrix.fill([&](Index i, Index j) { return unit * system.element(i, j); });
      const double norm = frobenius_norm(matrix);
      const OperatorPtr<T> product_with_A = matrix_mult(Algorithm::stationary_a, std::move(matrix)),
                           A = product(identity<T>(product_with_A->domain(), product_with_A->range()),
                                       product_with_A);
      DistMatrix<T> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs)), x_star = X.clone();
      x_star.fill([](Index i, Index j) { return T(static_cast<Real<T>>((3 * i + 5 * j) % 7 - 3)); });
      A->apply(1, x_star, 0, B);
      const double of_B = 4 * size * epsilon_of<T> * std::ldexp(norm, -power);  // as B is rounded
      for (const Solver solver : {Solver::cg, Solver::cgls, Solver::lsqr, Solver::lsmr, Solver::block_cgls}) {
        const bool is_definite = solver == Solver::cg;
        for (const double distance : {1e2, 1e6}) {
          X.fill([&](Index i, Index j) {
            return T(static_cast<Real<T>>(distance)) * counter_random<T>(9, i, j);
          });
          SolveOptions options{.max_iterations = 30, .tolerance = 0.0, .sigma_min = std::ldexp(sigma, power)};
          options.initial_guess = true;
          const SolveReport report = solve(solver, *A, B, X, options);
          const std::vector<double> bounds =
              error_bounds(report, B, X, {0, options.sigma_min, norm, is_definite});
          DistMatrix<T> difference = X.clone();
          difference -= 1 * x_star;
          const std::vector<double> errors = column_norms(difference), solutions = column_norms(x_star);
          if (!grid->is_member()) continue;
          for (std::size_t j = 0; j < static_cast<std::size_t>(nrhs); ++j) {
            CAPTURE(describe(*grid), name_of(solver), power, distance, j, report.columns[j].quadrature);
            CHECK(errors[j] <= bounds[j] + of_B * solutions[j] / sigma);
            CHECK(bounds[j] <= 1e7 * epsilon_of<T> * solutions[j]);
          }
        }
      }
    }
  }
}

TEST_CASE("A gradient of 0 is no small error where rounding hides more", "[error_bound]") {
  for (const GridPtr& grid : compact_grids()) {
    // b is orthogonal to the only column of A, but for its last element, which is lost in Aᴴb.
    const OperatorPtr<double> A =
        dense_operator<double>(grid, Algorithm::stationary_a, 3, 1, [](Index, Index) { return 1.0; });
    DistMatrix<double> B(grid, A->range().layout(1)), X(grid, A->domain().layout(1));
    B.fill([](Index i, Index) { return i == 0 ? 1e12 : i == 1 ? -1e12 : 1e-6; });
    for (const Solver solver : {Solver::cgls, Solver::lsqr, Solver::lsmr, Solver::block_cgls}) {
      const SolveOptions options{.error = 1e-3, .sigma_min = 1.7, .frobenius_norm = std::sqrt(3.0)};
      const SolveReport report = solve(solver, *A, B, X, options);
      const std::vector<double> bounds =
          error_bounds(report, B, X, {.sigma_min = 1.7, .frobenius_norm = std::sqrt(3.0)});
      const std::vector<double> x = everywhere(X);
      if (!grid->is_member()) continue;
      CAPTURE(describe(*grid), name_of(solver), x[0], bounds[0]);
      CHECK(std::abs(x[0] - 1e-6 / 3) <= bounds[0]);
      CHECK(bounds[0] > 1e-3 * std::abs(x[0]));
      CHECK(report.columns[0].reason == StopReason::stagnated);
    }
  }
}

TEST_CASE("Norms of matrices are those of their elements, of any size", "[error_bound]") {
  for (const GridPtr& grid : compact_grids()) {
    for (const double power : {0.0, 600.0, -600.0}) {
      DistMatrix<double> A(grid, matrix_layout(Algorithm::summa, *grid, 3, 2));
      A.fill([power](Index i, Index j) {
        return std::ldexp(static_cast<double>(i - j), static_cast<int>(power));
      });
      const double norm = frobenius_norm(A);
      if (grid->is_member())
        CHECK(std::abs(std::ldexp(norm, -static_cast<int>(power)) - std::sqrt(7.0)) <= 1e-14);
    }
  }
}

TEST_CASE("Where nothing bounds an error the bound is infinite, and wrong arguments are refused on all ranks",
          "[error_bound]") {
  const auto grid = compact_grids().front();
  const OperatorPtr<double> A = dense_operator<double>(grid, Algorithm::summa, m, n, element_of_A<double>);
  const DistMatrix<double> B = filled(grid, A->range().layout(nrhs), random_elements<double>(6));
  DistMatrix<double> X(grid, A->domain().layout(nrhs)), none(grid, A->domain().layout(0));
  const SolveReport report = cgls(*A, B, X);
  for (const double bound : error_bounds(report, B, X, {.frobenius_norm = 10}))
    CHECK(bound == std::numeric_limits<double>::infinity());
  CHECK_THROWS_AS(error_bounds(report, B, X, {.damp = -1}), UsageError);
  CHECK_THROWS_AS(error_bounds(report, B, X, {.sigma_min = -1}), UsageError);
  CHECK_THROWS_AS(error_bounds(report, B, X, {.damp = 1, .frobenius_norm = -1}), UsageError);
  for (const double bound : error_bounds(report, B, X, {.damp = 1, .frobenius_norm = std::nan("")}))
    CHECK(std::isnan(bound));
  for (const double bound : error_bounds(report, B, X, {.damp = 1, .frobenius_norm = HUGE_VAL}))
    CHECK(bound == std::numeric_limits<double>::infinity());
  // The squares of n singular values have the sum ‖A‖_F².
  const double most = 10 / std::sqrt(static_cast<double>(n));
  CHECK_THROWS_AS(error_bounds(report, B, X, {.sigma_min = 1.001 * most, .frobenius_norm = 10}), UsageError);
  CHECK_NOTHROW(error_bounds(report, B, X, {.sigma_min = most, .frobenius_norm = 10}));
  SolveOptions options{.sigma_min = 1.001 * most, .frobenius_norm = 10};
  CHECK_THROWS_AS(cgls(*A, B, X, options), UsageError);
  CHECK_THROWS_AS(error_bounds(report, X, B, {.sigma_min = 1}), UsageError);  // more models than data
  CHECK_THROWS_AS(error_bounds(report, B, none, {.damp = 1}), ShapeError);
  CHECK_THROWS_AS(error_bounds(report, B, X, {.damp = {1, 2}}), ShapeError);
  if (!grid->is_member() || grid->comm().size() == 1) return;
  const bool am_odd = grid->comm().rank() == grid->comm().size() - 1;
  check_disagreement(grid->comm(), {"sigma_min"}, [&] {
    error_bounds(report, B, X, {.sigma_min = am_odd ? 2.0 : 1.0, .frobenius_norm = 100});
  });
}
