// SPDX-License-Identifier: BSD-3-Clause
#include "ops/stationary/block_exchange.hpp"

#include <utility>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "ops/panels/peer_blocks.hpp"

namespace gridlops {

template <Scalar T>
void MessageExchange<T>::reserve_gather(const CutBlock& block, Index cols, Buffer<T>& whole) {
  if (block.parts() == 1) return;
  travelling_.reserve(this->backend(), block.height() * cols);
  whole.reserve(this->backend(), block.height() * cols);
  gridlops::reserve_gather<T>(block, cols);
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
  gridlops::reserve_reduce_scatter<T>(block, order_, cols);
}

template <Scalar T>
MatrixView<const T> MessageExchange<T>::gather(MatrixView<const T> mine, const CutBlock& block,
                                               Buffer<T>& whole) {
  if (block.parts() == 1) return mine;
  const MatrixView<T> gathered = whole.matrix(block.height(), mine.cols);
  gather_parts<T>(this->kernels(), mine, block, gathered, travelling_.data());
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
  reduce_scatter_parts<T>(this->kernels(), partial, block, order_, own_.matrix(mine.rows, cols),
                          travelling_.data());
  this->kernels().add(T(1), own_.matrix(mine.rows, cols), beta, mine);
}

namespace {

/// Reads what the ranks of comm publish to each other, and sums in rank order.
template <Scalar T>
class PeerExchange final : public BlockExchange<T> {
 public:
  PeerExchange(Communicator& comm, std::shared_ptr<Backend> backend)
      : BlockExchange<T>(std::move(backend)),
        me_(comm.rank()),
        peers_(make_peer_blocks<T>(comm, this->backend())),
        memory_(static_cast<std::size_t>(comm.size())),
        parts_(memory_.size()) {}

  void connect() override { peers_->connect(); }

  void reserve_gather(const CutBlock& block, Index cols, Buffer<T>& whole) override {
    whole.reserve(this->backend(), block.height() * cols);
    peers_->reserve_copy({nullptr, block.part(me_).size, cols});
    for (int rank = 0; rank < block.parts(); ++rank) reserve_part(rank, block.part(rank).size * cols);
  }

  void reserve_sum(const CutBlock& block, Index cols) override {
    peers_->reserve_publishable(block.height(), cols);
    for (int rank = 0; rank < block.parts(); ++rank) reserve_part(rank, block.part(me_).size * cols);
  }

  MatrixView<const T> gather(MatrixView<const T> mine, const CutBlock& block, Buffer<T>& whole) override {
    const MatrixView<T> gathered = whole.matrix(block.height(), mine.cols);
    read_from_all(
        mine,
        [&](int rank) {
          return Range{0, block.part(rank).size};
        },
        [&](int rank, MatrixView<const T> part) {
          this->kernels().copy(part, gathered.row_block(block.part(rank)));
        });
    return gathered;
  }

  MatrixView<T> summand(Index rows, Index cols) override { return peers_->publishable(rows, cols); }

  void reduce_scatter(MatrixView<const T> partial, const CutBlock& block, T beta,
                      MatrixView<T> mine) override {
    read_from_all(
        partial, [&](int) { return block.part(me_); },
        [&](int rank, MatrixView<const T> part) {
          this->kernels().add(T(1), part, rank == 0 ? beta : T(1), mine);
        });
  }

  void await_readers() override { peers_->await_readers(); }

 private:
  void reserve_part(int rank, Index elements) {
    if (rank != me_) peers_->reserve_part(memory_[at(rank)], elements);
  }

  /// Calls use(rank, part) in rank order, where the part is rows(rank) of what that rank publishes. Each rank
  /// first reads from itself, so that the ranks do not all read from one rank at the same time.
  void read_from_all(MatrixView<const T> mine, auto&& rows, auto&& use) {
    peers_->publish(mine);
    for (std::size_t turn = 0; turn < parts_.size(); ++turn) {
      const std::size_t rank = (static_cast<std::size_t>(me_) + turn) % parts_.size();
      parts_[rank] = peers_->start_reading(static_cast<int>(rank), rows(static_cast<int>(rank)),
                                           {0, mine.cols}, memory_[rank]);
    }
    for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
      parts_[rank].arrival.wait();
      use(static_cast<int>(rank), parts_[rank].block);
    }
    peers_->done_reading();
  }

  int me_;
  std::unique_ptr<PeerBlocks<T>> peers_;
  std::vector<Buffer<T>> memory_;  // by rank, for parts that travel
  std::vector<PeerPart<T>> parts_;
};

}  // namespace

template <Scalar T>
std::unique_ptr<BlockExchange<T>> make_block_exchange(Communicator& comm, std::shared_ptr<Backend> backend,
                                                      ReductionOrder order) {
  if (comm.size() > 1 && comm.can_read_peers())
    return std::make_unique<PeerExchange<T>>(comm, std::move(backend));
  return std::make_unique<MessageExchange<T>>(std::move(backend), order);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                           \
  template class MessageExchange<T>;                                                                      \
  template std::unique_ptr<BlockExchange<T>> make_block_exchange(Communicator&, std::shared_ptr<Backend>, \
                                                                 ReductionOrder);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
