// SPDX-License-Identifier: BSD-3-Clause
#include "ops/panels/peer_blocks.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "comm/mpi/mpi_window.hpp"
#include "comm/mpi/shared_window.hpp"

namespace gridlops {

template <Scalar T>
void PeerBlocks<T>::publish(MatrixView<const T> mine) {
  mine_ = mine;
  do_publish(mine);
}

template <Scalar T>
void PeerBlocks<T>::publish_for_good(MatrixView<const T> mine) {
  mine_ = mine;
  do_publish_for_good(mine);
}

template <Scalar T>
PeerPart<T> PeerBlocks<T>::start_reading(int rank, Range rows, Range cols, Buffer<T>& memory) {
  if (rank == comm_.rank()) return {mine_.block(rows, cols), {}};
  return read(rank, rows, cols, memory);
}

namespace {

/// Reads parts in place. Copies blocks that are not in shared memory to shared memory.
template <Scalar T>
class SharedBlocks final : public PeerBlocks<T> {
 public:
  SharedBlocks(Communicator& comm, std::shared_ptr<Backend> backend)
      : PeerBlocks<T>(comm, std::move(backend)),
        shared_(this->backend()->shared_memory() != nullptr ? this->backend() : make_shared_host_backend()) {}

  void connect() override { window(); }
  void reserve_copy(MatrixView<const T> mine) override {
    const bool is_large = mine.size() * static_cast<Index>(sizeof(T)) >= least_bytes;
    const bool is_shared = mine.data == nullptr ? is_large && this->backend()->shared_memory() != nullptr
                                                : shared_address(*shared_, mine.data).is_shared();
    if (mine.empty()) return;
    if (!is_shared) {
      scratch(copy_, mine.rows, mine.cols);
    } else if (mine.data == nullptr) {
      scratch(copy_, 0, 0);  // fewer columns may lie in memory that is not shared
    }
  }
  void reserve_publishable(Index rows, Index cols) override { scratch(publishable_, rows, cols); }

  bool in_place() const override { return true; }
  void renew() override { blocks_.clear(); }
  MatrixView<T> publishable(Index rows, Index cols) override { return scratch(publishable_, rows, cols); }
  void done_reading() override { window().finish_reading(); }
  void await_readers() override {
    for (int rank = 0; rank < this->comm().size(); ++rank) window().wait_for_reader(rank, round_);
  }
  void await_every_reader() override { await_readers(); }

 private:
  SharedWindow& window() const { return shared_window_of(this->comm()); }

  void do_publish(MatrixView<const T> mine) override { round_ = window().publish(*shared_, shareable(mine)); }

  // In the first round all ranks learn where the others' blocks are. They start later rounds without waiting.
  void do_publish_for_good(MatrixView<const T> mine) override {
    if (!blocks_.empty()) {
      round_ = window().publish(*shared_, MatrixView<const T>{});
      return;
    }
    do_publish(mine);
    for (int rank = 0; rank < this->comm().size(); ++rank)
      blocks_.push_back(window().template block_of<T>(rank));
  }

  PeerPart<T> read(int rank, Range rows, Range cols, Buffer<T>&) override {
    const MatrixView<const T> block =
        blocks_.empty() ? window().template block_of<T>(rank) : blocks_[at(rank)];
    const MatrixView<const T> part = block.block(rows, cols);
    window().count_read(part.size() * static_cast<Index>(sizeof(T)));
    return {part, {}};
  }

  /// X, or a copy of it if X itself is not shared.
  MatrixView<const T> shareable(MatrixView<const T> X) {
    if (X.empty() || shared_address(*shared_, X.data).is_shared()) return X;
    const MatrixView<T> copy = scratch(copy_, X.rows, X.cols);
    this->kernels().copy(X, copy);
    return copy;
  }
  MatrixView<T> scratch(Buffer<T>& memory, Index rows, Index cols) const {
    memory.reserve(shared_, std::max(rows * cols, least_bytes / static_cast<Index>(sizeof(T))));
    return memory.matrix(rows, cols);
  }

  static constexpr Index least_bytes = Index{1} << 16;  // smaller blocks are not shared

  std::shared_ptr<Backend> shared_;
  SharedWindow::Round round_ = 0;
  Buffer<T> copy_, publishable_;
  std::vector<MatrixView<const T>> blocks_;  // published permanently, by rank
};

/// Gets parts from an MPI window. Ranks tell each other where their blocks are. A barrier confirms that all
/// have got what they wanted. It stays under way until the next one, or until the memory is to be written or
/// freed.
template <Scalar T>
class WindowBlocks final : public PeerBlocks<T> {
 public:
  WindowBlocks(Communicator& comm, std::shared_ptr<Backend> backend)
      : PeerBlocks<T>(comm, std::move(backend)) {}
  ~WindowBlocks() override {
    readers_done_ = Request();
    for (const void* memory : exposed_) window().detach(memory);
  }

  void connect() override { window(); }
  // A block with an address is published permanently from there, unless the window cannot hold it.
  void reserve_copy(MatrixView<const T> mine) override {
    if (mine.data != nullptr) return;
    readers_done_.wait();
    scratch(copy_, mine.rows, mine.cols);
  }
  void reserve_publishable(Index rows, Index cols) override {
    readers_done_.wait();
    scratch(publishable_, rows, cols);
  }

  bool in_place() const override { return false; }
  void renew() override { blocks_.clear(); }
  MatrixView<T> publishable(Index rows, Index cols) override {
    readers_done_.wait();
    return scratch(publishable_, rows, cols);
  }
  void done_reading() override { readers_done_ = this->comm().start_barrier(); }
  // The rank publishes publishable() memory, or a copy.
  void await_readers() override {}
  void await_every_reader() override { readers_done_.wait(); }

 private:
  RmaWindow& window() const { return rma_window_of(this->comm()); }

  void do_publish(MatrixView<const T> mine) override {
    readers_done_.wait();
    round_ = window().begin_round();
    if (!mine.empty() && mine.data == publishable_.data()) {
      expose(publishable_.data(), bytes_of(publishable_));
    } else if (!mine.empty()) {
      mine = exposed_copy(mine);
    }
    tell(mine);
  }

  // The others must learn of the block again only if the window has released it since. This is the same on
  // all ranks.
  void do_publish_for_good(MatrixView<const T> mine) override {
    const bool is_known = !blocks_.empty() && window().holds(round_);
    round_ = window().begin_round();
    const Index bytes = mine.empty() ? 0 : ((mine.cols - 1) * mine.stride + mine.rows) * Index{sizeof(T)};
    const bool is_there = mine.empty() || (copy_.size() == 0 && expose(mine.data, bytes));
    if (is_known) {
      if (!is_there) expose(copy_.data(), bytes_of(copy_));
      return;
    }
    readers_done_.wait();
    tell(is_there ? mine : exposed_copy(mine));
  }

  PeerPart<T> read(int rank, Range rows, Range cols, Buffer<T>& memory) override {
    memory.reserve(this->backend(), rows.size * cols.size);
    const MatrixView<T> block = memory.matrix(rows.size, cols.size);
    if (block.empty()) return {block, {}};
    const RmaWindow::RemoteBlock& theirs = blocks_[at(rank)];
    const Index offset = rows.begin + cols.begin * theirs.stride;
    return {block, window().start_get(rank, theirs.address + offset * Index{sizeof(T)}, rows.size, cols.size,
                                      theirs.stride, {block.data, block.size()})};
  }

  void tell(MatrixView<const T> mine) {
    blocks_ = window().publish(mine.empty() ? nullptr : mine.data, mine.stride);
  }

  MatrixView<const T> exposed_copy(MatrixView<const T> X) {
    const MatrixView<T> copy = scratch(copy_, X.rows, X.cols);
    this->kernels().copy(X, copy);
    expose(copy_.data(), bytes_of(copy_));
    return copy;
  }
  MatrixView<T> scratch(Buffer<T>& memory, Index rows, Index cols) {
    if (rows * cols > memory.size()) {
      if (std::erase(exposed_, memory.data()) > 0) window().detach(memory.data());
      memory.reserve(this->backend(), rows * cols);
    }
    return memory.matrix(rows, cols);
  }
  bool expose(const void* memory, Index bytes) {
    const bool is_new = std::find(exposed_.begin(), exposed_.end(), memory) == exposed_.end();
    const bool can_be = window().attach(memory, bytes, is_new);
    if (can_be && is_new) exposed_.push_back(memory);
    return can_be;
  }
  static Index bytes_of(const Buffer<T>& memory) { return memory.size() * Index{sizeof(T)}; }

  Buffer<T> copy_, publishable_;
  std::vector<const void*> exposed_;
  RmaWindow::Round round_ = 0;
  std::vector<RmaWindow::RemoteBlock> blocks_;  // by rank
  Request readers_done_;
};

}  // namespace

template <Scalar T>
std::unique_ptr<PeerBlocks<T>> make_peer_blocks(Communicator& comm, std::shared_ptr<Backend> backend) {
  if (comm.peer_access() == PeerAccess::in_place)
    return std::make_unique<SharedBlocks<T>>(comm, std::move(backend));
  return std::make_unique<WindowBlocks<T>>(comm, std::move(backend));
}

#define GRIDLOPS_INSTANTIATE(T) \
  template class PeerBlocks<T>; \
  template std::unique_ptr<PeerBlocks<T>> make_peer_blocks(Communicator&, std::shared_ptr<Backend>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
