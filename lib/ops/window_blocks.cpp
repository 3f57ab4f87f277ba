// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <utility>

#include "comm/peer_window.hpp"
#include "ops/peer_blocks.hpp"

namespace gridlops {

namespace {

/// Parts are got from a window of MPI. Operands are shown by telling the line where they are; that all have
/// got what they wanted is known from a barrier, which is under way until the next application begins.
template <Scalar T>
class WindowBlocks final : public PeerBlocks<T> {
 public:
  WindowBlocks(std::shared_ptr<const ProcessGrid> grid, std::optional<DistMatrix<T>> A)
      : PeerBlocks<T>(std::move(grid), std::move(A)) {}
  ~WindowBlocks() override {
    readers_done_ = Request();
    for (const void* memory : exposed_) window().hide(memory);
  }

  bool in_place() const override { return false; }
  MatrixView<T> showable(Index rows, Index cols) override { return scratch(showable_, rows, cols); }
  void done_reading() override {}
  void end() override { readers_done_ = this->grid().comm().start_barrier(); }

 private:
  struct Place {
    Index address, stride;
  };

  PeerWindow& window() const { return window_of(this->grid().comm()); }

  void do_begin() override {
    window();
    readers_done_.wait();
  }

  void share_A() override {
    MatrixView<const T> mine = this->local_A();
    if (!mine.empty() && !expose(mine.data, bytes_of(mine))) mine = copied(mine, A_copy_);
    A_places_ = places(this->grid().comm(), mine);
  }

  void do_show(MatrixView<const T> mine) override {
    const bool is_exposed = mine.empty() || mine.data == showable_.data();
    places_ = places(*this->line().comm, is_exposed ? mine : copied(mine, copy_));
  }

  PeerPart<T> read_A(int rank, Range cols, Buffer<T>& memory) override {
    const Place& place = A_places_[static_cast<std::size_t>(rank)];
    const Index rows = this->A()
                           .layout()
                           .row_range(this->grid(), rank / this->grid().cols(), rank % this->grid().cols())
                           .size;
    return get(rank, place, cols.begin * place.stride, rows, cols.size, memory);
  }
  PeerPart<T> read(std::size_t k, Range rows, Buffer<T>& memory) override {
    return get(this->line().ranks[k], places_[k], rows.begin, rows.size, this->shown_cols(), memory);
  }

  PeerPart<T> get(int rank, const Place& place, Index offset, Index rows, Index cols,
                  Buffer<T>& memory) const {
    memory.reserve(this->backend(), rows * cols);
    const MatrixView<T> block = memory.matrix(rows, cols);
    if (block.empty()) return {block, {}};
    return {block, window().start_get(rank, place.address + offset * static_cast<Index>(sizeof(T)), rows,
                                      cols, place.stride, {block.data, block.size()})};
  }

  /// Where the ranks' blocks are (collective over comm); what they have written is there.
  std::vector<Place> places(Communicator& comm, MatrixView<const T> mine) const {
    window().publish();
    std::array<Index, 2> own{mine.empty() ? 0 : window().address_of(mine.data), mine.stride};
    std::vector<Index> all(own.size() * static_cast<std::size_t>(comm.size()));
    comm.all_gather(own, all);
    std::vector<Place> of_ranks;
    for (std::size_t k = 0; k < all.size(); k += own.size()) of_ranks.push_back({all[k], all[k + 1]});
    return of_ranks;
  }

  MatrixView<const T> copied(MatrixView<const T> X, Buffer<T>& memory) {
    const MatrixView<T> copy = scratch(memory, X.rows, X.cols);
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

  Buffer<T> A_copy_, copy_, showable_;
  std::vector<const void*> exposed_;
  std::vector<Place> A_places_, places_;  // by rank of the grid, of the line
  Request readers_done_;
};

}  // namespace

template <Scalar T>
std::unique_ptr<PeerBlocks<T>> make_window_blocks(std::shared_ptr<const ProcessGrid> grid,
                                                  std::optional<DistMatrix<T>> A) {
  return std::make_unique<WindowBlocks<T>>(std::move(grid), std::move(A));
}

template std::unique_ptr<PeerBlocks<float>> make_window_blocks(std::shared_ptr<const ProcessGrid>,
                                                               std::optional<DistMatrix<float>>);
template std::unique_ptr<PeerBlocks<double>> make_window_blocks(std::shared_ptr<const ProcessGrid>,
                                                                std::optional<DistMatrix<double>>);
template std::unique_ptr<PeerBlocks<std::complex<float>>> make_window_blocks(
    std::shared_ptr<const ProcessGrid>, std::optional<DistMatrix<std::complex<float>>>);
template std::unique_ptr<PeerBlocks<std::complex<double>>> make_window_blocks(
    std::shared_ptr<const ProcessGrid>, std::optional<DistMatrix<std::complex<double>>>);

}  // namespace gridlops
