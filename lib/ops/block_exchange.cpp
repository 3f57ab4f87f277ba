// SPDX-License-Identifier: BSD-3-Clause
#include "ops/block_exchange.hpp"

#include "ops/stacked_parts.hpp"

namespace gridlops {

template <Scalar T>
MatrixView<const T> BlockExchange<T>::gather(MatrixView<const T> mine, const CutBlock& block,
                                             Buffer<T>& whole) {
  if (block.parts() == 1) return mine;
  const Index cols = mine.cols;
  set_counts(block, cols);
  own_.reserve(backend_, mine.size());
  travelling_.reserve(backend_, block.height() * cols);
  whole.reserve(backend_, block.height() * cols);
  kernels().copy(mine, own_.matrix(mine.rows, cols));
  block.comm.all_gather_v({own_.data(), mine.size()}, {travelling_.data(), block.height() * cols}, counts_);
  const MatrixView<T> gathered = whole.matrix(block.height(), cols);
  unstack<T>(kernels(), travelling_.data(), counts_, gathered);
  return gathered;
}

template <Scalar T>
void BlockExchange<T>::reduce_scatter(MatrixView<const T> partial, const CutBlock& block, T beta,
                                      MatrixView<T> mine) {
  const Index cols = mine.cols;
  set_counts(block, cols);
  own_.reserve(backend_, mine.size());
  travelling_.reserve(backend_, partial.size());
  stack<T>(kernels(), partial, counts_, travelling_.data());
  block.comm.reduce_scatter_v({travelling_.data(), partial.size()}, counts_, {own_.data(), mine.size()},
                              ReduceOp::sum, order_);
  kernels().add(T(1), own_.matrix(mine.rows, cols), beta, mine);
}

template <Scalar T>
void BlockExchange<T>::set_counts(const CutBlock& block, Index cols) {
  counts_.resize(static_cast<std::size_t>(block.parts()));
  for (int k = 0; k < block.parts(); ++k) counts_[static_cast<std::size_t>(k)] = block.part(k).size * cols;
}

template class BlockExchange<float>;
template class BlockExchange<double>;
template class BlockExchange<std::complex<float>>;
template class BlockExchange<std::complex<double>>;

}  // namespace gridlops
