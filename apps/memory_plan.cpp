// SPDX-License-Identifier: BSD-3-Clause
#include "memory_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "console.hpp"
#include "gridlops/solver.hpp"

namespace gridlops::program {

namespace {

constexpr std::array<const char*, 7> labels{"matrix",
                                            "right-hand sides",
                                            "solution",
                                            "solver's vectors",
                                            "products' panels",
                                            "memory in all",
                                            "received in products, per iteration"};
using Row = std::array<Index, labels.size()>;

/// What the rank at (row, col) needs and receives, in bytes.
class RankPlan {
 public:
  RankPlan(const PlannedSolve& plan, int row, int col)
      : plan_(plan), grid_(*plan.range.grid), row_(row), col_(col) {}

  Row bytes() const {
    const ProductShape& shape = plan_.shape;
    Row r{};
    r[0] = block(plan_.matrix);
    r[1] = block(plan_.range.layout(shape.nrhs));
    r[2] = block(plan_.domain.layout(shape.nrhs)) * (plan_.variances ? 2 : 1);
    r[3] = solver_workspace();
    r[4] = std::max(cost(false, columns_at_once()).workspace_bytes,
                    cost(true, columns_at_once()).workspace_bytes) +
           (passes_once() ? pass_cost(columns_at_once()).workspace_bytes : 0) + redistribution_workspace();
    for (std::size_t k = 0; k < 5; ++k) r[5] += r[k];
    const bool applies_adjoint = plan_.solver != Solver::cg;
    if (passes_once()) {
      r[6] = pass_cost(shape.nrhs).bytes_received;
      return r;
    }
    r[6] = cost(false, shape.nrhs).bytes_received +
           (applies_adjoint ? cost(true, shape.nrhs).bytes_received : 0) + redistribution_received();
    return r;
  }

 private:
  Index block(const Layout& layout) const {
    return layout.row_range(grid_, row_, col_).size * layout.col_range(grid_, row_, col_).size *
           size_of(plan_.shape.type);
  }

  Index columns_at_once() const {
    return largest_batch(plan_.range.layout(plan_.shape.nrhs).cols.partition, plan_.batch);
  }

  RankCost cost(bool adjoint, Index columns) const {
    ProductShape shape = plan_.shape;
    shape.nrhs = columns;
    return product_cost(plan_.algorithm, shape, grid_.shape(), row_, col_, adjoint, plan_.panel);
  }

  bool passes_once() const { return plan_.one_pass; }
  RankCost pass_cost(Index columns) const {
    ProductShape shape = plan_.shape;
    shape.nrhs = columns;
    return normal_product_cost(shape, grid_.shape(), row_, col_);
  }

  Index solver_workspace() const {
    return solver_workspace_bytes(
        {plan_.solver, plan_.range, plan_.domain, plan_.shape.type, plan_.shape.nrhs, plan_.batch,
         plan_.damped, plan_.initial_guess, plan_.one_pass, plan_.scaled},
        row_, col_);
  }

  bool redistributes() const { return plan_.range != plan_.product_range; }
  /// Of the result of a product to the operator's range, or of data back.
  RankCost redistribution(bool adjoint, Index columns) const {
    const Layout product = plan_.product_range.layout(columns), range = plan_.range.layout(columns);
    return redistribution_cost(grid_, adjoint ? range : product, adjoint ? product : range, plan_.shape.type,
                               row_, col_);
  }
  Index redistribution_workspace() const {
    if (!redistributes()) return 0;
    const Index columns = columns_at_once();
    return block(plan_.product_range.layout(columns)) +
           std::max(redistribution(false, columns).workspace_bytes,
                    redistribution(true, columns).workspace_bytes);
  }
  Index redistribution_received() const {
    return redistributes() ? redistribution(false, plan_.shape.nrhs).bytes_received : 0;
  }

  const PlannedSolve& plan_;
  const ProcessGrid& grid_;
  int row_, col_;
};

}  // namespace

std::string plan_text(const PlannedSolve& plan) {
  const ProcessGrid& grid = *plan.range.grid;
  Row least{}, most{};
  for (int row = 0; row < grid.rows(); ++row) {
    for (int col = 0; col < grid.cols(); ++col) {
      const Row bytes = RankPlan(plan, row, col).bytes();
      for (std::size_t k = 0; k < bytes.size(); ++k) {
        const bool first = row == 0 && col == 0;
        least[k] = first ? bytes[k] : std::min(least[k], bytes[k]);
        most[k] = std::max(most[k], bytes[k]);
      }
    }
  }
  std::string text = fmt::format("{:<38}{:>12}{:>12}\n", "on each rank", "least", "most");
  for (std::size_t k = 0; k < labels.size(); ++k)
    text += fmt::format("{:<38}{:>12}{:>12}\n", labels[k], bytes_text(least[k]), bytes_text(most[k]));
  return text;
}

}  // namespace gridlops::program
