// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "comm/mpi_window.hpp"
#include "ops/peer_blocks.hpp"

namespace gridlops {

namespace {

/// Parts are got from a window of MPI. Ranks tell each other where their blocks are; that all have got what
/// they wanted is known from a barrier, which is under way until the next one, or until the memory is to be
/// written or given back.
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
  // A block with a place is shown for good, from where it is unless the window cannot have that.
  void reserve_copy(MatrixView<const T> mine) override {
    if (mine.data != nullptr) return;
    readers_done_.wait();
    scratch(copy_, mine.rows, mine.cols);
  }
  void reserve_showable(Index rows, Index cols) override {
    readers_done_.wait();
    scratch(showable_, rows, cols);
  }

  bool in_place() const override { return false; }
  MatrixView<T> showable(Index rows, Index cols) override {
    readers_done_.wait();
    return scratch(showable_, rows, cols);
  }
  void done_reading() override { readers_done_ = this->comm().start_barrier(); }
  // What is shown is showable() memory, or a copy; what is shown for good stays.
  void await_readers() override {}

 private:
  RmaWindow& window() const { return rma_window_of(this->comm()); }

  void do_show(MatrixView<const T> mine) override {
    readers_done_.wait();
    round_ = window().begin_round();
    if (!mine.empty() && mine.data == showable_.data()) {
      expose(showable_.data(), bytes_of(showable_));
    } else if (!mine.empty()) {
      mine = exposed_copy(mine);
    }
    tell(mine);
  }

  // The others learn of it again only where the window has let it go since, which is so on all ranks alike.
  void do_show_for_good(MatrixView<const T> mine) override {
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

  Buffer<T> copy_, showable_;
  std::vector<const void*> exposed_;
  RmaWindow::Round round_ = 0;
  std::vector<RmaWindow::RemoteBlock> blocks_;  // by rank
  Request readers_done_;
};

}  // namespace

template <Scalar T>
std::unique_ptr<PeerBlocks<T>> make_window_blocks(Communicator& comm, std::shared_ptr<Backend> backend) {
  return std::make_unique<WindowBlocks<T>>(comm, std::move(backend));
}

#define GRIDLOPS_INSTANTIATE(T) \
  template std::unique_ptr<PeerBlocks<T>> make_window_blocks(Communicator&, std::shared_ptr<Backend>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
