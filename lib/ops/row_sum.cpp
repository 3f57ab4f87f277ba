// SPDX-License-Identifier: BSD-3-Clause
#include "ops/row_sum.hpp"

#include <utility>

#include "base/instantiate.hpp"

namespace gridlops {

template <Scalar T>
Index RowSum<T>::advance(Index computed) {
  const auto next = [this] { return finished_ + travelling_.size(); };
  while (next() < chunks_.size() && chunks_[next()].end() <= computed) start_next();
  while (travelling_.size() > most_travelling) finish_first();
  if (!travelling_.empty() && (next() == chunks_.size() || travelling_.front().test())) finish_first();
  return finished_ == 0 ? 0 : chunks_[finished_ - 1].end();
}

template <Scalar T>
void RowSum<T>::start_next() {
  const Range rows = chunks_[finished_ + travelling_.size()];
  const MatrixView<T> place = place_of(rows);
  kernels_.copy(std::as_const(Y_).row_block(rows), place);
  travelling_.push_back(comm_.start_all_reduce({place.data, place.size()}, ReduceOp::sum, order_));
}

template <Scalar T>
void RowSum<T>::finish_first() {
  travelling_.front().wait();
  travelling_.pop_front();
  const Range rows = chunks_[finished_++];
  kernels_.copy(place_of(rows), Y_.row_block(rows));
}

#define GRIDLOPS_INSTANTIATE(T) template class RowSum<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
