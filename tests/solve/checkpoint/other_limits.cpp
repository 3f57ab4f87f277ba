// SPDX-License-Identifier: BSD-3-Clause
// Restarts with other tolerances and numbers of iterations than the run before.

#include "gridlops/solve/solve_observer.hpp"
#include "io/npy_files.hpp"
#include "solve/checkpoint/saved_problem.hpp"

using namespace gridlops;
using namespace gridlops::testing;

TEST_CASE("A run that has converged goes on to a smaller tolerance") {
  for (const GridPtr& grid : compact_grids()) {
    for (const Case<double>& how : all_cases<double>()) {
      for (const Index batch : {0, 2}) {
        CAPTURE(how.name, batch, describe(*grid));
        const Problem<double> problem(grid, how, 3);
        const ScratchFolder folder;
        SolveOptions options;
        options.batch = batch;
        options.max_iterations = 1000;
        options.tolerance = 1e-2;
        options.checkpoint.directory = folder.file("saved");
        const Solution<double> begun = problem.solve_with(options);
        const std::string problem_of_end = folder.file("saved");
        options.checkpoint.restart = problem_of_end;
        const Solution<double> again = problem.solve_with(options);
        options.tolerance = 1e-9;
        const Solution<double> resumed = problem.solve_with(options);
        options.checkpoint = {};
        const Solution<double> whole = problem.solve_with(options);
        if (!grid->is_member()) continue;
        CHECK(same_bits(again.X, begun.X));
        double error = 0, norm = 0;
        for (std::size_t k = 0; k < whole.X.size(); ++k) {
          error += std::norm(resumed.X[k] - whole.X[k]);
          norm += std::norm(whole.X[k]);
        }
        CHECK(std::sqrt(error) <= 1e-6 * std::sqrt(norm));
        for (Index j = 0; j < nrhs; ++j) {
          CHECK(is_solved(again.verdict(j).reason));
          CHECK(is_solved(resumed.verdict(j).reason));
        }
      }
    }
  }
}

namespace {

/// Counts the batches that begin or are resumed, and sets the count of iterations to 0.
class BatchCounter final : public SolveObserver {
 public:
  BatchCounter(Index& begun, Index& iteration) : begun_(begun), iteration_(iteration) {}
  bool step(const IterationInfo& info) override {
    if (info.at_start) ++begun_, iteration_ = 0;
    return false;
  }

 private:
  Index &begun_, &iteration_;
};

}  // namespace

TEST_CASE("Batches that ended under looser limits are solved again under tighter ones") {
  for (const GridPtr& grid : compact_grids()) {
    CAPTURE(describe(*grid));
    const Problem<double> problem(grid, {"cgls", cgls<double>}, 3);
    const ScratchFolder folder;
    SolveOptions options;
    options.batch = 1;
    options.max_iterations = 1000;
    options.tolerance = 1e-9;
    const Solution<double> whole = problem.solve_with(options);
    Index begun = 0, iteration = 0, last = 4;
    options.observers = {std::make_shared<BatchCounter>(begun, iteration)};
    options.checkpoint.directory = folder.file("saved");
    options.checkpoint.requested = [&] { return begun == last && ++iteration == 2; };
    for (const double tolerance : {1e-9, 1e-2}) {  // the first ends in batch 3, the second in batch 4
      options.tolerance = tolerance;
      begun = 0;
      if (grid->is_member()) CHECK_THROWS_AS(problem.solve_with(options), Suspended);
      world().barrier();
      options.checkpoint.restart = options.checkpoint.directory;
      last = 2;
    }
    options.tolerance = 1e-9;
    options.observers.clear();
    options.checkpoint.requested = {};
    const Solution<double> resumed = problem.solve_with(options);
    if (!grid->is_member()) continue;
    double error = 0, norm = 0;
    for (std::size_t k = 0; k < whole.X.size(); ++k) {
      error += std::norm(resumed.X[k] - whole.X[k]);
      norm += std::norm(whole.X[k]);
    }
    CHECK(std::sqrt(error) <= 1e-6 * std::sqrt(norm));
  }
}

TEST_CASE("Columns of the last batch go on where more iterations are allowed") {
  for (const GridPtr& grid : compact_grids()) {
    for (const Case<double>& how : all_cases<double>()) {
      CAPTURE(how.name, describe(*grid));
      const Problem<double> problem(grid, how, 3);
      const ScratchFolder folder;
      SolveOptions options;
      options.batch = 2;
      options.max_iterations = 3;
      options.checkpoint.directory = folder.file("saved");
      const Solution<double> begun = problem.solve_with(options);
      options.max_iterations = 1000;
      options.checkpoint.restart = folder.file("saved");
      const Solution<double> resumed = problem.solve_with(options);
      if (!grid->is_member()) continue;
      Index went_on = 0;
      for (Index j = 0; j < nrhs; ++j) {
        if (begun.verdict(j).reason != StopReason::iteration_limit) {
          // It is judged anew, and LSQR and LSMR know ‖A‖ after an iteration only.
          CHECK(resumed.verdict(j).reason == begun.verdict(j).reason);
          CHECK(resumed.verdict(j).iterations <= begun.verdict(j).iterations + 1);
        } else if (resumed.verdict(j).iterations > 3) {
          CHECK(resumed.verdict(j).reason == StopReason::converged);
          ++went_on;
        }
      }
      CHECK(went_on > 0);
    }
  }
}
