// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gridlops/algorithm.hpp"
#include "gridlops/export.hpp"
#include "gridlops/layout.hpp"
#include "gridlops/process_grid.hpp"

namespace gridlops {

/// A product to be planned: A is rows × cols, cut in balanced blocks, times nrhs columns.
struct ProductShape {
  Index rows = 0;
  Index cols = 0;
  Index nrhs = 0;
  ScalarType type = ScalarType::f64;
};

/// What one rank does in one product.
struct RankCost {
  Index bytes_received = 0;  ///< payload by the rules of Traffic
  Index bytes_sent = 0;
  Index messages = 0;  ///< collective or point-to-point operations joined
  double flops = 0;
  Index workspace_bytes = 0;  ///< scratch that the operator keeps, at most, with the default lookahead
};

/// What the rank at (row, col) of the grid does in one application, exactly; forward or adjoint. `panel` as
/// in MatrixMultOptions. This is what the counters of the communicators will show.
GRIDLOPS_EXPORT RankCost product_cost(Algorithm algorithm, const ProductShape& shape, GridShape grid, int row,
                                      int col, bool adjoint, Index panel = 0);

/// What it does in one LinearOperator::normal_product() with a packed stationary_a.
GRIDLOPS_EXPORT RankCost normal_product_cost(const ProductShape& shape, GridShape grid, int row, int col);

/// What it does in one redistribute().
GRIDLOPS_EXPORT RankCost redistribution_cost(const ProcessGrid& grid, const Layout& from, const Layout& to,
                                             ScalarType type, int row, int col);

/// The storage with which repeated products are faster on this processor, in host memory, by the measured
/// crossovers of its instruction set and type (docs/performance.md). Packing takes as long as a few products.
GRIDLOPS_EXPORT Storage faster_storage(Algorithm algorithm, const ProductShape& shape, GridShape grid);

/// Whether CGLS is faster in one pass on such a grid, in host memory: reading A is what takes the time, since
/// its blocks are larger than caches, and the columns are at most as many as the measured crossover of their
/// type and grid (docs/performance.md). The same on all ranks.
GRIDLOPS_EXPORT bool one_pass_is_faster(const ProductShape& shape, GridShape grid);

/// The machine in four numbers, and which ranks read each other's memory in place. The numbers are a common
/// cluster core's; measure your own for close decisions.
struct MachineModel {
  double seconds_per_flop = 1.0 / 40e9;  ///< of a real multiply or add, one rank
  double seconds_per_byte = 1.0 / 5e9;   ///< received, one rank, all ranks at it
  double seconds_per_message = 5e-6;
  double seconds_per_copied_byte = 1.0 / 10e9;  ///< within a rank, or from the memory of a peer
  bool rows_share_memory = false;               ///< ranks of a grid row, through the transport `shared`
  bool columns_share_memory = false;            ///< ranks of a grid column
};

/// The default model with what the grid's transport tells (collective over the grid): rows or columns of the
/// grid share memory if all of them do. On an idle rank, which takes part in nothing, as if ranks sent
/// messages.
GRIDLOPS_EXPORT MachineModel machine_model(const ProcessGrid& grid);

/// Seconds of one forward and one adjoint application: of the slowest rank, with flops, bytes, messages and
/// copies added.
GRIDLOPS_EXPORT double modelled_seconds(Algorithm algorithm, const ProductShape& shape, GridShape grid,
                                        const MachineModel& machine = {});

/// The algorithm with the smallest modelled time. One that never moves A is preferred where it takes at most
/// 1 % longer, which is less than the model knows, and with few columns, a quarter of A's smaller dimension,
/// 10 %: such an A can be stored for few columns, and all ranks have work as long as there is one. Then comes
/// the one named first in Algorithm. `block` counts only where it keeps no copies of A, that is on one grid
/// row.
GRIDLOPS_EXPORT Algorithm choose_algorithm(const ProductShape& shape, GridShape grid,
                                           const MachineModel& machine = {});

}  // namespace gridlops
