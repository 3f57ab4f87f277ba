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

/// The shape of a product. A is rows × cols and cut into balanced blocks, and X has nrhs columns.
struct ProductShape {
  Index rows = 0;
  Index cols = 0;
  Index nrhs = 0;
  ScalarType type = ScalarType::f64;
};

/// The cost of one product on one rank.
struct RankCost {
  Index bytes_received = 0;  ///< payload, counted as in Traffic
  Index bytes_sent = 0;
  Index messages = 0;  ///< collective or point-to-point operations in which the rank takes part
  double flops = 0;
  Index workspace_bytes = 0;  ///< the most scratch memory that the operator keeps, with the default lookahead
};

/// Returns the cost of one application of the operator, or of its adjoint, on the rank at (row, col) of the
/// grid, exactly as the communicators' counters will show it. `panel` is as in MatrixMultOptions.
GRIDLOPS_EXPORT RankCost product_cost(Algorithm algorithm, const ProductShape& shape, GridShape grid, int row,
                                      int col, bool adjoint, Index panel = 0);

/// Returns the cost of one LinearOperator::normal_product() with a packed stationary_a on the rank at (row,
/// col).
GRIDLOPS_EXPORT RankCost normal_product_cost(const ProductShape& shape, GridShape grid, int row, int col);

/// Returns the scratch memory of an operator that has multiplied in both directions, and in one pass if it
/// has that, with the default lookahead and balanced cuts.
GRIDLOPS_EXPORT Index product_workspace_bytes(Algorithm algorithm, const ProductShape& shape, GridShape grid,
                                              int row, int col, bool one_pass, Index panel = 0);

/// Returns the cost of one redistribute() on the rank at (row, col).
GRIDLOPS_EXPORT RankCost redistribution_cost(const ProcessGrid& grid, const Layout& from, const Layout& to,
                                             ScalarType type, int row, int col);

/// Returns the storage that makes repeated products in host memory faster on this processor. Unless a
/// calibration (calibration.hpp) says otherwise, this is packed for up to 128 columns on processors with AVX2
/// if blocks of A are larger than the caches and neither low nor narrow (docs/performance-notes.md). Packing
/// takes as long as a few products.
GRIDLOPS_EXPORT Storage faster_storage(Algorithm algorithm, const ProductShape& shape, GridShape grid);

/// Returns whether CGLS in host memory is faster in one pass; the same on all ranks. This is so if blocks of
/// A are larger than the caches, so that reading A dominates, and if there are no more columns than the
/// crossover for their type and grid (docs/performance-notes.md), unless a calibration says otherwise.
GRIDLOPS_EXPORT bool one_pass_is_faster(const ProductShape& shape, GridShape grid);

/// For each choice, the numbers of right-hand sides, up to 128, for which it applies to a rank's block in
/// host memory that is too large for the caches: "1-16, 64", or "none".
struct ProductChoices {
  std::string forward, adjoint;  ///< with A in columns: the kernels of this library, with one BLAS thread
  std::string packed, one_pass;  ///< as faster_storage() and one_pass_is_faster() choose on one rank

  friend bool operator==(const ProductChoices&, const ProductChoices&) = default;
};
GRIDLOPS_EXPORT ProductChoices product_choices(ScalarType type);

/// The time of one kind of operation on a rank while all ranks perform it.
struct LinkModel {
  double seconds_per_call = 5e-6;
  double seconds_per_byte = 1.0 / 5e9;  ///< received by the rank; of a root: received or given by the others
};

/// Describes the speed of the machine's ranks while all work at once, and which of them read each other's
/// memory in place. The defaults describe a common cluster core. `gridlops calibrate` measures a machine
/// and keeps the figures in the file of the calibration.
struct GRIDLOPS_EXPORT MachineModel {
  /// By ScalarType, per real multiplication or addition in a large product.
  std::array<double, 4> seconds_per_flop{1.0 / 80e9, 1.0 / 40e9, 1.0 / 80e9, 1.0 / 40e9};
  double seconds_per_read_byte = 1.0 / 10e9;            ///< per byte of a matrix in memory
  double seconds_per_copied_byte = 1.0 / 10e9;          ///< within a rank, or from the memory of a peer
  std::array<LinkModel, comm_operation_count> links{};  ///< by CommOperation
  int ranks_of_links = 2;                               ///< the number of ranks for which `links` holds
  bool rows_share_memory = false;     ///< the ranks of a grid row do, through the transport `shared`
  bool columns_share_memory = false;  ///< the ranks of a grid column do

  /// The seconds of `calls` operations among this number of ranks, with this total number of bytes.
  double seconds(CommOperation operation, int ranks, Index calls, double bytes) const;
};

/// Returns the model completed from the grid's transport (collective over the grid). The grid's rows share
/// memory only if all of them do, and likewise the columns. An idle rank takes no part, and gets the model
/// unchanged.
GRIDLOPS_EXPORT MachineModel with_shared_memory(MachineModel machine, const ProcessGrid& grid);

/// Returns the seconds of one application of an operator, or of its adjoint, on the slowest rank: the longer
/// of computing and reading A, plus the times of sending and copying. The model assumes that these do not
/// overlap.
GRIDLOPS_EXPORT double product_seconds(Algorithm algorithm, const ProductShape& shape, GridShape grid,
                                       bool adjoint, const MachineModel& machine = {}, Index panel = 0);

/// Returns the same for one LinearOperator::normal_product() with a packed stationary_a.
GRIDLOPS_EXPORT double normal_product_seconds(const ProductShape& shape, GridShape grid,
                                              const MachineModel& machine = {});

/// Returns the seconds of one forward and one adjoint application.
GRIDLOPS_EXPORT double modelled_seconds(Algorithm algorithm, const ProductShape& shape, GridShape grid,
                                        const MachineModel& machine = {});

/// Returns the algorithm with the smallest modelled time, with one preference. The fastest algorithm that
/// never moves A wins if it takes at most 1 % longer, which is within the model's uncertainty. With few
/// columns, at most a quarter of A's smaller dimension, it may take 10 % longer: its A can be stored for few
/// columns, and all ranks have work as long as there is one column. Ties go to the algorithm that comes first
/// in Algorithm. `block` is considered only on grids with one row, where it keeps no copies of A.
/// Reasons: docs/decisions/0014-choosing-an-algorithm.md.
GRIDLOPS_EXPORT Algorithm choose_algorithm(const ProductShape& shape, GridShape grid,
                                           const MachineModel& machine = {});

/// Returns all P × Q with P·Q = ranks, in order of increasing P.
GRIDLOPS_EXPORT std::vector<GridShape> grids_of(int ranks);

/// Returns the grid of all ranks with the fewest seconds. This is near_square() unless another grid takes
/// less than 1/1.02 of its time. Among equals it is the grid with the fewest rows.
GRIDLOPS_EXPORT GridShape choose_grid(int ranks, const std::function<double(GridShape)>& seconds);

}  // namespace gridlops
