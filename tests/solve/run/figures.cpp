// SPDX-License-Identifier: BSD-3-Clause
// Prints the tables that docs/solvers.md has its figures from, only on demand, with "[figures]".
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "solve/methods/block_problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

struct Timed {
  Solution<double> solution;
  double seconds = 0;
};

Timed timed(SolverFunction<double> solver, const LinearOperator<double>& A, Index nrhs,
            const Element<double>& b, const SolveOptions& options) {
  Timed result;
  const auto begin = std::chrono::steady_clock::now();
  result.solution = solve<double>(solver, A, nrhs, b, options);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  result.seconds = spent.count();
  return result;
}

bool prints(const GridPtr& grid) { return grid->is_member() && grid->comm().rank() == 0; }

/// The columns need very different numbers of iterations: column j excites 2 + j/2 singular directions.
Element<double> uneven_data(const KnownSpectrum<double>& matrix) {
  return [&matrix](Index i, Index j) {
    double sum = 0;
    for (Index t = 0; t <= j / 2 + 1; ++t) sum += matrix.left(i, (7 * j + 31 * t) % matrix.cols());
    return sum;
  };
}

}  // namespace

TEST_CASE("Figures: what leaves the products", "[.figures]") {
  const auto grid = compact_grids().back();
  constexpr Index m = 2000, n = 1500, nrhs = 64;
  const KnownSpectrum<double> matrix(m, n, geometric(n, 4));
  const Element<double> b = uneven_data(matrix);
  if (prints(grid))
    std::printf("\n%8s %12s %12s %16s %10s\n", "batch", "iterations", "columns", "workspace MiB", "seconds");
  for (const Index batch : {0, 32, 8, 1}) {
    const auto A = dense_operator(grid, Algorithm::stationary_a, matrix);
    SolveOptions options;
    options.batch = batch;
    const Timed run = timed(cgls, *A, nrhs, b, options);
    if (!prints(grid)) continue;
    Index sum = 0;
    for (const ColumnReport& column : run.solution.report.columns) sum += column.iterations;
    const double workspace = static_cast<double>(
        solver_workspace_bytes({Solver::cgls, A->range(), A->domain(), ScalarType::f64, nrhs, batch}, 0, 0));
    std::printf("%8lld %12lld %12lld %16.2f %10.2f\n", static_cast<long long>(batch),
                static_cast<long long>(run.solution.report.iterations),
                static_cast<long long>(A->activity().forward_columns), workspace / 1048576, run.seconds);
    CHECK(A->activity().forward_columns == sum + nrhs);
  }
}

TEST_CASE("Figures: what a shared space saves", "[.figures]") {
  const auto grid = compact_grids().back();
  constexpr Index m = 3200, n = 2400, nrhs = 32;
  const KnownSpectrum<double> matrix(m, n, with_outliers(n, 20));
  const auto A = uncut_operator<double>(grid, m, n, matrix);
  SolveOptions options;
  options.tolerance = 1e-6;
  options.max_iterations = 500;
  if (prints(grid)) std::printf("\n%12s %12s %10s\n", "solver", "iterations", "seconds");
  for (const SolverFunction<double> solver :
       {SolverFunction<double>(cgls<double>), SolverFunction<double>(lsqr<double>),
        SolverFunction<double>(lsmr<double>), SolverFunction<double>(block_cgls<double>)}) {
    const Timed run = timed(solver, *A, nrhs, random_elements<double>(4), options);
    if (!prints(grid)) continue;
    std::printf("%12s %12lld %10.2f\n", run.solution.report.solver.c_str(),
                static_cast<long long>(run.solution.report.iterations), run.seconds);
    for (const ColumnReport& column : run.solution.report.columns)
      CHECK(column.reason == StopReason::converged);
  }
}
