// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "ops/block_exchange.hpp"
#include "ops/peer_blocks.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class PeerExchange final : public BlockExchange<T> {
 public:
  PeerExchange(Communicator& comm, std::shared_ptr<Backend> backend)
      : BlockExchange<T>(std::move(backend)),
        me_(comm.rank()),
        peers_(make_peer_blocks<T>(comm, this->backend())),
        memory_(static_cast<std::size_t>(comm.size())),
        parts_(memory_.size()) {}

  void reserve_gather(const CutBlock& block, Index cols, Buffer<T>& whole) override {
    peers_->connect();
    whole.reserve(this->backend(), block.height() * cols);
    peers_->reserve_copy({nullptr, block.part(me_).size, cols});
    for (int rank = 0; rank < block.parts(); ++rank) reserve_part(rank, block.part(rank).size * cols);
  }

  void reserve_sum(const CutBlock& block, Index cols) override {
    peers_->connect();
    peers_->reserve_showable(block.height(), cols);
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

  MatrixView<T> summand(Index rows, Index cols) override { return peers_->showable(rows, cols); }

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

  /// use(rank, part), in rank order, with the rows(rank) of what each rank shows. Each begins to read with
  /// its own, so that not all read from one rank at a time.
  void read_from_all(MatrixView<const T> mine, auto&& rows, auto&& use) {
    peers_->show(mine);
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
std::unique_ptr<BlockExchange<T>> make_peer_exchange(Communicator& comm, std::shared_ptr<Backend> backend) {
  return std::make_unique<PeerExchange<T>>(comm, std::move(backend));
}

#define GRIDLOPS_INSTANTIATE(T) \
  template std::unique_ptr<BlockExchange<T>> make_peer_exchange(Communicator&, std::shared_ptr<Backend>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
