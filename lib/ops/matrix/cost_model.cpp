// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "dist/redistribution.hpp"
#include "gridlops/base/error.hpp"
#include "local/products/packed_matrix.hpp"
#include "local/products/product_times.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/matrix/product_work.hpp"

namespace gridlops {

namespace {

constexpr std::array<Algorithm, 4> algorithms{Algorithm::block, Algorithm::summa, Algorithm::stationary_a,
                                              Algorithm::stationary_b};

RankCost cost_of(const RankWork& work, const ProductShape& shape) {
  // Without columns an operator returns at once.
  RankCost cost;
  if (shape.nrhs == 0) return cost;
  const Index bytes = size_of(shape.type);
  for (const Exchange& exchange : work.exchanges) {
    cost.bytes_received += exchange.received * bytes;
    cost.bytes_sent += exchange.sent * bytes;
    cost.messages += exchange.calls;
  }
  cost.flops = work.flops;
  cost.workspace_bytes = work.workspace * bytes;
  return cost;
}

}  // namespace

RankCost product_cost(Algorithm algorithm, const ProductShape& shape, GridShape grid, int row, int col,
                      bool adjoint, Index panel) {
  return cost_of(ProductFormulas(shape, grid, panel).product(algorithm, adjoint, row, col), shape);
}

RankCost normal_product_cost(const ProductShape& shape, GridShape grid, int row, int col) {
  return cost_of(ProductFormulas(shape, grid).normal_product(row, col), shape);
}

Index product_workspace_bytes(Algorithm algorithm, const ProductShape& shape, GridShape grid, int row,
                              int col, bool one_pass, Index panel) {
  if (shape.nrhs == 0) return 0;
  const ProductFormulas formulas(shape, grid, panel);
  return (formulas.workspace_of_both(algorithm, row, col) +
          (one_pass ? formulas.normal_product(row, col).workspace : 0)) *
         size_of(shape.type);
}

RankCost redistribution_cost(const ProcessGrid& grid, const Layout& from, const Layout& to, ScalarType type,
                             int row, int col) {
  const RedistributionSizes sizes = redistribution_sizes(grid, from, to, row, col);
  const Index bytes = size_of(type);
  RankCost cost;
  cost.bytes_received = (sizes.incoming - sizes.kept) * bytes;
  cost.bytes_sent = (sizes.outgoing - sizes.kept) * bytes;
  cost.messages = 1;
  cost.workspace_bytes = (sizes.incoming + sizes.outgoing) * bytes;
  return cost;
}

namespace {

constexpr Index caches = Index{32} << 20;  // more than the caches of one rank hold

struct BlockSize {
  Index rows, cols, bytes;
};

/// Of the largest block of A.
BlockSize largest_block(Algorithm algorithm, const ProductShape& shape, GridShape grid) {
  const bool has_rows = algorithm == Algorithm::block;
  const Index rows = Partition::balanced(shape.rows, has_rows ? grid.cols : grid.rows).largest();
  const Index cols = Partition::balanced(shape.cols, has_rows ? 1 : grid.cols).largest();
  return {rows, cols, rows * cols * size_of(shape.type)};
}

}  // namespace

Storage faster_storage(Algorithm algorithm, const ProductShape& shape, GridShape grid) {
  const Index columns =
      algorithm == Algorithm::block ? Partition::balanced(shape.nrhs, grid.rows).largest() : shape.nrhs;
  const BlockSize block = largest_block(algorithm, shape, grid);
  const bool pays = never_moves_A(algorithm) && block.bytes > caches &&
                    packed_is_faster(shape.type, block.rows, block.cols, columns, kernel_choice());
  return pays ? Storage::packed : Storage::columns;
}

bool one_pass_is_faster(const ProductShape& shape, GridShape grid) {
  const bool is_complex = shape.type == ScalarType::c64 || shape.type == ScalarType::c128;
  // More columns do not pay off if the ranks of a grid row wait for each other within a pass. The
  // measurements do not include this wait, so they can only rule out one pass there.
  const bool waits = grid.cols > 1;
  const Index most_columns = waits ? (is_complex ? 0 : 3) : (is_complex ? 1 : 4);
  const bool usual = shape.nrhs > 0 && shape.nrhs <= most_columns;
  return largest_block(Algorithm::stationary_a, shape, grid).bytes > caches && (usual || !waits) &&
         one_pass_pays(usual, shape.type, shape.nrhs);
}

ProductChoices product_choices(ScalarType type) {
  constexpr Index large = 1 << 14, most = 128;
  // The numbers of columns for which `holds` is true, such as "1-16, 64".
  const auto ranges = [](const auto& holds) {
    std::string text;
    for (Index begin = 1, end = 0; begin <= most; begin = end + 1) {
      for (end = begin; end <= most && holds(end); ++end) continue;
      if (end == begin) continue;
      text += message(text.empty() ? "" : ", ", begin);
      if (end - 1 > begin) text += message("-", end - 1);
    }
    return text.empty() ? std::string("none") : text;
  };
  const auto own = [&](Op op) {
    return ranges([&](Index columns) {
      return with_scalar_type(type, [&]<Scalar T>() {
        return few_columns_gemm_is_faster<T>(op, large, large, columns, *kernel_choice().set);
      });
    });
  };
  return {own(Op::none), own(Op::adjoint), ranges([&](Index columns) {
            return packed_is_faster(type, large, large, columns, kernel_choice());
          }),
          ranges([&](Index columns) {
            return one_pass_is_faster({large, large, columns, type}, {1, 1});
          })};
}

namespace {

/// The time of a rank's operations in communicators of P·Q ranks; more precisely, in their rows and columns.
double seconds_of(const Exchange& exchange, bool in_place, GridShape grid, ScalarType type,
                  const MachineModel& machine) {
  const double bytes = in_place ? 0 : static_cast<double>(exchange.moved * size_of(type));
  return machine.seconds(exchange.operation, exchange.in_row ? grid.cols : grid.rows, exchange.calls, bytes);
}

/// Products stream A from memory while they compute.
double seconds_of_kernels(const RankWork& work, ScalarType type, const MachineModel& machine) {
  return std::max(work.flops * machine.seconds_per_flop[static_cast<std::size_t>(type)],
                  static_cast<double>(work.read * size_of(type)) * machine.seconds_per_read_byte);
}

/// The maximum over all ranks. One evaluation takes a microsecond, so all ranks are evaluated.
template <class SecondsOfRank>
double slowest(GridShape grid, const SecondsOfRank& seconds_of_rank) {
  double most = 0;
  for (int row = 0; row < grid.rows; ++row)
    for (int col = 0; col < grid.cols; ++col) most = std::max(most, seconds_of_rank(row, col));
  return most;
}

}  // namespace

double MachineModel::seconds(CommOperation operation, int ranks, Index calls, double bytes) const {
  const LinkModel& link = links[static_cast<std::size_t>(operation)];
  // Collectives follow trees whose depth grows with the logarithm of the number of ranks.
  const double depth = std::log2(std::max(ranks, 2)) / std::log2(std::max(ranks_of_links, 2));
  return static_cast<double>(calls) * link.seconds_per_call * depth + bytes * link.seconds_per_byte;
}

double product_seconds(Algorithm algorithm, const ProductShape& shape, GridShape grid, bool adjoint,
                       const MachineModel& machine, Index panel) {
  if (shape.nrhs == 0) return 0;
  const ProductFormulas formulas(shape, grid, panel);
  const bool rows = machine.rows_share_memory, columns = machine.columns_share_memory;
  return slowest(grid, [&](int row, int col) {
    const RankWork work = formulas.product(algorithm, adjoint, row, col);
    double seconds = seconds_of_kernels(work, shape.type, machine);
    for (const Exchange& exchange : work.exchanges) {
      const bool in_place = ProductFormulas::reads_in_place(algorithm, exchange, rows, columns);
      seconds += seconds_of(exchange, in_place, grid, shape.type, machine);
    }
    const Index copied = formulas.copied(algorithm, adjoint, row, col, rows, columns);
    return seconds + static_cast<double>(copied * size_of(shape.type)) * machine.seconds_per_copied_byte;
  });
}

double normal_product_seconds(const ProductShape& shape, GridShape grid, const MachineModel& machine) {
  if (shape.nrhs == 0) return 0;
  const ProductFormulas formulas(shape, grid);
  return slowest(grid, [&](int row, int col) {
    const RankWork work = formulas.normal_product(row, col);
    double seconds = seconds_of_kernels(work, shape.type, machine);
    for (const Exchange& exchange : work.exchanges)
      seconds += seconds_of(exchange, false, grid, shape.type, machine);
    const Index copied = formulas.copied_in_normal_product(row, col);
    return seconds + static_cast<double>(copied * size_of(shape.type)) * machine.seconds_per_copied_byte;
  });
}

MachineModel with_shared_memory(MachineModel machine, const ProcessGrid& grid) {
  if (!grid.is_member()) return machine;
  // If ranks are on several machines, some rows or columns may share memory and others not.
  const auto shares = [](const Communicator& comm) { return comm.peer_access() == PeerAccess::in_place; };
  std::array<std::int32_t, 2> all{shares(grid.row_comm()), shares(grid.col_comm())};
  grid.comm().all_reduce(all, ReduceOp::min);
  machine.rows_share_memory = all[0] != 0;
  machine.columns_share_memory = all[1] != 0;
  return machine;
}

double modelled_seconds(Algorithm algorithm, const ProductShape& shape, GridShape grid,
                        const MachineModel& machine) {
  return product_seconds(algorithm, shape, grid, false, machine) +
         product_seconds(algorithm, shape, grid, true, machine);
}

Algorithm choose_algorithm(const ProductShape& shape, GridShape grid, const MachineModel& machine) {
  std::vector<std::pair<Algorithm, double>> candidates;
  double least = std::numeric_limits<double>::infinity();
  for (const Algorithm algorithm : algorithms) {
    if (algorithm == Algorithm::block && grid.rows > 1) continue;
    candidates.emplace_back(algorithm, modelled_seconds(algorithm, shape, grid, machine));
    least = std::min(least, candidates.back().second);
  }
  const bool few_columns = shape.nrhs <= std::min(shape.rows, shape.cols) / 4;
  const double enough = (few_columns ? 1.10 : 1.01) * least;
  std::erase_if(candidates, [enough](const auto& candidate) { return candidate.second > enough; });
  // Algorithms that never move A come first, then faster ones.
  const auto best = std::min_element(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return std::pair(!never_moves_A(a.first), a.second) < std::pair(!never_moves_A(b.first), b.second);
  });
  return best->first;
}

std::vector<GridShape> grids_of(int ranks) {
  std::vector<GridShape> grids;
  for (int rows = 1; rows <= ranks; ++rows)
    if (ranks % rows == 0) grids.push_back({rows, ranks / rows});
  return grids;
}

GridShape choose_grid(int ranks, const std::function<double(GridShape)>& seconds) {
  GridShape best = near_square(ranks);
  constexpr double certain = 1.02;
  double least = seconds(best) / certain;
  for (const GridShape grid : grids_of(ranks)) {
    const double here = seconds(grid);
    if (here >= least) continue;
    least = here;
    best = grid;
  }
  return best;
}

}  // namespace gridlops
