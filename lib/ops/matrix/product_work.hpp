// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "gridlops/base/counters.hpp"
#include "gridlops/dist/partition.hpp"
#include "gridlops/ops/algorithm.hpp"
#include "gridlops/ops/cost_model.hpp"

namespace gridlops {

/// The operations of one kind in a product on one rank, in elements.
struct Exchange {
  CommOperation operation = CommOperation::barrier;
  bool in_row = false;  ///< among the ranks of a grid row; otherwise of a grid column
  Index calls = 0;
  Index received = 0, sent = 0;
  /// The basis for the time: usually the elements that the rank receives. For a broadcast, a scatter or a
  /// reduction to one rank, it is what any rank except the root receives or gives, even if this rank is the
  /// root.
  Index moved = 0;
};

/// The work of one rank in one product, in elements.
struct RankWork {
  double flops = 0;  ///< on real numbers
  Index read = 0;    ///< of A, by the kernels
  Index workspace = 0;
  std::array<Exchange, 4> exchanges{};
};

/// The formulas for the ranks of a P × Q grid. A is m × n, and X is n × r. The object computes values common
/// to all ranks once.
class ProductFormulas {
 public:
  /// `panel` is as in MatrixMultOptions.
  ProductFormulas(const ProductShape& shape, GridShape grid, Index panel = 0);

  /// The work of the rank at (p, q). Throws UsageError for Algorithm::automatic.
  RankWork product(Algorithm algorithm, bool adjoint, int p, int q) const;
  /// The work of LinearOperator::normal_product() with a packed stationary_a.
  RankWork normal_product(int p, int q) const;
  /// The workspace of an operator that has multiplied in both directions.
  Index workspace_of_both(Algorithm algorithm, int p, int q) const;

  /// Whether the kernels read at the owner, instead of receiving, the data of such an exchange. `rows_share`
  /// and `columns_share` say whether the ranks of a grid row, or column, read each other's memory.
  static bool reads_in_place(Algorithm algorithm, const Exchange& exchange, bool rows_share,
                             bool columns_share);
  /// The elements that the rank at (p, q) copies, packs or adds up outside the product itself.
  Index copied(Algorithm algorithm, bool adjoint, int p, int q, bool rows_share, bool columns_share) const;
  /// The elements that it copies for a normal product.
  Index copied_in_normal_product(int p, int q) const;

 private:
  RankWork block(bool adjoint, int p, int q) const;
  RankWork summa(bool adjoint, int p, int q) const;
  RankWork stationary_a(bool adjoint, int p, int q) const;
  RankWork stationary_b(bool adjoint, int p, int q) const;
  double flops(Index rows, Index cols, Index columns) const;

  Index m_, n_, r_;
  int P_, Q_;
  ScalarType type_;
  Index width_;
  Partition rows_, cols_;              // of A in blocks_2d: R and C
  Partition model_rows_, model_cols_;  // of X in blocks_2d
  Index summa_blocks_, summa_steps_, stationary_b_steps_;
};

}  // namespace gridlops
