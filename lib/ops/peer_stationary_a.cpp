// SPDX-License-Identifier: BSD-3-Clause
#include "ops/algorithms.hpp"
#include "ops/local_product.hpp"
#include "ops/peer_blocks.hpp"

namespace gridlops {

namespace {

/// stationary-a where ranks read each other's blocks: the parts of X's block are read from the ranks that
/// hold them, A's block is multiplied once, and each rank sums its part of Y from the others' products, in
/// rank order.
template <Scalar T>
class PeerStationaryA final : public LinearOperator<T> {
 public:
  PeerStationaryA(DistMatrix<T> A, const MatrixMultOptions& options)
      : LinearOperator<T>(range_nested(A), domain_nested(A)),
        A_(std::move(A)),
        product_(A_.grid()->backend(), options.column_stable),
        blocks_(make_peer_blocks<T>(A_.grid(), std::nullopt)) {}

 private:
  /// The ranks of a grid line, and the parts of a block that they hold, counted from the block's first row.
  struct CutBlock {
    GridLine line;
    std::vector<Range> parts;

    Index height() const { return parts.back().end(); }
  };

  static CutBlock cut_block(GridLine line, const Partition& rows, int first_part) {
    CutBlock block{std::move(line), {}};
    for (int part = first_part; part < first_part + static_cast<int>(block.line.ranks.size()); ++part)
      block.parts.push_back({rows.begin(part) - rows.begin(first_part), rows.size(part)});
    return block;
  }
  CutBlock block_of_X() const {
    return cut_block(my_grid_col(grid()), this->domain().rows.partition, grid().my_col() * grid().rows());
  }
  CutBlock block_of_Y() const {
    return cut_block(my_grid_row(grid()), this->range().rows.partition, grid().my_row() * grid().cols());
  }

  void do_apply(T alpha, const DistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    run(Op::none, alpha, X.local(), block_of_X(), beta, Y.local(), block_of_Y());
  }
  void do_apply_adjoint(T alpha, const DistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    run(Op::adjoint, alpha, Y.local(), block_of_Y(), beta, X.local(), block_of_X());
  }

  void run(Op op, T alpha, MatrixView<const T> in, const CutBlock& in_block, T beta, MatrixView<T> out,
           const CutBlock& out_block) const {
    blocks_->begin();
    const MatrixView<const T> gathered = gather(in, in_block);
    const MatrixView<const T> A = A_.local();
    if (out_block.parts.size() == 1) {
      product_.multiply(op, alpha, A, gathered, beta, out);
    } else {
      const MatrixView<T> partial = blocks_->showable(out_block.height(), out.cols);
      product_.multiply(op, alpha, A, gathered, T(0), partial);
      sum(partial, out_block, beta, out);
    }
    blocks_->end();
  }

  /// All parts of a block, one below the other.
  MatrixView<const T> gather(MatrixView<const T> mine, const CutBlock& block) const {
    if (block.parts.size() == 1) return mine;
    gathered_.reserve(grid().backend(), block.height() * mine.cols);
    const MatrixView<T> whole = gathered_.matrix(block.height(), mine.cols);
    read_from_all(
        block, mine,
        [&](std::size_t k) {
          return Range{0, block.parts[k].size};
        },
        [&](std::size_t k, MatrixView<const T> part) {
          kernels().copy(part, whole.row_block(block.parts[k]));
        });
    return whole;
  }

  /// out ← this rank's part of the sum of all partial products + β out.
  void sum(MatrixView<const T> partial, const CutBlock& block, T beta, MatrixView<T> out) const {
    const Range mine = block.parts[block.line.mine];
    read_from_all(
        block, partial, [&](std::size_t) { return mine; },
        [&](std::size_t k, MatrixView<const T> part) {
          kernels().add(T(1), part, k == 0 ? beta : T(1), out);
        });
  }

  /// use(k, part) for rows(k) of what the k-th rank of the line shows, in rank order.
  void read_from_all(const CutBlock& block, MatrixView<const T> mine, auto&& rows, auto&& use) const {
    blocks_->show(block.line, mine);
    const std::size_t ranks = block.parts.size();
    memory_.resize(std::max(ranks, memory_.size()));
    std::vector<PeerPart<T>> parts(ranks);
    for (std::size_t turn = 0; turn < ranks; ++turn) {
      const std::size_t k = (block.line.mine + turn) % ranks;
      parts[k] = blocks_->start_reading(k, rows(k), memory_[k]);
    }
    for (std::size_t k = 0; k < ranks; ++k) {
      parts[k].arrival.wait();
      use(k, parts[k].block);
    }
    blocks_->done_reading();
  }

  const ProcessGrid& grid() const { return blocks_->grid(); }
  const Kernels<T>& kernels() const { return grid().backend()->template kernels<T>(); }

  const DistMatrix<T> A_;
  LocalProduct<T> product_;
  std::unique_ptr<PeerBlocks<T>> blocks_;
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
