// SPDX-License-Identifier: BSD-3-Clause
#include "ops/algorithms.hpp"
#include "ops/one_pass.hpp"
#include "ops/one_pass_block.hpp"
#include "ops/peer_blocks.hpp"

namespace gridlops {

namespace {

/// stationary-a where ranks read each other's blocks: the parts of X's block are read from the ranks that
/// hold them, A's block is multiplied once, and each rank sums its part of Y from the others' products, in
/// rank order. The normal product sends messages: no rank may wait for another at every panel.
template <Scalar T>
class PeerStationaryA final : public LinearOperator<T>, public OnePass<T> {
 public:
  PeerStationaryA(DistMatrix<T> A, const MatrixMultOptions& options)
      : LinearOperator<T>(range_nested(A), domain_nested(A)),
        peers_(make_peer_blocks<T>(A.grid(), std::nullopt)),
        block_(std::move(A), options) {}

  void prepare() const override { block_.block().store_in_panels(); }
  void pass_once(const DistMatrix<T>& P, const DistMatrix<T>& R, DistMatrix<T>& Q, DistMatrix<T>& U,
                 DistMatrix<T>& V) const override {
    block_.pass_once(block_of_models(*this), block_of_data(*this), P, R, Q, U, V);
  }

 private:
  void do_apply(T alpha, const DistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    run(Op::none, alpha, X.local(), block_of_models(*this), my_grid_col(grid()), beta, Y.local(),
        block_of_data(*this), my_grid_row(grid()));
  }
  void do_apply_adjoint(T alpha, const DistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    run(Op::adjoint, alpha, Y.local(), block_of_data(*this), my_grid_row(grid()), beta, X.local(),
        block_of_models(*this), my_grid_col(grid()));
  }

  void run(Op op, T alpha, MatrixView<const T> in, const CutBlock& in_block, const GridLine& in_line, T beta,
           MatrixView<T> out, const CutBlock& out_block, const GridLine& out_line) const {
    peers_->begin();
    const MatrixView<const T> gathered = gather(in, in_block, in_line);
    if (out_block.parts() == 1) {
      block_.block().multiply(op, alpha, gathered, beta, out);
    } else {
      const MatrixView<T> partial = peers_->showable(out_block.height(), out.cols);
      block_.block().multiply(op, alpha, gathered, T(0), partial);
      sum(partial, out_block, out_line, beta, out);
    }
    peers_->end();
  }

  /// All parts of a block, one below the other.
  MatrixView<const T> gather(MatrixView<const T> mine, const CutBlock& block, const GridLine& line) const {
    if (block.parts() == 1) return mine;
    gathered_.reserve(grid().backend(), block.height() * mine.cols);
    const MatrixView<T> whole = gathered_.matrix(block.height(), mine.cols);
    read_from_all(
        line, mine,
        [&](int k) {
          return Range{0, block.part(k).size};
        },
        [&](int k, MatrixView<const T> part) { kernels().copy(part, whole.row_block(block.part(k))); });
    return whole;
  }

  /// out ← this rank's part of the sum of all partial products + β out.
  void sum(MatrixView<const T> partial, const CutBlock& block, const GridLine& line, T beta,
           MatrixView<T> out) const {
    const Range mine = block.part(static_cast<int>(line.mine));
    read_from_all(
        line, partial, [&](int) { return mine; },
        [&](int k, MatrixView<const T> part) { kernels().add(T(1), part, k == 0 ? beta : T(1), out); });
  }

  /// use(k, part) for rows(k) of what the k-th rank of the line shows, in rank order.
  void read_from_all(const GridLine& line, MatrixView<const T> mine, auto&& rows, auto&& use) const {
    peers_->show(line, mine);
    const std::size_t ranks = line.ranks.size();
    memory_.resize(std::max(ranks, memory_.size()));
    std::vector<PeerPart<T>> parts(ranks);
    for (std::size_t turn = 0; turn < ranks; ++turn) {
      const std::size_t k = (line.mine + turn) % ranks;
      parts[k] = peers_->start_reading(k, rows(static_cast<int>(k)), memory_[k]);
    }
    for (std::size_t k = 0; k < ranks; ++k) {
      parts[k].arrival.wait();
      use(static_cast<int>(k), parts[k].block);
    }
    peers_->done_reading();
  }

  const ProcessGrid& grid() const { return peers_->grid(); }
  const Kernels<T>& kernels() const { return grid().backend()->template kernels<T>(); }

  std::unique_ptr<PeerBlocks<T>> peers_;
  mutable OnePassBlock<T> block_;
  mutable Buffer<T> gathered_;
  mutable std::vector<Buffer<T>> memory_;  // for the parts of each rank of a line
};

}  // namespace

template <Scalar T>
OperatorPtr<T> make_peer_stationary_a(DistMatrix<T> A, const MatrixMultOptions& options) {
  return std::make_shared<PeerStationaryA<T>>(std::move(A), options);
}

template OperatorPtr<float> make_peer_stationary_a(DistMatrix<float>, const MatrixMultOptions&);
template OperatorPtr<double> make_peer_stationary_a(DistMatrix<double>, const MatrixMultOptions&);
template OperatorPtr<std::complex<float>> make_peer_stationary_a(DistMatrix<std::complex<float>>,
                                                                 const MatrixMultOptions&);
template OperatorPtr<std::complex<double>> make_peer_stationary_a(DistMatrix<std::complex<double>>,
                                                                  const MatrixMultOptions&);

}  // namespace gridlops
