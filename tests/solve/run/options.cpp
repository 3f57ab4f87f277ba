// SPDX-License-Identifier: BSD-3-Clause
// These are the options of cgls(), and what it refuses.
#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "gridlops/solve/solver_table.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 45, n = 23, nrhs = 6;

struct Problem {
  explicit Problem(const GridPtr& on) : grid(on) {}

  Solution<double> solve_with(const SolveOptions& options) const {
    Solution<double> solution = solve<double>(cgls, *A, nrhs, b, options);
    if (grid->is_member())
      check_report(WholeSystem<double>(cgls, m, n, Element<double>(matrix), b, options), solution,
                   grid->comm());
    return solution;
  }

  GridPtr grid;
  KnownSpectrum<double> matrix{m, n, geometric(n, 30)};
  OperatorPtr<double> A = dense_operator(grid, Algorithm::summa, matrix);
  /// Column 1 takes one iteration, column 2 none.
  Element<double> b = [this](Index i, Index j) {
    return j == 1 ? matrix.left(i, 3) : j == 2 ? 0 : counter_random<double>(4, i, j);
  };
};

}  // namespace

TEST_CASE("A function called after each iteration on any one rank ends all columns on all ranks") {
  for (const auto& grid : compact_grids()) {
    const Problem problem(grid);
    for (int asking = 0; asking < grid->shape().size(); ++asking) {
      for (const Index batch : {0, 2}) {
        SolveOptions options;
        options.batch = batch;
        Index calls = 0;
        options.observers = {after_each_iteration([&](const IterationInfo& info) {
          ++calls;
          return grid->comm().rank() == asking && info.iteration == 4;
        })};
        const Solution<double> solution = problem.solve_with(options);
        if (!grid->is_member()) continue;
        CAPTURE(asking, batch);
        CHECK(calls == 4);
        for (Index j = 0; j < nrhs; ++j) {
          const ColumnReport& column = solution.verdict(j);
          if (j == 2 || (j == 1 && batch == 0)) {
            CHECK(column.reason == StopReason::converged);
          } else if (batch == 0) {
            CHECK(column.reason == StopReason::user_stop);
            CHECK(column.iterations == 4);
          } else {  // later batches have not begun
            CHECK((column.reason == StopReason::user_stop || column.reason == StopReason::converged));
            CHECK(column.iterations <= 4);
          }
        }
      }
    }
  }
}

TEST_CASE(
    "A function called after each iteration sees every column, in the order of B, with its last known "
    "norms") {
  for (const auto& grid : compact_grids()) {
    const Problem problem(grid);
    SolveOptions options;
    std::vector<std::vector<double>> residual_norms, tested_norms;
    std::vector<Index> active;
    options.observers = {after_each_iteration([&](const IterationInfo& info) {
      CHECK(info.iteration == static_cast<Index>(active.size()) + 1);
      residual_norms.emplace_back(info.residual_norms.begin(), info.residual_norms.end());
      tested_norms.emplace_back(info.tested_norms.begin(), info.tested_norms.end());
      active.push_back(info.active_columns);
      return false;
    })};
    const Solution<double> solution = problem.solve_with(options);
    if (!grid->is_member()) continue;
    CHECK(active.back() == 0);
    CHECK(std::is_sorted(active.rbegin(), active.rend()));
    CHECK(active.front() == nrhs - 2);
    const std::vector<IterationRecord>& history = solution.report.history;
    REQUIRE(history.size() == residual_norms.size() + 1);
    for (std::size_t k = 0; k < residual_norms.size(); ++k) {
      REQUIRE(residual_norms[k].size() == nrhs);
      REQUIRE(tested_norms[k].size() == nrhs);
      const IterationRecord& record = history[k + 1];
      for (std::size_t c = 0; c < record.columns.size(); ++c) {
        const auto j = static_cast<std::size_t>(record.columns[c]);
        CHECK(residual_norms[k][j] == record.residual_norms[c]);
        CHECK(tested_norms[k][j] == record.tested_norms[c]);
      }
      for (const std::size_t done : {std::size_t{1}, std::size_t{2}})
        CHECK(residual_norms[k][done] == residual_norms.back()[done]);
    }
  }
}

TEST_CASE("The history has every iteration of every column, and the residuals never grow") {
  for (const auto& grid : compact_grids()) {
    const Problem problem(grid);
    for (const double damp : {0.0, 0.2}) {
      SolveOptions options;
      options.damp = damp;
      const Solution<double> solution = problem.solve_with(options);
      options.record_history = false;
      CHECK(solve<double>(cgls, *problem.A, nrhs, problem.b, options).report.history.empty());
      if (!grid->is_member()) continue;
      std::vector<double> last(nrhs, std::numeric_limits<double>::infinity()), tested(nrhs, 1);
      std::vector<Index> entries(nrhs, 0);
      Index iteration = 0;
      for (const IterationRecord& record : solution.report.history) {
        CHECK(record.iteration == iteration++);
        REQUIRE(record.residual_norms.size() == record.columns.size());
        REQUIRE(record.tested_norms.size() == record.columns.size());
        for (std::size_t k = 0; k < record.columns.size(); ++k) {
          const auto j = static_cast<std::size_t>(record.columns[k]);
          CAPTURE(damp, j, record.iteration);
          // With damping it is the residual of [A; D·I] that cannot grow by rounding.
          CHECK(record.residual_norms[k] <= last[j] * (1 + (damp == 0 ? 1e-14 : 1e-6)));
          CHECK(entries[j] == record.iteration);
          last[j] = record.residual_norms[k];
          tested[j] = record.tested_norms[k];
          ++entries[j];
        }
      }
      CHECK(iteration == solution.report.iterations + 1);
      for (Index j = 0; j < nrhs; ++j) {
        const auto k = static_cast<std::size_t>(j);
        CHECK(entries[k] == solution.verdict(j).iterations + 1);
        CHECK(tested[k] <= 1e-8);
        CHECK(std::abs(last[k] - solution.verdict(j).residual_norm) <= 1e-10 * (1 + last[k]));
      }
      CHECK(solution.report.history.front().columns.size() == nrhs);
    }
  }
}

TEST_CASE("Without iterations X is the initial guess, and its norms are told") {
  for (const auto& grid : compact_grids()) {
    const Problem problem(grid);
    for (const Element<double>& guess : {Element<double>{}, random_elements<double>(8)}) {
      SolveOptions options;
      options.max_iterations = 0;
      options.damp = 0.1;
      const auto solution = solve<double>(cgls, *problem.A, nrhs, problem.b, options, guess);
      if (!grid->is_member()) continue;
      check_report(
          WholeSystem<double>(cgls, m, n, Element<double>(problem.matrix), problem.b, options, guess),
          solution, grid->comm());
      for (Index j = 0; j < nrhs; ++j) {
        const bool solved = j == 2;  // whose data are zero, so that x = 0 is taken
        CHECK(solution.verdict(j).reason == (solved ? StopReason::converged : StopReason::iteration_limit));
        CHECK(solution.verdict(j).iterations == 0);
        for (Index i = 0; i < n; ++i)
          CHECK(solution.X[static_cast<std::size_t>(i + j * n)] == (guess && !solved ? guess(i, j) : 0));
      }
    }
  }
}

TEST_CASE("Systems without rows, columns or right-hand sides are solved") {
  struct Shape {
    Index m, n, nrhs;
  };
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const Shape shape : {Shape{0, 5, 3}, Shape{5, 0, 3}, Shape{5, 4, 0}, Shape{0, 0, 2},
                                Shape{0, 0, 0}, Shape{1, 1, 1}, Shape{1, 3, 2}, Shape{3, 1, 2}}) {
        for (const bool initial_guess : {false, true}) {
          for (const double damp : {0.0, 0.5}) {
            CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), shape.m, shape.n, shape.nrhs,
                    initial_guess, damp);
            const Element<double> elements = random_elements<double>(1), b = random_elements<double>(2);
            const auto A = dense_operator<double>(grid, algorithm, shape.m, shape.n, elements);
            SolveOptions options;
            options.damp = damp;
            const Element<double> guess = initial_guess ? random_elements<double>(3) : Element<double>{};
            const auto solution = solve<double>(cgls, *A, shape.nrhs, b, options, guess);
            if (!grid->is_member()) continue;
            REQUIRE(static_cast<Index>(solution.report.columns.size()) == shape.nrhs);
            for (const ColumnReport& column : solution.report.columns)
              CHECK((column.reason == StopReason::converged || column.reason == StopReason::stagnated));
            check_report(WholeSystem<double>(cgls, shape.m, shape.n, elements, b, options, guess), solution,
                         grid->comm());
          }
        }
      }
    }
  }
}

TEST_CASE("Arguments that cannot be right are refused on all ranks, before any communication") {
  for (const auto& grid : compact_grids()) {
    const auto other = std::make_shared<const ProcessGrid>(world(), grid->shape(), grid->backend());
    const Problem problem(grid);
    const LinearOperator<double>& A = *problem.A;
    const auto data = [&](Index columns) { return DistMatrix<double>(grid, A.range().layout(columns)); };
    const auto model = [&](Index columns) { return DistMatrix<double>(grid, A.domain().layout(columns)); };
    const DistMatrix<double> B = data(4);
    DistMatrix<double> X = model(4), X_three = model(3);
    DistMatrix<double> X_rows(grid, Layout{Cut::uncut(n), A.domain().layout(4).cols});
    DistMatrix<double> X_elsewhere(other, A.domain().layout(4));
    const Traffic before = world().traffic();
    CHECK_THROWS_AS(cgls(A, B, X_three), ShapeError);
    CHECK(message_of<Error>([&] { cgls(A, B, X_three); }).find("cgls: model and data have 3 and 4 columns") !=
          std::string::npos);
    CHECK_THROWS_AS(cgls(A, B, X_rows), ShapeError);
    CHECK_THROWS_AS(cgls(A, B, X_elsewhere), ShapeError);
    const DistMatrix<double> no_data = model(4);
    CHECK_THROWS_AS(cgls(A, no_data, X), ShapeError);
    if (grid->cols() > 1) {
      std::vector<Index> sizes(static_cast<std::size_t>(grid->cols()), 0);
      sizes.back() = 4;
      DistMatrix<double> X_cut(grid, A.domain().layout(Partition::with_sizes(sizes)));
      CHECK_THROWS_AS(cgls(A, B, X_cut), ShapeError);
    }
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double bad : {-1.0, nan, std::numeric_limits<double>::infinity()}) {
      SolveOptions damp, tolerance;
      damp.damp = bad;
      tolerance.tolerance = bad;
      CHECK_THROWS_AS(cgls(A, B, X, damp), UsageError);
      CHECK_THROWS_AS(cgls(A, B, X, tolerance), UsageError);
    }
    SolveOptions limit, batch;
    limit.max_iterations = -1;
    batch.batch = -1;
    CHECK_THROWS_AS(cgls(A, B, X, limit), UsageError);
    CHECK_THROWS_AS(cgls(A, B, X, batch), UsageError);
    CHECK(world().traffic().calls == before.calls);
    CHECK(world().traffic().bytes_sent == before.bytes_sent);
  }
}

TEST_CASE("Stop reasons have the names that reports use") {
  CHECK(std::string(name_of(StopReason::converged)) == "converged");
  CHECK(std::string(name_of(StopReason::stagnated)) == "stagnated");
  CHECK(std::string(name_of(StopReason::iteration_limit)) == "iteration_limit");
  CHECK(std::string(name_of(StopReason::condition_limit)) == "condition_limit");
  CHECK(std::string(name_of(StopReason::user_stop)) == "user_stop");
  CHECK(std::string(name_of(StopReason::breakdown)) == "breakdown");
  CHECK(std::string(name_of(StopReason::non_finite)) == "non_finite");
}

TEST_CASE("A solver refuses the options that the table does not give it, on all ranks") {
  const auto grid = compact_grids().back();
  const OperatorPtr<double> A =
      square_operator(grid, Algorithm::stationary_a, KnownSpectrum<double>(n, n, geometric(n, 3)));
  const std::pair<const char*, std::function<void(SolveOptions&)>> cases[] = {
      {"atol", [](SolveOptions& options) { options.atol = 0; }},
      {"btol", [](SolveOptions& options) { options.btol = 1e-3; }},
      {"conlim", [](SolveOptions& options) { options.condition_limit = 1e8; }},
      {"one-pass", [](SolveOptions& options) { options.one_pass = true; }},
      {"damp", [](SolveOptions& options) { options.damp = 0.5; }},
      {"lambda", [](SolveOptions& options) { options.lambda = 0.5; }},
      {"threshold", [](SolveOptions& options) { options.threshold = Threshold::hard; }},
      {"step", [](SolveOptions& options) { options.step = 1e-3; }},
      {"backtracking", [](SolveOptions& options) { options.backtracking = true; }},
      {"monotone", [](SolveOptions& options) { options.monotone = true; }}};
  for (const auto& [name, give] : cases) {
    for (const Solver solver : named_solvers()) {
      CAPTURE(name, name_of(solver));
      SolveOptions options;
      give(options);
      const auto run = [&] {
        DistMatrix<double> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs));
        B.fill(random_elements<double>(4));
        gridlops::solve(solver, *A, B, X, options);
      };
      if (row_of(solver).has(Feature::factor) && grid->is_member() &&
          grid->backend()->memory_space() == MemorySpace::device)
        continue;  // refuses GPUs
      if (solver_option(name).is_taken_by(solver)) {
        CHECK_NOTHROW(run());
      } else if (grid->is_member()) {
        const std::string refusal = message_of<UsageError>(run);
        CHECK(refusal.find(std::string(name) + " is an option of ") == 0);
        CHECK(refusal.find("means nothing to ") != std::string::npos);
      }
    }
  }
}
