// SPDX-License-Identifier: BSD-3-Clause
#include "ops/shared_blocks.hpp"

#include <algorithm>
#include <utility>

#include "base/message.hpp"
#include "gridlops/error.hpp"

namespace gridlops {

template <Scalar T>
SharedBlocks<T>::SharedBlocks(DistMatrix<T> A) : A_(std::move(A)) {}

template <Scalar T>
bool SharedBlocks<T>::is_shared(MatrixView<const T> X) const {
  return X.empty() || grid().backend()->shared_place(X.data).descriptor >= 0;
}

template <Scalar T>
MatrixView<T> SharedBlocks<T>::scratch(Buffer<T>& memory, Index rows, Index cols) const {
  constexpr Index least = (Index{1} << 16) / static_cast<Index>(sizeof(T));  // smaller ones are not shared
  memory.reserve(grid().backend(), std::max(rows * cols, least));
  return memory.matrix(rows, cols);
}

template <Scalar T>
PeerBoard& SharedBlocks<T>::board() {
  if (board_) return *board_;
  board_.emplace(grid().comm(), grid().backend());
  MatrixView<const T> mine = std::as_const(A_).local();
  if (!is_shared(mine)) {
    const MatrixView<T> copy = scratch(A_copy_, mine.rows, mine.cols);
    grid().backend()->template kernels<T>().copy(mine, copy);
    mine = copy;
  }
  const PeerBoard::Round round = board_->show(mine);
  const int size = grid().comm().size();
  for (int rank = 0; rank < size; ++rank)
    A_blocks_.push_back(rank == grid().comm().rank() ? mine : board_->template block_of<T>(rank));
  board_->done_reading();
  for (int rank = 0; rank < size; ++rank) board_->await_reader(rank, round);
  return *board_;
}

template <Scalar T>
MatrixView<const T> SharedBlocks<T>::shareable(MatrixView<const T> X) {
  if (is_shared(X)) return X;
  const MatrixView<T> copy = scratch(X_copy_, X.rows, X.cols);
  grid().backend()->template kernels<T>().copy(X, copy);
  return copy;
}

template class SharedBlocks<float>;
template class SharedBlocks<double>;
template class SharedBlocks<std::complex<float>>;
template class SharedBlocks<std::complex<double>>;

}  // namespace gridlops
