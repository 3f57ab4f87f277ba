// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "base/message.hpp"
#include "gridlops/error.hpp"
#include "gridlops/operator_algebra.hpp"
#include "gridlops/solver.hpp"
#include "solve/batches.hpp"
#include "solve/block_basis.hpp"

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
  if (solver == "cgls") return {2, 3};   // r, q; p, s, the best x
  if (solver == "cg") return {2, 2};     // r, q; p, the best x
  if (solver == "pcg") return {2, 3};    // also z
  if (solver == "lsqr") return {1, 3};   // u; v, w, the best x
  if (solver == "lsmr") return {1, 4};   // u; v, h, h̄, the best x
  if (solver == "ista") return {4, 3};   // b, r, r₊, their change; x₊, the change of x, the best x
  if (solver == "fista") return {5, 4};  // also the residual of y; also y
  throw UsageError(message("there is no memory formula for the solver '", solver,
                           "'; there are cgls, cg, pcg, lsqr, lsmr, block-cgls, ista, fista"));
}

/// Elements, for blocks of k columns with m rows (those of [A; D·I] if it is damped) and n.
Index block_cgls_elements(Index m, Index n, Index k) {
  const Index of_data = 2 * m, of_model = 4 * n;  // U, its next; V, its next, P, the best x
  const Index panels = std::min(block_panel_rows, m) + std::min(block_panel_rows, n);
  return (of_data + of_model + panels) * k + 4 * k * k;  // and small factors and products of U and of V
}

Index local_rows(const Space& space, int row, int col) {
  return space.layout(0).row_range(*space.grid, row, col).size;
}

}  // namespace

Index solver_workspace_bytes(const std::string& solver, const Space& range, const Space& domain,
                             ScalarType type, Index nrhs, Index batch, int row, int col, bool damped) {
  const ProcessGrid& grid = *range.grid;
  const Index m = local_rows(range, row, col), n = local_rows(domain, row, col);
  const Partition columns = range.layout(nrhs).cols.partition;
  const Index width =
      std::min(batch_width(columns, batch), columns.size(grid.part_at(range.columns, row, col)));
  const Index exchanged = std::max(m, n);  // a column
  if (solver == "block-cgls") {
    const Index m_damped =
        damped ? local_rows(gridlops::damped(zero<double>(range, domain), 1)->range(), row, col) : m;
    return (block_cgls_elements(m_damped, n, width) + exchanged) * size_of(type);
  }
  const Vectors vectors = vectors_of(solver);
  return ((vectors.of_data * m + vectors.of_model * n) * width + exchanged) * size_of(type);
}

}  // namespace gridlops
