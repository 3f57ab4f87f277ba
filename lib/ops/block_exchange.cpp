// SPDX-License-Identifier: BSD-3-Clause
#include "ops/block_exchange.hpp"

#include <utility>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "ops/stacked_parts.hpp"

namespace gridlops {

template <Scalar T>
void MessageExchange<T>::reserve_gather(const CutBlock& block, Index cols, Buffer<T>& whole) {
  if (block.parts() == 1) return;
  own_.reserve(this->backend(), block.part(block.comm.rank()).size * cols);
  travelling_.reserve(this->backend(), block.height() * cols);
  whole.reserve(this->backend(), block.height() * cols);
}

template <Scalar T>
void MessageExchange<T>::reserve_sum(const CutBlock& block, Index cols) {
  if (block.parts() == 1) return;
  summand_.reserve(this->backend(), block.height() * cols);
  reserve_reduce_scatter(block, cols);
}

template <Scalar T>
void MessageExchange<T>::reserve_reduce_scatter(const CutBlock& block, Index cols) {
  own_.reserve(this->backend(), block.part(block.comm.rank()).size * cols);
  travelling_.reserve(this->backend(), block.height() * cols);
}

template <Scalar T>
MatrixView<const T> MessageExchange<T>::gather(MatrixView<const T> mine, const CutBlock& block,
                                               Buffer<T>& whole) {
  if (block.parts() == 1) return mine;
  const Index cols = mine.cols;
  set_counts(block, cols);
  this->kernels().copy(mine, own_.matrix(mine.rows, cols));
  block.comm.all_gather_v({own_.data(), mine.size()}, {travelling_.data(), block.height() * cols}, counts_);
  const MatrixView<T> gathered = whole.matrix(block.height(), cols);
  unstack<T>(this->kernels(), travelling_.data(), counts_, gathered);
  return gathered;
}

template <Scalar T>
MatrixView<T> MessageExchange<T>::summand(Index rows, Index cols) {
  return summand_.matrix(rows, cols);
}

template <Scalar T>
void MessageExchange<T>::reduce_scatter(MatrixView<const T> partial, const CutBlock& block, T beta,
                                        MatrixView<T> mine) {
  const Index cols = mine.cols;
  set_counts(block, cols);
  stack<T>(this->kernels(), partial, counts_, travelling_.data());
  block.comm.reduce_scatter_v({travelling_.data(), partial.size()}, counts_, {own_.data(), mine.size()},
                              ReduceOp::sum, order_);
  this->kernels().add(T(1), own_.matrix(mine.rows, cols), beta, mine);
}

template <Scalar T>
void MessageExchange<T>::set_counts(const CutBlock& block, Index cols) {
  counts_.resize(static_cast<std::size_t>(block.parts()));
  for (int k = 0; k < block.parts(); ++k) counts_[at(k)] = block.part(k).size * cols;
}

template <Scalar T>
std::unique_ptr<BlockExchange<T>> make_block_exchange(Communicator& comm, std::shared_ptr<Backend> backend,
                                                      ReductionOrder order) {
  if (comm.size() > 1 && comm.can_read_peers()) return make_peer_exchange<T>(comm, std::move(backend));
  return std::make_unique<MessageExchange<T>>(std::move(backend), order);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                           \
  template class MessageExchange<T>;                                                                      \
  template std::unique_ptr<BlockExchange<T>> make_block_exchange(Communicator&, std::shared_ptr<Backend>, \
                                                                 ReductionOrder);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
