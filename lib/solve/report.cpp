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

namespace {

/// How many matrices with the rows of the data and of the model a solver keeps beside B and X.
struct Vectors {
  Index of_data, of_model;
};

Vectors vectors_of(const std::string& solver) {
  if (solver == "cgls") return {2, 3};  // r, q; p, s, the best x
  if (solver == "cg") return {2, 2};    // r, q; p, the best x
  if (solver == "lsqr") return {1, 3};  // u; v, w, the best x
  if (solver == "lsmr") return {1, 4};  // u; v, h, h̄, the best x
  throw UsageError(
      message("there is no memory formula for the solver '", solver, "'; there are cgls, cg, lsqr, lsmr"));
}

}  // namespace

Index solver_workspace_bytes(const std::string& solver, const Space& range, const Space& domain,
                             ScalarType type, Index nrhs, Index batch, int row, int col) {
  const Vectors vectors = vectors_of(solver);
  const ProcessGrid& grid = *range.grid;
  const Index m = range.layout(nrhs).row_range(grid, row, col).size;
  const Index n = domain.layout(nrhs).row_range(grid, row, col).size;
  const Partition columns = range.layout(nrhs).cols.partition;
  const Index width =
      std::min(batch_width(columns, batch), columns.size(grid.part_at(range.columns, row, col)));
  // And one column for exchanges.
  return ((vectors.of_data * m + vectors.of_model * n) * width + std::max(m, n)) * size_of(type);
}

}  // namespace gridlops
