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
  if (solver == "cgls") return {2, 3};           // r, q; p, s, the best x
  if (solver == "one-pass-cgls") return {2, 5};  // also Aᴴr, Aᴴq
  if (solver == "cg") return {2, 2};             // r, q; p, the best x
  if (solver == "pcg") return {2, 3};            // also z
  if (solver == "lsqr") return {1, 3};           // u; v, w, the best x
  if (solver == "lsmr") return {1, 4};           // u; v, h, h̄, the best x
  if (solver == "ista") return {4, 3};   // b, r, r₊, their change; x₊, the change of x, the best x
  if (solver == "fista") return {5, 4};  // also the residual of y; also y
  throw UsageError(message("there is no memory formula for the solver '", solver,
                           "'; there are cgls, one-pass-cgls, cg, pcg, lsqr, lsmr, block-cgls, ista, fista"));
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

/// Elements that come on top where lsqr and lsmr solve for the correction of a guess: the data of the stacked
/// system and the correction, and at the end, when the best x and the column for exchanges are gone, a
/// residual and a gradient. k columns in all, `width` at a time, m and n rows, those of [A; D·I] m_stacked.
Index correction_elements(Index m_stacked, Index m, Index n, Index k, Index width) {
  const Index gone = n * width + std::max(m_stacked, n);
  return (m_stacked + n) * k + std::max<Index>((m + n) * k - gone, 0);
}

}  // namespace

Index solver_workspace_bytes(const std::string& solver, const Space& range, const Space& domain,
                             ScalarType type, Index nrhs, Index batch, int row, int col, bool damped,
                             bool initial_guess) {
  const ProcessGrid& grid = *range.grid;
  const Index m = local_rows(range, row, col), n = local_rows(domain, row, col);
  const Partition columns = range.layout(nrhs).cols.partition;
  const Index mine = columns.size(grid.part_at(range.columns, row, col));
  const Index width = std::min(batch_width(columns, batch), mine);
  const auto stacked_rows = [&] {
    return local_rows(gridlops::damped(zero<double>(range, domain), 1)->range(), row, col);
  };
  if (solver == "block-cgls") {
    const Index elements = block_cgls_elements(damped ? stacked_rows() : m, n, width);
    return (elements + std::max(m, n)) * size_of(type);
  }
  const Vectors vectors = vectors_of(solver);
  const bool corrects = damped && initial_guess && (solver == "lsqr" || solver == "lsmr");
  const Index m_solved = corrects ? stacked_rows() : m;
  // And one column for exchanges.
  const Index elements = (vectors.of_data * m_solved + vectors.of_model * n) * width + std::max(m_solved, n);
  return (elements + (corrects ? correction_elements(m_solved, m, n, mine, width) : 0)) * size_of(type);
}

}  // namespace gridlops
