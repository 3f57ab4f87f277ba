// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

/// Puts such blocks together, and sums them, by one message each.
template <Scalar T>
class BlockExchange {
 public:
  BlockExchange(std::shared_ptr<Backend> backend, ReductionOrder order)
      : backend_(std::move(backend)), order_(order) {}

  const std::shared_ptr<Backend>& backend() const { return backend_; }
  ReductionOrder order() const { return order_; }

  /// All parts, one below the other: in `whole`, or, if there is but one, where that is (collective over the
  /// block's ranks).
  MatrixView<const T> gather(MatrixView<const T> mine, const CutBlock& block, Buffer<T>& whole);

  /// mine ← this rank's part of the sum of all ranks' `partial` + β mine (collective over the block's ranks).
  void reduce_scatter(MatrixView<const T> partial, const CutBlock& block, T beta, MatrixView<T> mine);

 private:
  void set_counts(const CutBlock& block, Index cols);
  const Kernels<T>& kernels() const { return backend_->template kernels<T>(); }

  std::shared_ptr<Backend> backend_;
  ReductionOrder order_;
  Buffer<T> own_, travelling_;
  std::vector<Index> counts_;
};

}  // namespace gridlops
