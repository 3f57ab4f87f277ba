// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <utility>
#include <vector>

#include "comm/peer_window.hpp"
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
    for (const void* memory : exposed_) window().hide(memory);
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
  // What is shown is showable() memory, or a copy.
  void await_readers() override {}

 private:
  struct Place {
    Index address, stride;
  };

  PeerWindow& window() const { return window_of(this->comm()); }

  void do_show(MatrixView<const T> mine) override {
    window();
    readers_done_.wait();
    tell(mine.empty() || mine.data == showable_.data() ? mine : copied(mine));
  }

  void do_show_for_good(MatrixView<const T> mine) override {
    window();
    tell(mine.empty() || expose(mine.data, bytes_of(mine)) ? mine : copied(mine));
  }

  PeerPart<T> read(int rank, Range rows, Range cols, Buffer<T>& memory) override {
    memory.reserve(this->backend(), rows.size * cols.size);
    const MatrixView<T> block = memory.matrix(rows.size, cols.size);
    if (block.empty()) return {block, {}};
    const Place& place = places_[static_cast<std::size_t>(rank)];
    const Index offset = rows.begin + cols.begin * place.stride;
    return {block, window().start_get(rank, place.address + offset * static_cast<Index>(sizeof(T)), rows.size,
                                      cols.size, place.stride, {block.data, block.size()})};
  }

  /// Where the ranks' blocks are; what they have written is there.
  void tell(MatrixView<const T> mine) {
    window().publish();
    std::array<Index, 2> own{mine.empty() ? 0 : window().address_of(mine.data), mine.stride};
    std::vector<Index> all(own.size() * static_cast<std::size_t>(this->comm().size()));
    this->comm().all_gather(own, all);
    places_.clear();
    for (std::size_t k = 0; k < all.size(); k += own.size()) places_.push_back({all[k], all[k + 1]});
  }

  MatrixView<const T> copied(MatrixView<const T> X) {
    const MatrixView<T> copy = scratch(copy_, X.rows, X.cols);
    this->kernels().copy(X, copy);
    return copy;
  }
  MatrixView<T> scratch(Buffer<T>& memory, Index rows, Index cols) {
    if (rows * cols > memory.size()) {
      if (std::erase(exposed_, memory.data()) > 0) window().hide(memory.data());
      memory.reserve(this->backend(), rows * cols);
      expose(memory.data(), memory.size() * static_cast<Index>(sizeof(T)));
    }
    return memory.matrix(rows, cols);
  }
  bool expose(const void* memory, Index bytes) {
    const bool can_be = window().expose(memory, bytes);
    if (can_be) exposed_.push_back(memory);
    return can_be;
  }
  static Index bytes_of(MatrixView<const T> X) {
    return ((X.cols - 1) * X.stride + X.rows) * static_cast<Index>(sizeof(T));
  }

  Buffer<T> copy_, showable_;
  std::vector<const void*> exposed_;
  std::vector<Place> places_;  // by rank
  Request readers_done_;
};

}  // namespace

template <Scalar T>
std::unique_ptr<PeerBlocks<T>> make_window_blocks(Communicator& comm, std::shared_ptr<Backend> backend) {
  return std::make_unique<WindowBlocks<T>>(comm, std::move(backend));
}

template std::unique_ptr<PeerBlocks<float>> make_window_blocks(Communicator&, std::shared_ptr<Backend>);
template std::unique_ptr<PeerBlocks<double>> make_window_blocks(Communicator&, std::shared_ptr<Backend>);
template std::unique_ptr<PeerBlocks<std::complex<float>>> make_window_blocks(Communicator&,
                                                                             std::shared_ptr<Backend>);
template std::unique_ptr<PeerBlocks<std::complex<double>>> make_window_blocks(Communicator&,
                                                                              std::shared_ptr<Backend>);

}  // namespace gridlops
