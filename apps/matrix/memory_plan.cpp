// SPDX-License-Identifier: BSD-3-Clause
#include "matrix/memory_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "command_line/console.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops::program {

namespace {

enum Row { matrix, data, solution, vectors, panels, space, sigma_min, norms, in_all, received };
constexpr std::array<const char*, 10> labels{"matrix",
                                             "right-hand sides",
                                             "solution",
                                             "solver's vectors",
                                             "products' panels",
                                             "vectors of the space, at most",
                                             "for --sigma-min, before the solver's vectors",
                                             "norms of columns, before all but A",
                                             "memory in all",
                                             "received in products, per iteration"};
using MemoryRow = std::array<Index, labels.size()>;

/// The bytes that the rank at (row, col) needs and receives.
class RankPlan {
 public:
  RankPlan(const PlannedSolve& plan, int row, int col)
      : plan_(plan), grid_(*plan.range.grid), row_(row), col_(col) {}

  MemoryRow bytes() const {
    const ProductShape& shape = plan_.shape;
    MemoryRow r{};
    r[matrix] = plan_.tile_bytes ? plan_.tile_bytes(row_, col_) : block_of_matrix();
    r[data] = block(plan_.range.layout(shape.nrhs + plan_.rest)) +
              (plan_.curves > 0 || plan_.weighted ? block(plan_.range.layout(shape.nrhs)) : 0);
    r[solution] = block(plan_.domain.layout(shape.nrhs)) *
                      (1 + (plan_.variances ? 1 : 0) + plan_.bounds + (plan_.curves > 0 ? 2 : 0) +
                       (plan_.may_factor && plan_.initial_guess ? 1 : 0)) +
                  block(plan_.domain.layout(plan_.rest));
    r[vectors] = solver_workspace(plan_.space_bytes ? Solver::pcgls : plan_.iteration.solver);
    if (plan_.may_factor) r[vectors] = std::max(r[vectors], solver_workspace(Solver::direct));
    r[vectors] += 2 * plan_.curves * std::min(shape.rows, shape.cols) * Index{sizeof(double)};  // weights
    if (plan_.reweighted) r[vectors] += for_weights();
    r[panels] = products_workspace();
    if (plan_.space_bytes) r[space] = plan_.space_bytes(row_, col_);
    if (plan_.sigma_min_bytes) r[sigma_min] = plan_.sigma_min_bytes(row_, col_);
    if (plan_.norms_bytes) r[norms] = plan_.norms_bytes(row_, col_);
    const Index solving = r[data] + r[solution] + r[panels] + std::max(r[vectors] + r[space], r[sigma_min]);
    r[in_all] = r[matrix] + std::max(solving, r[norms]);
    r[received] = received_per_iteration();
    return r;
  }

 private:
  Index block(const Layout& layout) const {
    return layout.row_range(grid_, row_, col_).size * layout.col_range(grid_, row_, col_).size *
           size_of(plan_.shape.type);
  }

  Index block_of_matrix() const {
    return with_scalar_type(plan_.shape.type, [&]<Scalar T>() {
      return block_bytes<T>(plan_.iteration.storage, plan_.matrix.row_range(grid_, row_, col_).size,
                            plan_.matrix.col_range(grid_, row_, col_).size);
    });
  }

  /// The bytes that robust_solve() takes beside its solver: four operands like B, two like X, and the
  /// magnitudes of residuals.
  Index for_weights() const {
    const auto of_batch = [&](const Space& space) {
      const Partition all = space.layout(plan_.shape.nrhs).cols.partition;
      return space.layout(plan_.batch == 0 ? all.total() : largest_batch(all, plan_.batch));
    };
    const Layout data = of_batch(plan_.range);
    return 4 * block(data) + 2 * block(of_batch(plan_.domain)) +
           block(data) / size_of(plan_.shape.type) * Index{sizeof(double)};
  }

  Index columns_at_a_time() const { return std::max(plan_.shape.nrhs, plan_.rest); }

  Index solver_workspace(Solver solver) const {
    const bool one_pass = plan_.iteration.one_pass && gridlops::row_of(solver).has(Feature::one_pass);
    return solver_workspace_bytes(
        {solver, plan_.range, plan_.domain, plan_.shape.type, columns_at_a_time(), plan_.batch, plan_.damped,
         plan_.initial_guess, one_pass, plan_.scaled, plan_.guarded, plan_.own_damps, plan_.weighted},
        row_, col_);
  }

  /// The memory of products with A and with Aᴴ, which share it; of normal products; and of redistributions,
  /// which follow a product whose result is kept.
  Index products_workspace() const {
    const Index of_solver =
        largest_batch(plan_.range.layout(columns_at_a_time()).cols.partition, plan_.batch);
    const Index columns = std::max(of_solver, plan_.sketch_columns);
    const auto larger = [](const RankCost& a, const RankCost& b) {
      return std::max(a.workspace_bytes, b.workspace_bytes);
    };
    Index bytes = product_workspace_bytes(plan_.iteration.algorithm, shape_of(columns), grid_.shape(), row_,
                                          col_, plan_.iteration.one_pass, plan_.iteration.panel);
    // One product with Aᴴ has R and A P side by side.
    if (plan_.iteration.one_pass && !row_of(plan_.iteration.storage).reads_once)
      bytes += plan_.matrix.row_range(grid_, row_, col_).size * 2 * columns * size_of(plan_.shape.type);
    if (redistributes())
      bytes += block(plan_.product_range.layout(columns)) +
               larger(redistribution(false, columns), redistribution(true, columns));
    return bytes;
  }

  Index received_per_iteration() const {
    const Index columns = plan_.shape.nrhs;
    if (plan_.iteration.one_pass) return normal_product(columns).bytes_received;
    Index bytes = product(false, columns).bytes_received;
    if (row_of(plan_.iteration.solver).multiplies_with_adjoint())
      bytes += product(true, columns).bytes_received;
    if (redistributes()) bytes += redistribution(false, columns).bytes_received;
    return bytes;
  }

  ProductShape shape_of(Index columns) const {
    ProductShape shape = plan_.shape;
    shape.nrhs = columns;
    return shape;
  }
  RankCost product(bool adjoint, Index columns) const {
    return product_cost(plan_.iteration.algorithm, shape_of(columns), grid_.shape(), row_, col_, adjoint,
                        plan_.iteration.panel);
  }
  RankCost normal_product(Index columns) const {
    return normal_product_cost(shape_of(columns), grid_.shape(), row_, col_);
  }
  bool redistributes() const { return plan_.range != plan_.product_range; }
  /// The cost of redistributing a product's result to the operator's range, or data back.
  RankCost redistribution(bool adjoint, Index columns) const {
    const Layout of_product = plan_.product_range.layout(columns), range = plan_.range.layout(columns);
    return redistribution_cost(grid_, adjoint ? range : of_product, adjoint ? of_product : range,
                               plan_.shape.type, row_, col_);
  }

  const PlannedSolve& plan_;
  const ProcessGrid& grid_;
  int row_, col_;
};

}  // namespace

PlannedSolve plan_solve(const MatrixFile& A, const KeptMatrix& how, const PlannedIteration& iteration,
                        const ProductShape& shape, Index batch,
                        const std::shared_ptr<const ProcessGrid>& grid) {
  const Layout layout = matrix_layout(iteration.algorithm, *grid, shape.rows, shape.cols);
  const bool is_hermitian = row_of(iteration.solver).problem == ProblemKind::hermitian;
  return with_scalar_type(shape.type, [&]<Scalar T>() -> PlannedSolve {
    const OperatorPtr<T> product = matrix_mult(iteration.algorithm, planned_matrix<T>(grid, layout));
    return {.iteration = iteration,
            .shape = shape,
            .batch = batch,
            .matrix = layout,
            .tile_bytes = A.tile_bytes(how),
            .product_range = product->range(),
            .range = is_hermitian ? product->domain() : product->range(),
            .domain = product->domain()};
  });
}

Index memory_of_rank(const PlannedSolve& plan, int row, int col) {
  return RankPlan(plan, row, col).bytes()[in_all];
}

Index most_memory(const PlannedSolve& plan, const MatrixFile& A) {
  return largest_on(A.full_ranks(plan.range.grid->shape()),
                    [&](int row, int col) { return memory_of_rank(plan, row, col); });
}

Index room_for_tiles(const PlannedSolve& plan, const MatrixFile& A, const KeptMatrix& how, Index memory) {
  const Index beside = largest_on(A.full_ranks(how.grid), [&](int row, int col) {
    return memory_of_rank(plan, row, col) - A.sizes_on_disk(how, row, col).memory;
  });
  return std::max<Index>(memory - beside, 0);
}

std::string bytes_table(std::span<const char* const> names, std::span<const Index> least,
                        std::span<const Index> most) {
  std::string text = fmt::format("{:<38}{:>12}{:>12}\n", "on each rank", "least", "most");
  for (std::size_t k = 0; k < names.size(); ++k)
    text += fmt::format("{:<38}{:>12}{:>12}\n", names[k], bytes_text(least[k]), bytes_text(most[k]));
  return text;
}

std::string plan_text(const PlannedSolve& plan) {
  const ProcessGrid& grid = *plan.range.grid;
  MemoryRow least{}, most{};
  for (int row = 0; row < grid.rows(); ++row) {
    for (int col = 0; col < grid.cols(); ++col) {
      const MemoryRow bytes = RankPlan(plan, row, col).bytes();
      for (std::size_t k = 0; k < bytes.size(); ++k) {
        const bool first = row == 0 && col == 0;
        least[k] = first ? bytes[k] : std::min(least[k], bytes[k]);
        most[k] = std::max(most[k], bytes[k]);
      }
    }
  }
  std::vector<const char*> names;
  std::vector<Index> fewest, largest;
  for (std::size_t k = 0; k < labels.size(); ++k) {
    if ((k == space && !plan.space_bytes) || (k == sigma_min && !plan.sigma_min_bytes) ||
        (k == norms && !plan.norms_bytes))
      continue;
    names.push_back(labels[k]);
    fewest.push_back(least[k]);
    largest.push_back(most[k]);
  }
  return bytes_table(names, fewest, largest);
}

}  // namespace gridlops::program
