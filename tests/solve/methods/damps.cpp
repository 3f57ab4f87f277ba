// SPDX-License-Identifier: BSD-3-Clause
// Every column has a damping, and a tolerance, of its own.
#include <cmath>
#include <limits>

#include "gridlops/solve/inversion.hpp"
#include "gridlops/solve/sparse_solver.hpp"
#include "support/grids.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Column 3 is zero, columns 0 and 4 are not damped.
const std::vector<double> dampings{0, 0.01, 0.1, 1, 0, 10, 0.3};
constexpr auto nrhs = Index{7};

template <Scalar T>
struct Method {
  const char* name;
  SolverFunction<T> solver;
  Algorithm algorithm = Algorithm::stationary_a;
  Storage storage = Storage::columns;
};

template <Scalar T>
std::vector<Method<T>> methods() {
  return {{"cgls", cgls<T>},
          {"cgls with summa", cgls<T>, Algorithm::summa},
          {"one-pass cgls", one_pass_cgls<T>, Algorithm::stationary_a, Storage::packed},
          {"lsqr", lsqr<T>},
          {"lsqr with block", lsqr<T>, Algorithm::block},
          {"lsmr", lsmr<T>, Algorithm::stationary_b}};
}

/// Copies of one right-hand side, but column 3.
template <Scalar T>
T data(Index i, Index j) {
  return j == 3 ? T(0) : counter_random<T>(4, i, 0);
}

/// Σ σ/(σ² + D²) (uᴴb) v over all singular values: the filter factors of Tikhonov regularisation.
template <Scalar T>
std::vector<T> filtered(const KnownSpectrum<T>& A, const std::vector<double>& values, double damp, Index j) {
  std::vector<T> x(static_cast<std::size_t>(A.cols()), T(0));
  for (std::size_t k = 0; k < values.size(); ++k) {
    const auto number = static_cast<Index>(k);
    T dot(0);
    for (Index i = 0; i < A.rows(); ++i) dot += conjugate(A.left(i, number)) * data<T>(i, j);
    const auto factor = static_cast<Real<T>>(values[k] / (values[k] * values[k] + damp * damp));
    for (Index i = 0; i < A.cols(); ++i) x[static_cast<std::size_t>(i)] += factor * dot * A.right(i, number);
  }
  return x;
}

SolveOptions with_damps(const std::vector<double>& damps) {
  SolveOptions options;
  options.damp = damps;
  return options;
}

}  // namespace

TEMPLATE_TEST_CASE("Each column is solved with a damping of its own, as its filter factors say", "", double,
                   std::complex<double>) {
  using T = TestType;
  for (const auto& [m, n] : {std::pair<Index, Index>{45, 23}, {19, 40}, {1, 9}, {8, 1}}) {
    const std::vector<double> values = geometric(std::min(m, n), 10);
    const KnownSpectrum<T> matrix(m, n, values);
    for (const GridPtr& grid : compact_grids()) {
      for (const Method<T>& method : methods<T>()) {
        const OperatorPtr<T> A =
            dense_operator<T>(grid, method.algorithm, matrix, {.storage = method.storage});
        for (const Index batch : {0, 3}) {
          SolveOptions options = with_damps(dampings);
          options.tolerance = 1e-12;
          options.batch = batch;
          options.guard = batch;
          const Solution<T> solution = solve<T>(method.solver, *A, nrhs, data<T>, options);
          if (!grid->is_member()) continue;
          check_same_everywhere(solution.report, grid->comm());
          CHECK(solution.report.alarms.empty());
          for (Index j = 0; j < nrhs; ++j) {
            const double damp = dampings[static_cast<std::size_t>(j)];
            CAPTURE(method.name, m, n, j, batch, describe(*grid), name_of(solution.verdict(j).reason));
            const std::vector<T> expected = filtered(matrix, values, damp, j), x = solution.column(j);
            // The gradient is within 1e-12 of ‖Aᴴb‖ ≤ ‖b‖ < 10, and (AᴴA + D²I)⁻¹ ≤ 100.
            double error = 0;
            for (std::size_t i = 0; i < x.size(); ++i) error += std::norm(x[i] - expected[i]);
            CHECK(std::sqrt(error) <= 1e-9);
          }
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("An iterate is that of a solve with this damping alone", "", double, std::complex<float>) {
  using T = TestType;
  const KnownSpectrum<T> matrix(45, 23, geometric(23, 30));
  for (const GridPtr& grid : compact_grids()) {
    for (const Method<T>& method : methods<T>()) {
      for (const bool guess : {false, true}) {
        if (guess && method.solver != SolverFunction<T>(&cgls<T>)) continue;
        const OperatorPtr<T> A = dense_operator<T>(grid, method.algorithm, matrix,
                                                   {.column_stable = true, .storage = method.storage});
        const Element<T> start = guess ? random_elements<T>(9) : Element<T>();
        SolveOptions options = with_damps(dampings);
        options.tolerance = 0;
        options.max_iterations = 6;
        options.column_stable = true;
        const Solution<T> together = solve<T>(method.solver, *A, nrhs, data<T>, options, start);
        for (Index j = 0; j < nrhs; ++j) {
          CAPTURE(method.name, j, guess, describe(*grid));
          options.damp = {dampings[static_cast<std::size_t>(j)]};
          const Solution<T> alone = solve_alone<T>(method.solver, *A, j, data<T>, options, start);
          options.damp = dampings[static_cast<std::size_t>(j)];
          const Solution<T> for_all = solve_alone<T>(method.solver, *A, j, data<T>, options, start);
          options.damp = 0;
          if (!grid->is_member()) continue;
          CHECK(together.column(j) == alone.X);
          CHECK(together.verdict(j).reason == for_all.verdict(0).reason);
          CHECK(together.verdict(j).iterations == for_all.verdict(0).iterations);
          CHECK(relative_difference(together.column(j), for_all.X) <= 1000 * epsilon_of<T>);
          CHECK(std::abs(together.verdict(j).residual_norm - for_all.verdict(0).residual_norm) <=
                1000 * epsilon_of<T> * 10);
        }
      }
    }
  }
}

TEST_CASE("Conjugate gradients take a damping for each column, also with a preconditioner and a guess") {
  const std::vector<double> values = geometric(23, 10);
  const KnownSpectrum<double> matrix = KnownSpectrum<double>::hermitian(values);
  for (const GridPtr& grid : compact_grids()) {
    const OperatorPtr<double> A = square_operator(grid, Algorithm::stationary_a, matrix);
    for (const bool preconditioned : {false, true}) {
      DistMatrix<double> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs));
      B.fill(data<double>);
      X.fill(random_elements<double>(9));
      SolveOptions options = with_damps(dampings);
      options.tolerance = 1e-12;
      options.initial_guess = preconditioned;
      const OperatorPtr<double> M = scale(0.5, identity<double>(A->domain()));
      const SolveReport report = preconditioned ? cg(*A, *M, B, X, options) : cg(*A, B, X, options);
      const std::vector<double> x = everywhere(X);
      if (!grid->is_member()) continue;
      for (Index j = 0; j < nrhs; ++j) {
        CAPTURE(preconditioned, j, describe(*grid));
        CHECK(report.columns[static_cast<std::size_t>(j)].reason == StopReason::converged);
        const double damp = dampings[static_cast<std::size_t>(j)];
        double error = 0;
        for (Index i = 0; i < 23; ++i) {
          double expected = 0;
          for (Index k = 0; k < 23; ++k) {
            double dot = 0;
            for (Index l = 0; l < 23; ++l) dot += matrix.left(l, k) * data<double>(l, j);
            expected += dot * matrix.left(i, k) / (values[static_cast<std::size_t>(k)] + damp * damp);
          }
          error = std::max(error, std::abs(x[static_cast<std::size_t>(i + 23 * j)] - expected));
        }
        CHECK(error <= 1e-9);
      }
    }
  }
}

TEST_CASE("Each column stops at a tolerance of its own, as it does alone") {
  const KnownSpectrum<double> matrix(45, 23, geometric(23, 30));
  const std::vector<double> tolerances{1e-2, 1e-10, 1e-4, 1e-8, 0.5, 0, 1e-6};
  for (const GridPtr& grid : compact_grids()) {
    std::vector<Method<double>> all = methods<double>();
    all.push_back({"block_cgls", block_cgls<double>});
    for (const Method<double>& method : all) {
      const OperatorPtr<double> A = dense_operator<double>(
          grid, method.algorithm, matrix, {.column_stable = true, .storage = method.storage});
      SolveOptions options;
      options.tolerance = tolerances;
      options.max_iterations = 1000;
      options.column_stable = true;
      const Solution<double> together = solve<double>(method.solver, *A, nrhs, data<double>, options);
      for (Index j = 0; j < nrhs; ++j) {
        CAPTURE(method.name, j, describe(*grid));
        const double tolerance = tolerances[static_cast<std::size_t>(j)];
        options.tolerance = tolerance;
        const WholeSystem<double> system(cgls<double>, 45, 23, Element<double>(matrix), data<double>,
                                         options);
        if (method.solver == SolverFunction<double>(&block_cgls<double>)) {
          if (!grid->is_member() || j == 5) continue;
          const auto norms = system.norms(j, together.column(j));
          CHECK(together.verdict(j).reason == StopReason::converged);
          CHECK(norms.tested <= tolerance * norms.reference * (1 + 1e-6) + 1e-13);
          continue;
        }
        const Solution<double> alone = solve_alone<double>(method.solver, *A, j, data<double>, options);
        if (!grid->is_member()) continue;
        CHECK(together.verdict(j).reason == alone.verdict(0).reason);
        CHECK(together.verdict(j).iterations == alone.verdict(0).iterations);
        CHECK(together.column(j) == alone.X);
      }
    }
  }
}

TEST_CASE("Dampings and tolerances that cannot be are refused with value and column on all ranks") {
  for (const GridPtr& grid : compact_grids()) {
    const KnownSpectrum<double> matrix(12, 12, geometric(12, 3));
    const OperatorPtr<double> A = square_operator(grid, Algorithm::stationary_a, matrix);
    DistMatrix<double> B(grid, A->range().layout(3)), X(grid, A->domain().layout(3));
    const auto refusal = [&](SolverFunction<double> solver, const SolveOptions& options) {
      return message_of<Error>([&] { solver(*A, B, X, options); });
    };
    const auto says = [](const std::string& text, const std::string& part) {
      CAPTURE(text, part);
      CHECK(text.find(part) != std::string::npos);
    };
    const Traffic before = world().traffic();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    says(refusal(cgls<double>, with_damps({1, -0.5, 1})), "damp is -0.5; it must be a finite number ≥ 0");
    says(refusal(lsqr<double>, with_damps({1, 1, nan})), "damp is nan");
    says(refusal(lsmr<double>, with_damps({1, 2})),
         "2 values of damp were given for 3 right-hand sides; give one for each, or one for all");
    SolveOptions tolerances;
    tolerances.tolerance = {1, 1e-3, -1};
    says(refusal(cgls<double>, tolerances), "tolerance is -1");
    const SolveOptions damped = with_damps({1, 2, 3});
    says(refusal(block_cgls<double>, damped), "damps is an option of " +
                                                  names_of(solvers_with(Feature::damping_per_column)) +
                                                  ", and means nothing to block-cgls");
    says(refusal(fista<double>, damped), "damp is an option of");
    says(message_of<Error>([&] {
           preconditioned_inversion<double>(A, B, X, {.P = identity<double>(A->domain()), .damps_x = true},
                                            damped);
         }),
         "a preconditioned inversion that damps x takes one damping for all columns");
    CHECK(world().traffic().calls == before.calls);
  }
}

TEST_CASE("No columns are solved with no dampings") {
  for (const GridPtr& grid : compact_grids()) {
    const KnownSpectrum<double> matrix(12, 9, geometric(9, 3));
    const OperatorPtr<double> A = dense_operator<double>(grid, Algorithm::summa, matrix);
    CHECK(solve<double>(cgls, *A, 0, data<double>, with_damps({})).report.columns.empty());
  }
}
