// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "gridlops/solve/solve_observer.hpp"
#include "solve/regularised/sparse_problems.hpp"
#include "support/catch.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 45, n = 60;

SolveOptions options_with(double lambda) {
  SolveOptions options;
  options.lambda = lambda;
  return options;
}

}  // namespace

TEST_CASE("Momentum saves iterations, and with restarts the objective falls monotonically") {
  constexpr Index few = 23;
  for (const auto& grid : compact_grids()) {
    const KnownSpectrum<double> matrix(m, few, geometric(few, 30));
    const auto A = dense_operator(grid, Algorithm::stationary_a, matrix);
    const Element<double> b = random_elements<double>(3);
    const NaiveSparse<double> naive(m, few, Element<double>(matrix), b, 0);
    SolveOptions options = options_with(0.001);
    options.record_history = false;
    const auto iterations = [&](bool momentum, bool restart) {
      options.max_iterations = 20000;
      options.tolerance = 1e-7;
      options.monotone = restart;
      const auto solution = solve_sparse<double>(momentum, *A, nullptr, 1, b, options);
      if (grid->is_member()) CHECK(solution.verdict(0).reason == StopReason::converged);
      return solution.report.iterations;
    };
    const Index plain = iterations(false, false), fast = iterations(true, false),
                anew = iterations(true, true);
    if (grid->is_member()) {
      CAPTURE(plain, fast, anew);
      CHECK(fast < plain);
      CHECK(anew < fast);
    }
    for (const bool restart : {true, false}) {
      options.monotone = restart;
      options.tolerance = 0;
      long double last = std::numeric_limits<long double>::infinity();
      Index rises = 0;
      for (Index limit = 0; limit < 250; limit += 25) {
        options.max_iterations = limit;
        const auto solution = solve_sparse<double>(true, *A, nullptr, 1, b, options);
        if (!grid->is_member()) continue;
        const long double objective = naive.objective(naive.widened(solution.X), 0.001L);
        rises += objective > last * (1 + 1e-13L) ? 1 : 0;
        last = objective;
      }
      if (grid->is_member()) CHECK((rises > 0) == !restart);
    }
  }
}

TEST_CASE("An absolute tolerance bounds the update of a sparse iteration itself") {
  for (const auto& grid : compact_grids()) {
    const auto A = dense_operator(grid, Algorithm::summa, KnownSpectrum<double>(m, n, geometric(m, 10)));
    const Element<double> b = random_elements<double>(3);
    SolveOptions options = options_with(0.05);
    options.max_iterations = 5000;
    options.tolerance = 0;
    options.absolute_tolerance = 1e-5;
    const auto solution = solve_sparse<double>(false, *A, nullptr, 2, b, options);
    if (!grid->is_member()) continue;
    for (Index j = 0; j < 2; ++j) CHECK(solution.verdict(j).reason == StopReason::converged);
    const IterationRecord& last = solution.report.history.back();
    const double update = last.tested_norms.front() * norm_of(solution.column(last.columns.front()));
    CHECK(update <= 1e-5);
    CHECK(update > 1e-6);
  }
}

TEST_CASE("Without a tolerance sparse columns end where rounding begins") {
  for (const auto& grid : compact_grids()) {
    const KnownSpectrum<float> matrix(m, n, geometric(m, 10));
    const auto A = dense_operator(grid, Algorithm::summa, matrix);
    const Element<float> b = random_elements<float>(3);
    for (const bool momentum : {false, true}) {
      SolveOptions options = options_with(0.05);
      options.max_iterations = 100000;
      options.tolerance = 0;
      options.record_history = false;
      const auto solution = solve_sparse<float>(momentum, *A, nullptr, 6, b, options);
      if (!grid->is_member()) continue;
      for (Index j = 0; j < 6; ++j) {
        CAPTURE(momentum, j, name_of(solution.verdict(j).reason));
        CHECK(solution.verdict(j).iterations < 20000);
        CHECK((solution.verdict(j).reason == StopReason::stagnated ||
               solution.verdict(j).reason == StopReason::converged));
        const NaiveSparse<float> naive(m, n, Element<float>(matrix), b, j);
        CHECK(naive.optimality_defect(naive.widened(solution.column(j)), 0.05L) <= 1e-3);
      }
    }
  }
}

TEST_CASE("A stop that one rank asks for ends all columns of a sparse solver") {
  for (const auto& grid : compact_grids()) {
    const auto A = dense_operator(grid, Algorithm::block, KnownSpectrum<double>(m, n, geometric(m, 10)));
    SolveOptions options = options_with(0.05);
    options.observers = {after_each_iteration([&grid](const IterationInfo& info) {
      return info.iteration == 4 && grid->comm().rank() == grid->comm().size() - 1;
    })};
    const auto solution = solve_sparse<double>(true, *A, nullptr, 5, random_elements<double>(3), options);
    if (!grid->is_member()) continue;
    check_same_everywhere(solution.report, grid->comm());
    for (Index j = 0; j < 5; ++j) {
      CHECK(solution.verdict(j).reason == StopReason::user_stop);
      CHECK(solution.verdict(j).iterations == 4);
    }
  }
}

TEST_CASE("A sparse iteration takes one reduction and no memory, whatever the number of columns") {
  for (const auto& grid : compact_grids()) {
    const auto A =
        dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<double>(m, n, geometric(m, 3)));
    for (const bool momentum : {false, true}) {
      for (const Index nrhs : {1, 40}) {
        std::vector<Index> reductions, allocations;
        SolveOptions options = options_with(0.05);
        options.monotone = momentum;
        options.observers = {after_each_iteration([&](const IterationInfo&) {
          reductions.push_back(grid->comm().traffic().calls_of(CommOperation::all_reduce));
          allocations.push_back(grid->backend()->allocations());
          return false;
        })};
        const auto solution =
            solve_sparse<double>(momentum, *A, nullptr, nrhs, random_elements<double>(3), options);
        if (!grid->is_member()) continue;
        REQUIRE(reductions.size() > 5);
        for (std::size_t k = 1; k < reductions.size(); ++k) {
          CHECK(reductions[k] - reductions[k - 1] == 1);
          CHECK(allocations[k] == allocations[0]);
        }
        CHECK(solution.report.iterations == static_cast<Index>(reductions.size()));
      }
    }
  }
}

TEST_CASE("Sparse solvers end at once where there is nothing to do, or a matrix that is not finite") {
  for (const auto& grid : compact_grids()) {
    const Element<double> nothing = [](Index, Index) { return 0.0; };
    for (const Index columns : {0, 3}) {
      const auto A = dense_operator<double>(grid, Algorithm::stationary_a, 7, 5, nothing);
      const auto solution = solve_sparse<double>(false, *A, nullptr, columns, random_elements<double>(3), {});
      if (!grid->is_member()) continue;
      for (Index j = 0; j < columns; ++j) CHECK(solution.verdict(j).reason == StopReason::converged);
      CHECK(norm_of(solution.X) == 0);
    }
    const Element<double> spoiled = [](Index i, Index j) { return i == 3 && j == 2 ? std::nan("") : 1.0; };
    const auto A = dense_operator<double>(grid, Algorithm::stationary_a, 7, 5, spoiled);
    const auto solution = solve_sparse<double>(true, *A, nullptr, 3, random_elements<double>(3), {});
    if (!grid->is_member()) continue;
    for (Index j = 0; j < 3; ++j) CHECK(solution.verdict(j).reason == StopReason::non_finite);
    for (const double size : {1e-200, 1e200}) {
      const auto extreme =
          dense_operator<double>(grid, Algorithm::stationary_a, 7, 5, [size](Index, Index) { return size; });
      CHECK_THROWS_AS(solve_sparse<double>(true, *extreme, nullptr, 3, random_elements<double>(3), {}),
                      UsageError);
    }
  }
}

TEST_CASE("Sparse options that cannot be are refused on all ranks") {
  for (const auto& grid : compact_grids()) {
    const auto A = dense_operator(grid, Algorithm::summa, KnownSpectrum<double>(m, n, geometric(m, 3)));
    const auto wrong = dense_operator(grid, Algorithm::summa, KnownSpectrum<double>(m, m, geometric(m, 3)));
    const auto attempt = [&](const SolveOptions& options, bool momentum = true) {
      solve_sparse<double>(momentum, *A, nullptr, 3, random_elements<double>(3), options);
    };
    CHECK_THROWS_AS(attempt(options_with(-1)), UsageError);
    CHECK_THROWS_AS(attempt(options_with(std::nan(""))), UsageError);
    SolveOptions options;
    options.lambda = {1, 2};
    CHECK_THROWS_AS(attempt(options), UsageError);
    options.lambda = {1, 2, -1};
    CHECK_THROWS_AS(attempt(options), UsageError);
    options = {};
    options.step = 0;
    CHECK_THROWS_AS(attempt(options), UsageError);
    const std::string out_of_range = message_of<UsageError>([&] {
      solve_sparse<double>(true, *A, nullptr, 3,
                           [](Index i, Index j) { return 1e-170 * counter_uniform(3, i, j); }, {});
    });
    CHECK((!grid->is_member() || contains(out_of_range, "right-hand side 0 has elements of about")));
    options.step = 1e-60;
    CHECK_THROWS_AS(solve_sparse<float>(true, *identity<float>(A->domain()), nullptr, 3,
                                        random_elements<float>(3), options),
                    UsageError);
    options = {};
    options.decay = {1, -1};
    CHECK_THROWS_AS(attempt(options), UsageError);
    options = {};
    options.tolerance = -1;
    CHECK_THROWS_AS(attempt(options), UsageError);
    options = {};
    options.damp = 1;
    CHECK_THROWS_AS(attempt(options), UsageError);
    options = {};
    options.monotone = true;
    CHECK_THROWS_AS(attempt(options, false), UsageError);
    CHECK_THROWS_AS(solve_sparse<double>(false, *A, wrong.get(), 3, random_elements<double>(3), {}),
                    ShapeError);
  }
}
