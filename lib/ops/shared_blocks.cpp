// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "comm/shared_window.hpp"
#include "ops/peer_blocks.hpp"

namespace gridlops {

namespace {

/// Parts are read in place. What lies in memory that is not shared is copied to some that is.
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
  void reserve_showable(Index rows, Index cols) override { scratch(showable_, rows, cols); }

  bool in_place() const override { return true; }
  MatrixView<T> showable(Index rows, Index cols) override { return scratch(showable_, rows, cols); }
  void done_reading() override { window().finish_reading(); }
  void await_readers() override {
    for (int rank = 0; rank < this->comm().size(); ++rank) window().wait_for_reader(rank, round_);
  }

 private:
  SharedWindow& window() const { return shared_window_of(this->comm()); }

  void do_show(MatrixView<const T> mine) override { round_ = window().publish(*shared_, shareable(mine)); }

  // All take the others' places from the first round, and wait for nobody when they begin later ones.
  void do_show_for_good(MatrixView<const T> mine) override {
    if (!blocks_.empty()) {
      round_ = window().publish(*shared_, MatrixView<const T>{});
      return;
    }
    do_show(mine);
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

  /// X, or a copy of it where X itself is not shared.
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

  static constexpr Index least_bytes = Index{1} << 16;  // smaller ones are not shared

  std::shared_ptr<Backend> shared_;
  SharedWindow::Round round_ = 0;
  Buffer<T> copy_, showable_;
  std::vector<MatrixView<const T>> blocks_;  // shown for good, by rank
};

}  // namespace

template <Scalar T>
std::unique_ptr<PeerBlocks<T>> make_shared_blocks(Communicator& comm, std::shared_ptr<Backend> backend) {
  return std::make_unique<SharedBlocks<T>>(comm, std::move(backend));
}

#define GRIDLOPS_INSTANTIATE(T) \
  template std::unique_ptr<PeerBlocks<T>> make_shared_blocks(Communicator&, std::shared_ptr<Backend>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
