// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <utility>

#include "comm/peer_board.hpp"
#include "ops/peer_blocks.hpp"

namespace gridlops {

namespace {

/// Parts are read in place. Where the grid's backend does not share its memory, operands are copied to memory
/// that is shared: A once, X and Y in every application.
template <Scalar T>
class SharedBlocks final : public PeerBlocks<T> {
 public:
  SharedBlocks(std::shared_ptr<const ProcessGrid> grid, std::optional<DistMatrix<T>> A)
      : PeerBlocks<T>(std::move(grid), std::move(A)),
        shared_(this->backend()->shares_memory() ? this->backend() : make_shared_host_backend()) {}

  bool in_place() const override { return true; }
  MatrixView<T> showable(Index rows, Index cols) override { return scratch(showable_, rows, cols); }
  void done_reading() override { board_->done_reading(); }
  void end() override {
    for (const Round& round : rounds_)
      for (const int reader : round.readers) board_->await_reader(reader, round.number);
    rounds_.clear();
  }

 private:
  struct Round {
    PeerBoard::Round number;
    std::vector<int> readers;
  };

  void do_begin() override {
    if (!board_) board_.emplace(this->grid().comm(), shared_);
  }

  void share_A() override {
    const MatrixView<const T> mine = shareable(this->local_A(), A_copy_);
    const PeerBoard::Round round = board_->show(mine);
    const int size = this->grid().comm().size();
    for (int rank = 0; rank < size; ++rank)
      A_blocks_.push_back(rank == this->me() ? mine : board_->template block_of<T>(rank));
    board_->done_reading();
    for (int rank = 0; rank < size; ++rank) board_->await_reader(rank, round);
  }

  void do_show(MatrixView<const T> mine) override {
    rounds_.push_back({board_->show(shareable(mine, copy_)), this->line().ranks});
  }

  PeerPart<T> read_A(int rank, Range cols, Buffer<T>&) override {
    return counted(A_blocks_[static_cast<std::size_t>(rank)].col_block(cols));
  }
  PeerPart<T> read(std::size_t k, Range rows, Buffer<T>&) override {
    return counted(board_->template block_of<T>(this->line().ranks[k]).row_block(rows));
  }
  PeerPart<T> counted(MatrixView<const T> part) const {
    this->grid().comm().traffic_account()->bytes_read_from_peers +=
        part.size() * static_cast<Index>(sizeof(T));
    return {part, {}};
  }

  /// X, or a copy of it where X itself is not shared.
  MatrixView<const T> shareable(MatrixView<const T> X, Buffer<T>& memory) const {
    if (X.empty() || shared_->shared_place(X.data).descriptor >= 0) return X;
    const MatrixView<T> copy = scratch(memory, X.rows, X.cols);
    this->kernels().copy(X, copy);
    return copy;
  }
  MatrixView<T> scratch(Buffer<T>& memory, Index rows, Index cols) const {
    constexpr Index least = (Index{1} << 16) / static_cast<Index>(sizeof(T));  // smaller ones are not shared
    memory.reserve(shared_, std::max(rows * cols, least));
    return memory.matrix(rows, cols);
  }

  std::shared_ptr<Backend> shared_;
  std::optional<PeerBoard> board_;
  Buffer<T> A_copy_, copy_, showable_;
  std::vector<MatrixView<const T>> A_blocks_;  // by rank
  std::vector<Round> rounds_;                  // of this application
};

}  // namespace

template <Scalar T>
std::unique_ptr<PeerBlocks<T>> make_shared_blocks(std::shared_ptr<const ProcessGrid> grid,
                                                  std::optional<DistMatrix<T>> A) {
  return std::make_unique<SharedBlocks<T>>(std::move(grid), std::move(A));
}

template std::unique_ptr<PeerBlocks<float>> make_shared_blocks(std::shared_ptr<const ProcessGrid>,
                                                               std::optional<DistMatrix<float>>);
template std::unique_ptr<PeerBlocks<double>> make_shared_blocks(std::shared_ptr<const ProcessGrid>,
                                                                std::optional<DistMatrix<double>>);
template std::unique_ptr<PeerBlocks<std::complex<float>>> make_shared_blocks(
    std::shared_ptr<const ProcessGrid>, std::optional<DistMatrix<std::complex<float>>>);
template std::unique_ptr<PeerBlocks<std::complex<double>>> make_shared_blocks(
    std::shared_ptr<const ProcessGrid>, std::optional<DistMatrix<std::complex<double>>>);

}  // namespace gridlops
