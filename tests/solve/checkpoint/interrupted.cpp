// SPDX-License-Identifier: BSD-3-Clause
// A solver's state besides its vectors, which it needs after a restart: wherever it was interrupted, it ends
// as if it had not been.
#include <algorithm>

#include "io/npy_files.hpp"
#include "support/grids.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index nrhs = 3;

struct Method {
  const char* name;
  SolverFunction<double> solver;
};

/// Folders are shared by all ranks, so none is idle.
std::vector<GridPtr> grids_of_all_ranks() {
  std::vector<GridPtr> grids = compact_grids();
  std::erase_if(grids, [](const GridPtr& grid) { return grid->shape().size() < world().size(); });
  return grids;
}

/// A solve that may be interrupted after an iteration, with the same bits on any run.
class Interruptible {
 public:
  Interruptible(const GridPtr& grid, Method method, const KnownSpectrum<double>& matrix, SolveOptions options)
      : A_(dense_operator<double>(grid, Algorithm::stationary_a, matrix, {.column_stable = true})),
        method_(method),
        options_(std::move(options)) {
    options_.column_stable = true;
  }

  Solution<double> whole() const { return run(options_); }
  Solution<double> interrupted_after(Index iteration) const {
    const ScratchFolder folder;
    SolveOptions options = options_;
    options.max_iterations = iteration;
    options.checkpoint.directory = folder.file("saved");
    run(options);
    options = options_;
    options.checkpoint.restart = folder.file("saved");
    return run(options);
  }

 private:
  Solution<double> run(const SolveOptions& options) const {
    return solve<double>(method_.solver, *A_, nrhs, random_elements<double>(4), options);
  }

  OperatorPtr<double> A_;
  Method method_;
  SolveOptions options_;
};

void check_same(const Solution<double>& found, const Solution<double>& expected) {
  CHECK(found.X == expected.X);
  CHECK(numbers_in(found.report) == numbers_in(expected.report));
  for (Index j = 0; j < nrhs; ++j) {
    CAPTURE(j);
    CHECK(found.verdict(j).condition == expected.verdict(j).condition);
    CHECK(found.verdict(j).operator_norm == expected.verdict(j).operator_norm);
    CHECK(found.verdict(j).reference_norm == expected.verdict(j).reference_norm);
  }
}

}  // namespace

TEST_CASE(
    "An interrupted solver estimates the condition as if it had not been interrupted, and stops at its "
    "limit") {
  Index limited = 0;
  // The smallest singular values alone, so that the estimate is once that of a step long ago.
  for (const std::vector<double>& values :
       {geometric(9, 30), std::vector<double>{1, 1, 1, 1, 1, 1, 1, 1, 0.01},
        std::vector<double>{3, 2, 1, 0.9, 0.8, 0.7, 0.6, 0.5, 1e-3}}) {
    const KnownSpectrum<double> matrix(21, 9, values);
    for (const GridPtr& grid : grids_of_all_ranks()) {
      for (const Method method : {Method{"lsqr", lsqr<double>}, {"lsmr", lsmr<double>}}) {
        SolveOptions options;
        options.tolerance = 1e-12;
        const Solution<double> free = Interruptible(grid, method, matrix, options).whole();
        double largest = 0;
        for (Index j = 0; j < nrhs; ++j) largest = std::max(largest, free.verdict(j).condition);
        for (const double limit : {0.0, 0.5 * largest}) {
          options.condition_limit = limit;
          const Interruptible solver(grid, method, matrix, options);
          const Solution<double> whole = solver.whole();
          for (const ColumnReport& column : whole.report.columns)
            if (column.reason == StopReason::condition_limit) ++limited;
          for (Index last = 1; last < whole.report.iterations; ++last) {
            CAPTURE(method.name, describe(*grid), values.back(), limit, last);
            check_same(solver.interrupted_after(last), whole);
          }
        }
      }
    }
  }
  CHECK(limited > 0);
}

TEST_CASE("A share of the first residual norm is that of the first run, also after a restart") {
  const KnownSpectrum<double> matrix(21, 9, geometric(9, 30));
  for (const GridPtr& grid : grids_of_all_ranks()) {
    for (const Method method : {Method{"cgls", cgls<double>},
                                {"lsqr", lsqr<double>},
                                {"lsmr", lsmr<double>},
                                {"block-cgls", block_cgls<double>}}) {
      SolveOptions options;
      options.tolerance = 1e-12;
      const Solution<double> free = Interruptible(grid, method, matrix, options).whole();
      // Column 0 is to end after two iterations.
      const std::vector<IterationRecord>& history = free.report.history;
      options.residual_ratio = (1 + 1e-6) * history[2].residual_norms[0] / history[0].residual_norms[0];
      const Interruptible solver(grid, method, matrix, options);
      const Solution<double> whole = solver.whole();
      CHECK(whole.verdict(0).reason == StopReason::user_stop);
      CHECK(whole.verdict(0).iterations == 2);
      for (Index last = 1; last < whole.report.iterations; ++last) {
        CAPTURE(method.name, describe(*grid), last);
        check_same(solver.interrupted_after(last), whole);
      }
    }
  }
}
