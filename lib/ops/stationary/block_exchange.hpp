// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "gridlops/ops/linear_operator.hpp"
#include "ops/operator/cut_block.hpp"

namespace gridlops {

// The blocks of which this rank has a part. range_nested() cuts the data, and domain_nested() the models.
template <Scalar T>
CutBlock block_of_models(const LinearOperator<T>& A) {
  const ProcessGrid& grid = *A.domain().grid;
  return {grid.col_comm(), A.domain().rows.partition, grid.my_col() * grid.rows()};
}
template <Scalar T>
CutBlock block_of_data(const LinearOperator<T>& A) {
  const ProcessGrid& grid = *A.range().grid;
  return {grid.row_comm(), A.range().rows.partition, grid.my_row() * grid.cols()};
}

/// Gathers blocks whose parts are on the ranks of a communicator, and sums blocks over these ranks.
template <Scalar T>
class BlockExchange {
 public:
  virtual ~BlockExchange() = default;
  BlockExchange(const BlockExchange&) = delete;
  BlockExchange& operator=(const BlockExchange&) = delete;

  /// Sets up exchanges (collective over the ranks; if one throws, all throw that error).
  virtual void connect() {}
  /// These take the memory for gathering and for summing blocks with this many columns. They send nothing.
  virtual void reserve_gather(const CutBlock& block, Index cols, Buffer<T>& whole) = 0;
  virtual void reserve_sum(const CutBlock& block, Index cols) = 0;

  /// Returns the complete block (collective over the block's ranks). It lies in `whole`, or, if it has only
  /// one part, where that part lies.
  virtual MatrixView<const T> gather(MatrixView<const T> mine, const CutBlock& block, Buffer<T>& whole) = 0;

  /// Returns memory for this rank's `partial`.
  virtual MatrixView<T> summand(Index rows, Index cols) = 0;
  /// mine ← this rank's part of the sum of all ranks' `partial` + β mine (collective over the block's ranks).
  virtual void reduce_scatter(MatrixView<const T> partial, const CutBlock& block, T beta,
                              MatrixView<T> mine) = 0;

  /// Waits until no rank reads this rank's contribution any more. After that it may change.
  virtual void await_readers() = 0;

 protected:
  explicit BlockExchange(std::shared_ptr<Backend> backend) : backend_(std::move(backend)) {}

  const std::shared_ptr<Backend>& backend() const { return backend_; }
  const Kernels<T>& kernels() const { return backend_->template kernels<T>(); }

 private:
  std::shared_ptr<Backend> backend_;
};

/// Makes an exchange that reads the other ranks' memory if the ranks of comm can do that, and otherwise one
/// that sends messages. Exchanges that read sum in rank order. comm must outlive the exchange.
template <Scalar T>
std::unique_ptr<BlockExchange<T>> make_block_exchange(Communicator& comm, std::shared_ptr<Backend> backend,
                                                      ReductionOrder order);

/// Gathers by one all_gather, and sums by one reduce_scatter.
template <Scalar T>
class MessageExchange final : public BlockExchange<T> {
 public:
  MessageExchange(std::shared_ptr<Backend> backend, ReductionOrder order)
      : BlockExchange<T>(std::move(backend)), order_(order) {}

  ReductionOrder order() const { return order_; }

  void reserve_gather(const CutBlock& block, Index cols, Buffer<T>& whole) override;
  void reserve_sum(const CutBlock& block, Index cols) override;
  /// As reserve_sum(), for a `partial` that does not lie in summand().
  void reserve_reduce_scatter(const CutBlock& block, Index cols);
  MatrixView<const T> gather(MatrixView<const T> mine, const CutBlock& block, Buffer<T>& whole) override;
  MatrixView<T> summand(Index rows, Index cols) override;
  void reduce_scatter(MatrixView<const T> partial, const CutBlock& block, T beta,
                      MatrixView<T> mine) override;
  void await_readers() override {}

 private:
  ReductionOrder order_;
  Buffer<T> own_, travelling_, summand_;
};

}  // namespace gridlops
