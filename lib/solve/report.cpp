// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "base/message.hpp"
#include "gridlops/error.hpp"
#include "gridlops/solver.hpp"
#include "solve/batches.hpp"

namespace gridlops {

const char* name_of(StopReason reason) {
  switch (reason) {
    case StopReason::converged:
      return "converged";
    case StopReason::stagnated:
      return "stagnated";
    case StopReason::iteration_limit:
      return "iteration_limit";
    case StopReason::condition_limit:
      return "condition_limit";
    case StopReason::user_stop:
      return "user_stop";
    case StopReason::breakdown:
      return "breakdown";
    case StopReason::non_finite:
      break;
  }
  return "non_finite";
}

Index solver_workspace_bytes(const std::string& solver, const Space& range, const Space& domain,
                             ScalarType type, Index nrhs, Index batch, int row, int col) {
  require<UsageError>(solver == "cgls" || solver == "cg", "there is no solver '", solver,
                      "'; there are cgls and cg");
  const ProcessGrid& grid = *range.grid;
  const Index m = range.layout(nrhs).row_range(grid, row, col).size;
  const Index n = domain.layout(nrhs).row_range(grid, row, col).size;
  const Partition columns = range.layout(nrhs).cols.partition;
  const Index width =
      std::min(batch_width(columns, batch), columns.size(grid.part_at(range.columns, row, col)));
  // r, q; p, the best x and, for cgls, s; one column for exchanges.
  const Index elements = (2 * m + (solver == "cgls" ? 3 : 2) * n) * width + std::max(m, n);
  return elements * size_of(type);
}

}  // namespace gridlops
