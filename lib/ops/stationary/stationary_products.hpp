// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <utility>

#include "comm/failure/failure.hpp"
#include "comm/scratch.hpp"
#include "ops/stationary/block_exchange.hpp"
#include "ops/stationary/local_block.hpp"
#include "ops/stationary/normal_product.hpp"

namespace gridlops {

/// Products with matrices that never move, one after the other, with the same exchanges and buffers. Rank
/// (p, q) keeps A(p, q). Block q of X is cut over the P ranks of grid column q, block p of Y over the Q ranks
/// of grid row p. Forward: gather X(q) in the grid column, multiply, reduce-scatter Y(p) = Σ over q of
/// A(p, q) X(q) in the grid row. The adjoint swaps the rows and columns of the grid.
template <Scalar T>
class StationaryProducts {
 public:
  /// This rank is a member of the grid, whose communicators must outlive this object.
  StationaryProducts(const ProcessGrid& grid, ReductionOrder order)
      : models_(make_block_exchange<T>(grid.col_comm(), grid.backend(), order)),
        data_(make_block_exchange<T>(grid.row_comm(), grid.backend(), order)),
        normal_product_(grid.backend(), order) {}

  /// Sets up the exchanges (collective over the grid).
  void connect() {
    FailureScope failures;  // other ranks wait for this one in the second step, even if the first one throws
    failures.run([&] { models_->connect(); });
    failures.run([&] { data_->connect(); });
  }

  /// Takes the memory for a product with this many columns. Sends nothing.
  void reserve(ProductKind kind, const CutBlock& models, const CutBlock& data, Index cols) {
    if (kind == ProductKind::normal) return normal_product_.reserve(models, data, cols);
    const bool forward = kind == ProductKind::forward;
    (forward ? models_ : data_)->reserve_gather(forward ? models : data, cols, gathered_);
    (forward ? data_ : models_)->reserve_sum(forward ? data : models, cols);
  }

  /// out ← α op(A) in + β out (collective over the grid), with this rank's block of A. If the block throws,
  /// this goes on, and the FailureScope around it, which there must be, keeps the exception.
  void multiply(LocalBlock<T>& A, const ProcessGrid& grid, Op op, T alpha, const CutBlock& models,
                const CutBlock& data, MatrixView<const T> in, T beta, MatrixView<T> out) {
    FailureScope failures;
    const bool forward = op == Op::none;
    const CutBlock& out_block = forward ? data : models;
    BlockExchange<T>&in_ranks = forward ? *models_ : *data_, &out_ranks = forward ? *data_ : *models_;
    const MatrixView<const T> gathered = in_ranks.gather(in, forward ? models : data, gathered_);
    if (out_block.parts() == 1) {
      failures.run([&] { A.multiply(grid, op, alpha, gathered, beta, out); });
    } else {
      const MatrixView<T> partial = out_ranks.summand(out_block.height(), out.cols);
      failures.run([&] { A.multiply(grid, op, alpha, gathered, T(0), partial); });
      out_ranks.reduce_scatter(partial, out_block, beta, out);
    }
    in_ranks.await_readers();
    out_ranks.await_readers();
  }

  /// Q ← A P, U ← Aᴴ R, V ← Aᴴ Q, in the same way.
  void multiply_once(LocalBlock<T>& A, const ProcessGrid& grid, const BlockFacts& facts,
                     const CutBlock& models, const CutBlock& data, MatrixView<const T> P,
                     MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> U, MatrixView<T> V) {
    normal_product_.run(A, grid, facts.sum_rows, models, data, P, R, Q, U, V);
  }

 private:
  std::unique_ptr<BlockExchange<T>> models_, data_;
  Buffer<T> gathered_;
  NormalProduct<T> normal_product_;
};

/// Those that all operators of T on this grid share which ask for them, while any has them. Null on idle
/// ranks.
template <Scalar T>
std::shared_ptr<StationaryProducts<T>> shared_products(const ProcessGrid& grid, ReductionOrder order) {
  if (!grid.is_member()) return nullptr;
  return detail::scratch_of(grid).template shared<StationaryProducts<T>>(
      static_cast<int>(order), [&] { return std::make_shared<StationaryProducts<T>>(grid, order); });
}

/// New ones, which only their owners share. Null on idle ranks.
template <Scalar T>
std::shared_ptr<StationaryProducts<T>> own_products(const ProcessGrid& grid, ReductionOrder order) {
  return grid.is_member() ? std::make_shared<StationaryProducts<T>>(grid, order) : nullptr;
}

}  // namespace gridlops
