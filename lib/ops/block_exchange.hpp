// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "gridlops/linear_operator.hpp"

namespace gridlops {

/// One block of X or Y, which the ranks of `comm` hold in parts: those that follow first_part in `rows`.
struct CutBlock {
  Communicator& comm;
  const Partition& rows;
  int first_part;

  int parts() const { return comm.size(); }
  Range part(int k) const {
    return {rows.begin(first_part + k) - rows.begin(first_part), rows.size(first_part + k)};
  }
  Index height() const { return part(parts() - 1).end(); }
};

// Those of this rank, where the data are cut as range_nested() says and the models as domain_nested().
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

/// Puts the blocks together that one communicator's ranks hold in parts, and sums them.
template <Scalar T>
class BlockExchange {
 public:
  virtual ~BlockExchange() = default;
  BlockExchange(const BlockExchange&) = delete;
  BlockExchange& operator=(const BlockExchange&) = delete;

  /// Takes the memory for gathering, and for summing, blocks of so many columns (collective over the block's
  /// ranks, which all must come here, whatever has failed before).
  virtual void reserve_gather(const CutBlock& block, Index cols, Buffer<T>& whole) = 0;
  virtual void reserve_sum(const CutBlock& block, Index cols) = 0;

  /// All parts, one below the other: in `whole`, or, if there is but one, where that is (collective over the
  /// block's ranks).
  virtual MatrixView<const T> gather(MatrixView<const T> mine, const CutBlock& block, Buffer<T>& whole) = 0;

  /// Memory for this rank's `partial`.
  virtual MatrixView<T> summand(Index rows, Index cols) = 0;
  /// mine ← this rank's part of the sum of all ranks' `partial` + β mine (collective over the block's ranks).
  virtual void reduce_scatter(MatrixView<const T> partial, const CutBlock& block, T beta,
                              MatrixView<T> mine) = 0;

  /// From here on what this rank has given may change.
  virtual void await_readers() = 0;

 protected:
  explicit BlockExchange(std::shared_ptr<Backend> backend) : backend_(std::move(backend)) {}

  const std::shared_ptr<Backend>& backend() const { return backend_; }
  const Kernels<T>& kernels() const { return backend_->template kernels<T>(); }

 private:
  std::shared_ptr<Backend> backend_;
};

/// By messages, or by reading in rank order where the ranks of comm, which must outlive it, can do so.
template <Scalar T>
std::unique_ptr<BlockExchange<T>> make_block_exchange(Communicator& comm, std::shared_ptr<Backend> backend,
                                                      ReductionOrder order);

/// By one message each.
template <Scalar T>
class MessageExchange final : public BlockExchange<T> {
 public:
  MessageExchange(std::shared_ptr<Backend> backend, ReductionOrder order)
      : BlockExchange<T>(std::move(backend)), order_(order) {}

  ReductionOrder order() const { return order_; }

  void reserve_gather(const CutBlock& block, Index cols, Buffer<T>& whole) override;
  void reserve_sum(const CutBlock& block, Index cols) override;
  /// Without summand().
  void reserve_reduce_scatter(const CutBlock& block, Index cols);
  MatrixView<const T> gather(MatrixView<const T> mine, const CutBlock& block, Buffer<T>& whole) override;
  MatrixView<T> summand(Index rows, Index cols) override;
  void reduce_scatter(MatrixView<const T> partial, const CutBlock& block, T beta,
                      MatrixView<T> mine) override;
  void await_readers() override {}

 private:
  void set_counts(const CutBlock& block, Index cols);

  ReductionOrder order_;
  Buffer<T> own_, travelling_, summand_;
  std::vector<Index> counts_;
};

}  // namespace gridlops
