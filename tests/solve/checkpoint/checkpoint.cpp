// SPDX-License-Identifier: BSD-3-Clause
// Solvers are interrupted, and go on from what they saved.

#include <algorithm>
#include <utility>

#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/proximal.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "io/checkpoint_files.hpp"
#include "io/npy_files.hpp"
#include "solve/checkpoint/saved_problem.hpp"

using namespace gridlops;
using namespace gridlops::testing;

TEMPLATE_TEST_CASE("A restart on the same grid ends as the run that was not interrupted, to the bit", "",
                   double, std::complex<float>) {
  for (const GridPtr& grid : compact_grids()) {
    for (const Case<TestType>& how : all_cases<TestType>()) {
      const Problem<TestType> problem(grid, how, 30);
      for (const Index batch : {0, 2}) {
        CAPTURE(how.name, batch, describe(*grid));
        const ScratchFolder folder;
        SolveOptions options;
        options.batch = batch;
        const Solution<TestType> whole = problem.solve_with(options);
        problem.suspend(options, folder.file("saved"), 4, grid->shape().size() - 1);
        options.checkpoint.restart = folder.file("saved");
        const Solution<TestType> resumed = problem.solve_with(options);
        CHECK(same_bits(resumed.X, whole.X));
        CHECK(numbers_in(resumed.report) == numbers_in(whole.report));
      }
    }
  }
}

TEST_CASE("CG restarts to the bit") {
  const auto values = geometric(n, 30);
  for (const GridPtr& grid : compact_grids()) {
    const KnownSpectrum<double> matrix = KnownSpectrum<double>::hermitian(values);
    const OperatorPtr<double> product =
        dense_operator(grid, Algorithm::stationary_a, matrix, {.column_stable = needs_order()});
    const OperatorPtr<double> A =
        gridlops::product(identity<double>(product->domain(), product->range()), product);
    const ScratchFolder folder;
    SolveOptions options;
    options.column_stable = needs_order();
    const Solution<double> whole = solve<double>(cg, *A, nrhs, random_elements<double>(4), options);
    options.checkpoint.directory = folder.file("saved");
    options.checkpoint.every_iterations = 3;
    const Solution<double> saving = solve<double>(cg, *A, nrhs, random_elements<double>(4), options);
    options.checkpoint.restart = folder.file("saved");
    const Solution<double> resumed = solve<double>(cg, *A, nrhs, random_elements<double>(4), options);
    CHECK(same_bits(saving.X, whole.X));
    CHECK(same_bits(resumed.X, whole.X));
    CHECK(numbers_in(resumed.report) == numbers_in(whole.report));
  }
}

TEST_CASE("LSQR's variances restart to the bit, also those of batches that are through") {
  for (const GridPtr& grid : compact_grids()) {
    const KnownSpectrum<double> matrix(m, n, geometric(n, 30));
    const OperatorPtr<double> A =
        dense_operator(grid, Algorithm::stationary_a, matrix, {.column_stable = needs_order()});
    DistMatrix<double> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs));
    B.fill(random_elements<double>(4));
    const auto variances = [&](const SolveOptions& options) {
      DistMatrix<double> V(grid, A->domain().layout(nrhs));
      V.fill([](Index, Index) { return -1.0; });
      lsqr(*A, B, X, V, options);
      return everywhere(V);
    };
    for (const Index batch : {0, 2}) {
      const ScratchFolder folder;
      SolveOptions options;
      options.batch = batch;
      options.column_stable = needs_order();
      const std::vector<double> whole = variances(options);
      Index calls = 0;
      options.checkpoint.directory = folder.file("saved");
      options.checkpoint.requested = [&] { return ++calls >= (batch == 0 ? 20 : 40); };  // in a later batch
      if (grid->is_member()) CHECK_THROWS_AS(variances(options), Suspended);
      options.checkpoint = {};
      options.checkpoint.restart = folder.file("saved");
      CHECK(same_bits(variances(options), whole));
    }
  }
}

TEST_CASE("On another grid ten further iterations agree to rounding") {
  std::vector<GridPtr> grids = compact_grids();
  // Stacks are ordered as the grid is: one grid of two dimensions, and one of one.
  if (world().size() == 4)
    grids.push_back(std::make_shared<const ProcessGrid>(world(), GridShape{4, 1}, grids.front()->backend()));
  for (const Case<double>& how : all_cases<double>()) {
    for (const GridPtr& first : grids) {
      const ScratchFolder folder;
      SolveOptions options;
      options.tolerance = 0;
      options.max_iterations = 14;
      const Problem<double> begun(first, how, 3);
      std::vector<double> expected = begun.solve_with(options).X;
      expected.resize(static_cast<std::size_t>(n * nrhs));
      world().broadcast(expected, 0);
      begun.suspend(options, folder.file("saved"), 4, 0);
      world().barrier();
      options.checkpoint.restart = folder.file("saved");
      for (const GridPtr& second : grids) {
        CAPTURE(how.name, describe(*first), describe(*second));
        const Solution<double> resumed = Problem<double>(second, how, 3).solve_with(options);
        if (second->is_member()) CHECK(relative_difference(resumed.X, expected) < 1e-12);
      }
    }
  }
}

TEMPLATE_TEST_CASE(
    "The end at the limit of iterations is saved, and with more of them a restart is the run without "
    "interruption",
    "", double, std::complex<float>) {
  for (const GridPtr& grid : compact_grids()) {
    for (const Case<TestType>& how : all_cases<TestType>()) {
      const Problem<TestType> problem(grid, how, 3);
      SolveOptions options;
      const Solution<TestType> whole = problem.solve_with(options);
      std::vector<Index> iterations{whole.report.iterations};  // none on idle ranks, which wait for others
      world().broadcast(iterations, 0);
      for (const Index limit : {0, 1, 4}) {
        if (iterations.front() <= limit) continue;
        for (const Index every : {0, 2, 3}) {
          CAPTURE(how.name, describe(*grid), limit, every);
          const ScratchFolder folder;
          SolveOptions limited = options;
          limited.max_iterations = limit;
          limited.checkpoint.directory = folder.file("saved");
          limited.checkpoint.every_iterations = every;
          const Solution<TestType> begun = problem.solve_with(limited);
          limited.checkpoint.restart = folder.file("saved");
          for (const Index as_low : {limit, limit / 2}) {
            limited.max_iterations = as_low;
            const Solution<TestType> again = problem.solve_with(limited);
            CHECK(same_bits(again.X, begun.X));
            CHECK(numbers_in(again.report) == numbers_in(begun.report));
          }
          options.checkpoint.restart = folder.file("saved");
          const Solution<TestType> resumed = problem.solve_with(options);
          options.checkpoint.restart = "";
          CHECK(same_bits(resumed.X, whole.X));
          CHECK(numbers_in(resumed.report) == numbers_in(whole.report));
        }
      }
    }
  }
}

TEST_CASE("Data with NaN are the same data at a restart") {
  for (const GridPtr& grid : compact_grids()) {
    CAPTURE(describe(*grid));
    Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
    problem.b = [whole = problem.b](Index i, Index j) {
      return i == 1 && j == 1 ? std::numeric_limits<double>::quiet_NaN() : whole(i, j);
    };
    const ScratchFolder folder;
    SolveOptions options;
    problem.suspend(options, folder.file("saved"), 4, 0);
    world().barrier();
    options.checkpoint.restart = folder.file("saved");
    const Solution<double> resumed = problem.solve_with(options);
    if (!grid->is_member()) continue;
    CHECK(resumed.verdict(0).reason == StopReason::converged);
    CHECK(resumed.verdict(1).reason == StopReason::non_finite);
  }
}

TEST_CASE("Nobody waits in a checkpoint for a rank that asks for the end") {
  struct Asks final : SolveObserver {
    explicit Asks(Index when) : when_(when) {}
    bool step(const IterationInfo& info) override { return info.iteration == when_; }
    Index when_;
  };
  for (const GridPtr& grid : compact_grids()) {
    for (const Case<double>& how : all_cases<double>()) {
      for (int asking = 0; asking < grid->shape().size(); ++asking) {
        for (const bool observes : {false, true}) {
          CAPTURE(how.name, describe(*grid), asking, observes);
          const Problem<double> problem(grid, how, 30);
          const ScratchFolder folder;
          const bool asks = grid->is_member() && grid->comm().rank() == asking;
          SolveOptions options;
          options.checkpoint.directory = folder.file("saved");
          options.checkpoint.every_iterations = 3;
          if (observes) {
            if (asks) options.observers = {std::make_shared<Asks>(3)};
          } else {
            options.observers = {after_each_iteration(
                [asks](const IterationInfo& info) { return asks && info.iteration == 3; })};
          }
          const Solution<double> stopped = problem.solve_with(options);
          if (!grid->is_member()) continue;
          CHECK(stopped.verdict(0).reason == StopReason::user_stop);
          CHECK(stopped.verdict(0).iterations == 3);
          CHECK(checkpoint_facts(grid->comm(), folder.file("saved")).at("iteration") == "3");
        }
      }
    }
  }
}

TEST_CASE("A checkpoint of something else is refused on all ranks") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  SolveOptions options;
  problem.suspend(options, folder.file("saved"), 4, 0);
  world().barrier();
  options.checkpoint.restart = folder.file("saved");
  const auto refusal = [&](const Problem<double>& other, const SolveOptions& with) {
    return message_of<Error>([&] { other.solve_with(with); });
  };
  const auto says = [&](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK((!grid->is_member() || text.find(part) != std::string::npos));
  };
  Problem<double> other = problem;
  other.how.solver = lsqr<double>;
  says(refusal(other, options), "but this is lsqr");
  other.how.solver = one_pass_cgls<double>;
  says(refusal(other, options), "but this is one-pass-cgls");
  other = problem;
  other.how.damp = 0.5;
  says(refusal(other, options), "with damp 0, but here it is 0.5");
  other.how.damp = 0;
  other.how.damps = some_damps;
  says(refusal(other, options), "with damp 0 in entry 1, but here it is 1");
  Problem<double> sweep = other;
  SolveOptions of_sweep;
  sweep.suspend(of_sweep, folder.file("sweep"), 4, 0);
  of_sweep.checkpoint.restart = folder.file("sweep");
  sweep.how.damps[2] = 0.2;
  says(refusal(sweep, of_sweep), "with damp 0.1 in entry 2, but here it is 0.2");
  other = problem;
  other.A = dense_operator<double>(grid, Algorithm::stationary_a, m, n, [&](Index i, Index j) {
    return problem.matrix(i, j) + (i == m - 1 && j == n - 1 ? 1e-6 : 0);
  });
  says(refusal(other, options), "another operator");
  other = problem;
  other.b = [&](Index i, Index j) { return j == 5 ? -problem.b(i, j) : problem.b(i, j); };
  says(refusal(other, options), "other data: right-hand side 5");
  SolveOptions nowhere = options;
  nowhere.checkpoint.restart = folder.file("nothing");
  says(refusal(problem, nowhere), "there is no manifest.json");
  nowhere.checkpoint.restart = "";
  nowhere.checkpoint.directory = folder.file("saved") + "/manifest.json/below";
  says(refusal(problem, nowhere), "checkpoints cannot be kept there");
}

TEST_CASE("A checkpoint of another operator is refused whatever its size") {
  const GridPtr grid = compact_grids().back();
  for (const int power : {-900, -560, 560, 900}) {
    Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
    const auto scaled = [&](bool last_rows_change_places) {
      return dense_operator<double>(grid, Algorithm::stationary_a, m, n, [=, &problem](Index i, Index j) {
        const Index row = last_rows_change_places && i >= m - 2 ? 2 * m - 3 - i : i;
        return std::ldexp(problem.matrix(row, j), power);
      });
    };
    problem.A = scaled(false);
    // Nothing of these data is where rows change places.
    problem.b = [&](Index i, Index j) { return i < m - 2 ? std::ldexp(counter_uniform(4, i, j), power) : 0; };
    const ScratchFolder folder;
    SolveOptions options;
    problem.suspend(options, folder.file("saved"), 4, 0);
    world().barrier();
    options.checkpoint.restart = folder.file("saved");
    CAPTURE(power);
    for (const bool is_other : {true, false}) {
      problem.A = scaled(is_other);
      const std::string text = message_of<Error>([&] { problem.solve_with(options); });
      if (!grid->is_member()) continue;
      CHECK((text.find("another operator") != std::string::npos) == is_other);
      CHECK(text.empty() == !is_other);
    }
    problem.b = [&](Index i, Index j) { return std::ldexp(counter_uniform(5, i, j), power); };
    const std::string text = message_of<Error>([&] { problem.solve_with(options); });
    CHECK((!grid->is_member() || text.find("other data: right-hand side 0") != std::string::npos));
  }
}

TEST_CASE("A restart of a sparse solver refuses another lambda, step, decay or momentum, with both values") {
  const GridPtr grid = compact_grids().back();
  const KnownSpectrum<double> matrix(m, n, geometric(n, 30));
  const OperatorPtr<double> A = dense_operator(grid, Algorithm::stationary_a, matrix);
  DistMatrix<double> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs));
  B.fill(random_elements<double>(4));
  const ScratchFolder folder;
  SolveOptions begun;
  begun.lambda = 0.05;
  begun.step = 0.1;
  begun.decay = {2, 1};
  begun.max_iterations = 4;
  begun.checkpoint.directory = folder.file("saved");
  const ProximalPtr<double> penalty = threshold_penalty<double>(Threshold::soft);
  const auto refusal = [&](const SolveOptions& options) {
    return message_of<InputError>([&] { proximal_gradient(*A, penalty, B, X, options); });
  };
  const auto says = [&](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK((!grid->is_member() || text.find(part) != std::string::npos));
  };
  proximal_gradient(*A, penalty, B, X, begun);
  world().barrier();
  begun.checkpoint.directory = "";
  begun.checkpoint.restart = folder.file("saved");
  begun.max_iterations = 1000;
  SolveOptions other = begun;
  other.lambda = 0.5;
  says(refusal(other), "with lambda 0.05, but here it is 0.5");
  std::vector<double> lambdas(static_cast<std::size_t>(nrhs), 0.05);
  lambdas[3] = 0.25;
  other.lambda = lambdas;
  says(refusal(other), "with lambda 0.05 in entry 3, but here it is 0.25");
  other = begun;
  other.step = 0.2;
  says(refusal(other), "with step 0.1, but here it is 0.2");
  other = begun;
  other.decay[1] = 0.5;
  says(refusal(other), "with decay 1 in entry 1, but here it is 0.5");
  other.decay = {2};
  says(refusal(other), "2 values of decay, but here are 1");
  other = begun;
  other.acceleration = Acceleration::none;
  says(refusal(other), "acceleration none");
  SolveReport resumed;
  CHECK_NOTHROW(resumed = proximal_gradient(*A, penalty, B, X, begun));
  if (grid->is_member()) CHECK(resumed.iterations > 4);
}

TEST_CASE("A restart takes the step and the lambdas that its run computed, and reports them") {
  for (const GridPtr& grid : compact_grids()) {
    const KnownSpectrum<double> matrix(m, n, geometric(n, 30));
    const OperatorPtr<double> A = dense_operator(grid, Algorithm::stationary_a, matrix);
    const ScratchFolder folder;
    SolveOptions options;
    options.lambda = {0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07};
    options.step = 0.125;
    options.max_iterations = 4;
    options.checkpoint.directory = folder.file("saved");
    DistMatrix<double> B(grid, A->range().layout(nrhs));
    B.fill(random_elements<double>(4));
    const auto solve_with = [&](const SolveOptions& how) {
      DistMatrix<double> X(grid, A->domain().layout(nrhs));
      SolveReport report = fista(*A, B, X, how);
      return Solution<double>{std::move(report), everywhere(X)};
    };
    const SolveOptions whole = [&] {
      SolveOptions all = options;
      all.max_iterations = 50;
      all.checkpoint = {};
      return all;
    }();
    solve_with(options);
    SolveOptions again = options;
    again.step.reset();  // computed anew, it would be another one
    std::vector<double> lambdas = options.lambda.values();
    for (double& lambda : lambdas) lambda *= 1 + 1e-15;
    again.lambda = lambdas;
    again.max_iterations = 50;
    again.checkpoint = {};
    again.checkpoint.restart = folder.file("saved");
    again.checkpoint.computed = {"lambda"};
    const Solution<double> expected = solve_with(whole), resumed = solve_with(again);
    if (!grid->is_member()) continue;
    CHECK(resumed.report.step == 0.125);
    CHECK(resumed.report.lambdas == options.lambda.values());
    if (!needs_order()) CHECK(same_bits(resumed.X, expected.X));
    again.checkpoint.computed = {};
    CHECK_THROWS_AS(solve_with(again), InputError);
  }
}

TEST_CASE("Observers of a restart know both tests of columns that had ended before") {
  for (const GridPtr& grid : compact_grids()) {
    const Problem<double> problem(grid, {"lsqr", lsqr<double>}, 30);
    std::vector<double> tests;  // both of every column, after the last iteration
    SolveOptions options;
    options.observers = {after_each_iteration([&tests](const IterationInfo& info) {
      tests.assign(info.residual_tests.begin(), info.residual_tests.end());
      tests.insert(tests.end(), info.gradient_tests.begin(), info.gradient_tests.end());
      return false;
    })};
    const Solution<double> whole = problem.solve_with(options);
    const std::vector<double> at_the_end = std::exchange(tests, {});
    const ScratchFolder folder;
    SolveOptions begun;
    begun.max_iterations = std::max<Index>(whole.report.iterations - 1, 1);  // idle ranks have no report
    begun.checkpoint.directory = folder.file("saved");
    problem.solve_with(begun);
    options.checkpoint.restart = folder.file("saved");
    const Solution<double> resumed = problem.solve_with(options);
    if (!grid->is_member()) continue;
    CHECK(resumed.report.iterations == whole.report.iterations);
    Index ended_before = 0;
    for (const ColumnReport& column : whole.report.columns)
      ended_before += column.iterations < whole.report.iterations ? 1 : 0;
    CHECK(ended_before > 0);
    CHECK(tests == at_the_end);
  }
}

TEST_CASE(
    "The ratio of the joint residual is that to the start, also after a restart, and batches are refused") {
  for (const GridPtr& grid : compact_grids()) {
    const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
    SolveOptions options;
    double ratio = 0;  // after iteration 5
    options.observers = {after_each_iteration([&ratio](const IterationInfo& info) {
      const auto joint = [](std::span<const double> norms) {
        return norm_of(std::vector<double>(norms.begin(), norms.end()));
      };
      if (info.iteration == 5) ratio = joint(info.residual_norms) / joint(info.first_residual_norms);
      return info.iteration == 5;
    })};
    problem.solve_with(options);
    options.observers = {stop_at_cost_ratio(ratio * (1 + 1e-9))};
    const Solution<double> whole = problem.solve_with(options);
    const ScratchFolder folder;
    SolveOptions begun;
    begun.max_iterations = 2;
    begun.checkpoint.directory = folder.file("saved");
    problem.solve_with(begun);
    options.checkpoint.restart = folder.file("saved");
    const Solution<double> resumed = problem.solve_with(options);
    options.checkpoint.restart = "";
    options.batch = 2;
    const std::string refusal = message_of<UsageError>([&] { problem.solve_with(options); });
    if (!grid->is_member()) continue;
    CHECK(whole.report.iterations == 5);
    CHECK(0.1 < ratio);
    CHECK(ratio < 0.99);
    CHECK(whole.verdict(0).reason == StopReason::user_stop);
    CHECK(resumed.report.iterations == whole.report.iterations);
    CHECK(same_bits(resumed.X, whole.X));
    CAPTURE(refusal);
    CHECK(refusal.find("there are 4 batches") != std::string::npos);
  }
}
