// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "comm/failure/failure.hpp"
#include "ops/panels/panels.hpp"
#include "ops/stationary/block_exchange.hpp"
#include "ops/stationary/local_block.hpp"

namespace gridlops {

/// Sums a block over ranks while computing it. The block is cut into chunks of rows, the same on all ranks,
/// and each chunk travels as soon as it is computed.
template <Scalar T>
class RowSum {
 public:
  /// Replaces each rank's Y by the sum. `memory` is for chunks that travel.
  RowSum(Communicator& comm, ReductionOrder order, const Kernels<T>& kernels, std::vector<Range> chunks,
         MatrixView<T> Y, MatrixView<T> memory)
      : comm_(comm), order_(order), kernels_(kernels), chunks_(std::move(chunks)), Y_(Y), memory_(memory) {}

  /// Call this once the first `computed` rows of Y are ready. Returns the number of rows summed. Waits for
  /// one chunk if too many are travelling, or if all rows are computed; otherwise does not wait. All ranks of
  /// comm must reach the last row, but may take different steps.
  Index advance(Index computed);

 private:
  /// The number of chunks that may travel while the next one is computed.
  static constexpr std::size_t most_travelling = 1;

  MatrixView<T> place_of(const Range& rows) const {
    return {memory_.data + rows.begin * Y_.cols, rows.size, Y_.cols};
  }
  void start_next();
  void finish_first();

  Communicator& comm_;
  ReductionOrder order_;
  const Kernels<T>& kernels_;
  std::vector<Range> chunks_;
  MatrixView<T> Y_, memory_;
  std::size_t finished_ = 0;
  std::deque<Request> travelling_;
};

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

/// Normal products with matrices that never move, one after the other, in the same buffers. run() computes
/// Q ← A P, U ← Aᴴ R, V ← Aᴴ Q by one multiply_once() of each rank's block. P is gathered in the grid column
/// and R in the grid row. Q is summed over the grid row, where blocks are read once a few rows at a time
/// while the next ones are multiplied. U and V are reduce-scattered together. It always sends messages, so
/// that no rank need wait for another at every chunk of rows.
template <Scalar T>
class NormalProduct {
 public:
  NormalProduct(std::shared_ptr<Backend> backend, ReductionOrder order)
      : backend_(std::move(backend)), order_(order), exchange_(backend_, order) {}

  /// Takes the memory for this many columns.
  void reserve(const CutBlock& models, const CutBlock& data, Index count) {
    exchange_.reserve_gather(models, count, models_);
    exchange_.reserve_gather(data, count, data_);
    partial_.reserve(backend_, models.height() * 2 * count);
    if (data.parts() > 1) {
      const Index size = data.height() * count;
      product_of_row_.reserve(backend_, size);
      travelling_.reserve(backend_, size);
      data.comm.reserve(CommOperation::all_reduce, {&size, 1}, sizeof(T), order_);
    }
    if (models.parts() > 1) {
      both_.reserve(backend_, models.part(models.comm.rank()).size * 2 * count);
      exchange_.reserve_reduce_scatter(models, 2 * count);
    }
  }

  /// Q is summed `sum_rows` rows at a time, or 0: all. If A throws, this goes on, and the FailureScope around
  /// it, which there must be, keeps the exception.
  void run(LocalBlock<T>& A, const ProcessGrid& grid, Index sum_rows, const CutBlock& models,
           const CutBlock& data, MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q,
           MatrixView<T> U, MatrixView<T> V) {
    FailureScope failures;
    const Kernels<T>& kernels = backend_->template kernels<T>();
    const Index count = P.cols;
    const MatrixView<const T> all_P = exchange_.gather(P, models, models_);
    const MatrixView<const T> all_R = exchange_.gather(R, data, data_);
    const MatrixView<T> partial = partial_.matrix(models.height(), 2 * count);
    if (data.parts() == 1) {
      failures.run([&] { A.multiply_once(grid, all_P, all_R, Q, partial, {}); });
    } else {
      const MatrixView<T> all_Q = product_of_row_.matrix(data.height(), count);
      // All ranks of a grid row have the same chunks, even those without columns of A.
      const Index chunk = sum_rows > 0 ? sum_rows : std::max<Index>(all_Q.rows, 1);
      RowSum<T> sum(data.comm, order_, kernels, cut_into_panels({{0, all_Q.rows}}, chunk), all_Q,
                    travelling_.matrix(all_Q.rows, count));
      Index complete = 0;
      const auto advance = [&](Index computed) { return complete = sum.advance(computed); };
      failures.run([&] { A.multiply_once(grid, all_P, all_R, all_Q, partial, advance); });
      while (complete < all_Q.rows) advance(all_Q.rows);  // if A threw, or is empty, other ranks wait here
      kernels.copy(std::as_const(all_Q).row_block(data.part(data.comm.rank())), Q);
    }
    MatrixView<T> both = partial;
    if (models.parts() > 1) {
      both = both_.matrix(U.rows, 2 * count);
      exchange_.reduce_scatter(partial, models, T(0), both);
    }
    kernels.copy(std::as_const(both).col_block({0, count}), U);
    kernels.copy(std::as_const(both).col_block({count, count}), V);
  }

 private:
  std::shared_ptr<Backend> backend_;
  ReductionOrder order_;
  MessageExchange<T> exchange_;
  Buffer<T> models_, data_, product_of_row_, travelling_, partial_, both_;
};

}  // namespace gridlops
