// SPDX-License-Identifier: BSD-3-Clause
// Every solver of the table saves all that its next iteration needs.
#include "gridlops/solve/checkpoint.hpp"

#include <cmath>
#include <vector>

#include "io/npy_files.hpp"
#include "solve/run/every_solver.hpp"
#include "support/grids.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// NCCL promises no order of its sums. There rounding may differ, but no more.
void check_same(const DistMatrix<double>& X, const DistMatrix<double>& Y) {
  const double tolerance = world().transport() == "nccl" ? 1e-10 : 0;
  const std::vector<double> x = on_host(X), y = on_host(Y);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!(std::abs(x[i] - y[i]) <= tolerance))
      FAIL_CHECK("element " << i << " is " << x[i] << ", not " << y[i]);
}

}  // namespace

TEST_CASE("A restart of any solver of the table ends as the run that was not interrupted, to the bit") {
  for (const GridPtr& grid : compact_grids()) {
    const ScratchFolder folder;  // of all ranks
    if (!grid->is_member()) continue;
    for (const auto& [name, call] : solver_calls()) {
      CAPTURE(name, describe(*grid));
      SolveOptions options = at_most(8);
      options.tolerance = 0;
      options.column_stable = true;
      Problem whole(grid), resumed(grid);
      whole.variances.set_zero();
      call(whole, options);
      const Index last = iterations_of(name, 3);
      Index iteration = 0;
      options.checkpoint.directory = folder.file(name);
      options.checkpoint.requested = [&iteration, last] { return ++iteration == last; };
      REQUIRE_THROWS_AS(call(resumed, options), Suspended);
      resumed.X.set_zero();
      resumed.variances.set_zero();
      options.checkpoint.requested = {};
      options.checkpoint.restart = options.checkpoint.directory;
      call(resumed, options);
      check_same(resumed.X, whole.X);
      check_same(resumed.variances, whole.variances);
    }
  }
}
