// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <memory>

#include "comm/failure/failure.hpp"
#include "ops/matrix/block_exchange.hpp"
#include "ops/matrix/matrix_block.hpp"

namespace gridlops {

/// Products with matrices that never move, one after the other, in shared scratch memory. Rank (p, q) keeps
/// A(p, q). Block q of X is cut over the P ranks of grid column q, block p of Y over the Q ranks of grid row
/// p. Forward: gather X(q) in the grid column, multiply, reduce-scatter Y(p) = Σ over q of A(p, q) X(q) in
/// the grid row. The adjoint swaps the rows and columns of the grid.
template <Scalar T>
class StationaryProduct {
 public:
  /// This rank is a member of the grid, whose communicators must outlive this object.
  StationaryProduct(const ProcessGrid& grid, ReductionOrder order)
      : models_(make_block_exchange<T>(grid.col_comm(), grid.backend(), order)),
        data_(make_block_exchange<T>(grid.row_comm(), grid.backend(), order)) {}

  /// Sets up the exchanges (collective over the grid).
  void connect() {
    FailureScope failures;  // other ranks wait for this one in the second step, even if the first one throws
    failures.run([&] { models_->connect(); });
    failures.run([&] { data_->connect(); });
  }

  /// Takes the memory for a product with this many columns. Sends nothing.
  void reserve(Op op, const CutBlock& models, const CutBlock& data, Index cols) {
    const bool forward = op == Op::none;
    (forward ? models_ : data_)->reserve_gather(forward ? models : data, cols, gathered_);
    (forward ? data_ : models_)->reserve_sum(forward ? data : models, cols);
  }

  /// out ← α op(A) in + β out (collective over the grid), where multiply_block(X, β, Y) does that,
  /// Y ← α op(A) X + β Y, with this rank's A(p, q).
  template <class MultiplyBlock>
  void multiply(Op op, const CutBlock& models, const CutBlock& data, MatrixView<const T> in, T beta,
                MatrixView<T> out, MultiplyBlock&& multiply_block) {
    const bool forward = op == Op::none;
    const CutBlock& out_block = forward ? data : models;
    BlockExchange<T>&in_ranks = forward ? *models_ : *data_, &out_ranks = forward ? *data_ : *models_;
    const MatrixView<const T> gathered = in_ranks.gather(in, forward ? models : data, gathered_);
    if (out_block.parts() == 1) {
      multiply_block(gathered, beta, out);
    } else {
      const MatrixView<T> partial = out_ranks.summand(out_block.height(), out.cols);
      multiply_block(gathered, T(0), partial);
      out_ranks.reduce_scatter(partial, out_block, beta, out);
    }
    in_ranks.await_readers();
    out_ranks.await_readers();
  }

 private:
  std::unique_ptr<BlockExchange<T>> models_, data_;
  Buffer<T> gathered_;
};

/// A matrix whose products are made by shared_product(): what these take for some columns, matrices on one
/// grid take once.
class SharesProduct {
 public:
  virtual ~SharesProduct() = default;
};

/// The products of all matrices on this grid that have them, while any has. These keep the grid alive.
template <Scalar T>
std::shared_ptr<StationaryProduct<T>> shared_product(const ProcessGrid& grid) {
  static std::map<const ProcessGrid*, std::weak_ptr<StationaryProduct<T>>> of_grids;
  std::erase_if(of_grids, [](const auto& entry) { return entry.second.expired(); });
  if (const auto found = of_grids.find(&grid); found != of_grids.end()) return found->second.lock();
  const auto made = std::make_shared<StationaryProduct<T>>(grid, ReductionOrder::any);
  of_grids[&grid] = made;
  return made;
}

}  // namespace gridlops
