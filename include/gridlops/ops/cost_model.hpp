// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "gridlops/base/counters.hpp"
#include "gridlops/base/export.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/dist/layout.hpp"
#include "gridlops/ops/algorithm.hpp"

namespace gridlops {

/// A product to be planned. A is rows × cols and cut in balanced blocks, and X has nrhs columns.
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

/// Returns what the rank at (row, col) of the grid does in one application of the operator, or of its
/// adjoint. It is exactly what the counters of the communicators will show. `panel` is that of
/// MatrixMultOptions.
GRIDLOPS_EXPORT RankCost product_cost(Algorithm algorithm, const ProductShape& shape, GridShape grid, int row,
                                      int col, bool adjoint, Index panel = 0);

/// Returns what it does in one LinearOperator::normal_product() with a packed stationary_a.
GRIDLOPS_EXPORT RankCost normal_product_cost(const ProductShape& shape, GridShape grid, int row, int col);

/// Returns what it does in one redistribute().
GRIDLOPS_EXPORT RankCost redistribution_cost(const ProcessGrid& grid, const Layout& from, const Layout& to,
                                             ScalarType type, int row, int col);

/// Returns the storage with which repeated products in host memory are faster on this processor. It is
/// packed for up to 128 columns on processors with AVX2, unless a calibration says otherwise
/// (calibration.hpp), where blocks of A are larger than caches and neither low nor narrow
/// (docs/performance-notes.md). Packing takes as long as a few products.
GRIDLOPS_EXPORT Storage faster_storage(Algorithm algorithm, const ProductShape& shape, GridShape grid);

/// Returns whether CGLS in host memory is faster in one pass; the same on all ranks. It is if blocks of A are
/// larger than caches, so that reading A takes the time, and if there are at most as many columns as the
/// crossover of their type and grid (docs/performance-notes.md), unless a calibration says otherwise.
GRIDLOPS_EXPORT bool one_pass_is_faster(const ProductShape& shape, GridShape grid);

/// For which numbers of right-hand sides, up to 128, a rank's block in host memory that no cache holds gets
/// what: "1-16, 64", or "none".
struct ProductChoices {
  std::string forward, adjoint;  ///< with A in columns: the kernels of this library, with one BLAS thread
  std::string packed, one_pass;  ///< as faster_storage() and one_pass_is_faster() choose on one rank

  friend bool operator==(const ProductChoices&, const ProductChoices&) = default;
};
GRIDLOPS_EXPORT ProductChoices product_choices(ScalarType type);

/// What operations of one kind take on a rank while all ranks are at it.
struct LinkModel {
  double seconds_per_call = 5e-6;
  double seconds_per_byte = 1.0 / 5e9;  ///< that the rank receives; a root: that the others receive or give
};

/// Describes the machine by what its ranks do in a second, all at once, and by which of them read each
/// other's memory in place. The defaults are those of a common cluster core. `gridlops calibrate` measures
/// others for the file of the calibration.
struct GRIDLOPS_EXPORT MachineModel {
  /// By ScalarType, of a real multiplication or addition in a large product.
  std::array<double, 4> seconds_per_flop{1.0 / 80e9, 1.0 / 40e9, 1.0 / 80e9, 1.0 / 40e9};
  double seconds_per_read_byte = 1.0 / 10e9;            ///< of a matrix in memory
  double seconds_per_copied_byte = 1.0 / 10e9;          ///< within a rank, or from the memory of a peer
  std::array<LinkModel, comm_operation_count> links{};  ///< by CommOperation
  int ranks_of_links = 2;                               ///< among which operations take so long
  bool rows_share_memory = false;     ///< ranks of a grid row, through the transport `shared`
  bool columns_share_memory = false;  ///< ranks of a grid column

  /// The seconds of so many operations among so many ranks, with so many bytes in all.
  double seconds(CommOperation operation, int ranks, Index calls, double bytes) const;
};

/// Returns the model with what the grid's transport tells (collective over the grid). The rows of the grid
/// share memory if all of them do, and so do the columns. An idle rank takes part in nothing, and gets the
/// model as it is.
GRIDLOPS_EXPORT MachineModel with_shared_memory(MachineModel machine, const ProcessGrid& grid);

/// Returns the seconds of one application of an operator, or of its adjoint, on the slowest rank: the longer
/// of computing and of reading A, and the times of what is sent and copied besides, of which nothing is
/// assumed to overlap.
GRIDLOPS_EXPORT double product_seconds(Algorithm algorithm, const ProductShape& shape, GridShape grid,
                                       bool adjoint, const MachineModel& machine = {}, Index panel = 0);

/// Returns the same of one LinearOperator::normal_product() with a packed stationary_a.
GRIDLOPS_EXPORT double normal_product_seconds(const ProductShape& shape, GridShape grid,
                                              const MachineModel& machine = {});

/// Returns the seconds of one forward and one adjoint application.
GRIDLOPS_EXPORT double modelled_seconds(Algorithm algorithm, const ProductShape& shape, GridShape grid,
                                        const MachineModel& machine = {});

/// Returns the algorithm with the smallest modelled time. The fastest that never moves A is preferred if it
/// takes at most 1 % longer, which is less than the model knows. With few columns, at most a quarter of A's
/// smaller dimension, it may take 10 % longer: its A can be stored for few columns, and all ranks have work
/// as long as there is one column. Among equals the one named first in Algorithm is taken. `block` counts on
/// one grid row only, where it keeps no copies of A.
GRIDLOPS_EXPORT Algorithm choose_algorithm(const ProductShape& shape, GridShape grid,
                                           const MachineModel& machine = {});

/// Returns all P × Q with P·Q = ranks, by rising P.
GRIDLOPS_EXPORT std::vector<GridShape> grids_of(int ranks);

/// Returns the grid of all ranks with the fewest seconds. It is near_square() unless another one takes less
/// than 1/1.02 of its time, and among equals it has the fewest rows.
GRIDLOPS_EXPORT GridShape choose_grid(int ranks, const std::function<double(GridShape)>& seconds);

}  // namespace gridlops
