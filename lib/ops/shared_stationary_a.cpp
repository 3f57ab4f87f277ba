// SPDX-License-Identifier: BSD-3-Clause
#include "ops/algorithms.hpp"
#include "ops/one_pass.hpp"
#include "ops/panelled_block.hpp"
#include "ops/shared_blocks.hpp"

namespace gridlops {

namespace {

/// stationary-a where ranks read each other's memory: the parts of X's block are copied from the ranks that
/// hold them, A's block is multiplied once, and each rank sums its part of Y from the others' products, in
/// rank order. The normal product sends messages: no rank may wait for another at every panel.
template <Scalar T>
class SharedStationaryA final : public LinearOperator<T>, public OnePass<T> {
 public:
  SharedStationaryA(DistMatrix<T> A, const MatrixMultOptions& options)
      : LinearOperator<T>(range_nested(A), domain_nested(A)),
        blocks_(nothing(A.grid())),
        block_(std::move(A), options) {}

  void prepare() const override { block_.prepare(); }
  void pass_once(const DistMatrix<T>& P, const DistMatrix<T>& R, DistMatrix<T>& Q, DistMatrix<T>& U,
                 DistMatrix<T>& V) const override {
    block_.pass_once(block_of_models(*this), block_of_data(*this), P, R, Q, U, V);
  }

 private:
  /// No rank reads another's block of A.
  static DistMatrix<T> nothing(const std::shared_ptr<const ProcessGrid>& grid) {
    return {grid, matrix_layout(Algorithm::stationary_a, *grid, 0, 0)};
  }

  /// The ranks of one grid row or column, and the parts of a block that they hold.
  struct Line {
    std::vector<int> ranks;
    std::vector<Range> parts;  // within the block
    std::size_t mine;

    Index height() const { return parts.back().end(); }
  };

  Line line(const Partition& rows, int first_part, int count, int mine, auto&& rank_of) const {
    Line line{{}, {}, static_cast<std::size_t>(mine)};
    for (int k = 0; k < count; ++k) {
      line.ranks.push_back(rank_of(k));
      line.parts.push_back({rows.begin(first_part + k) - rows.begin(first_part), rows.size(first_part + k)});
    }
    return line;
  }
  Line line_of_X() const {
    const ProcessGrid& grid = blocks_.grid();
    return line(this->domain().rows.partition, grid.my_col() * grid.rows(), grid.rows(), grid.my_row(),
                [&](int p) { return blocks_.rank_at(p, grid.my_col()); });
  }
  Line line_of_Y() const {
    const ProcessGrid& grid = blocks_.grid();
    return line(this->range().rows.partition, grid.my_row() * grid.cols(), grid.cols(), grid.my_col(),
                [&](int q) { return blocks_.rank_at(grid.my_row(), q); });
  }

  void do_apply(T alpha, const DistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    run(Op::none, alpha, X.local(), line_of_X(), beta, Y.local(), line_of_Y());
  }
  void do_apply_adjoint(T alpha, const DistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    run(Op::adjoint, alpha, Y.local(), line_of_Y(), beta, X.local(), line_of_X());
  }

  void run(Op op, T alpha, MatrixView<const T> in, const Line& in_line, T beta, MatrixView<T> out,
           const Line& out_line) const {
    PeerBoard& board = blocks_.board();
    const MatrixView<const T> mine = blocks_.shareable(in);
    const PeerBoard::Round gathering = board.show(mine);
    const MatrixView<const T> gathered = gather(board, mine, in_line);
    board.done_reading();
    if (out_line.ranks.size() == 1) {
      block_.multiply(op, alpha, gathered, beta, out);
    } else {
      const MatrixView<T> partial = blocks_.scratch(partial_, out_line.height(), out.cols);
      block_.multiply(op, alpha, gathered, T(0), partial);
      const PeerBoard::Round summing = board.show(MatrixView<const T>(partial));
      sum(board, partial, out_line, beta, out);
      board.done_reading();
      for (const int rank : out_line.ranks) board.await_reader(rank, summing);
    }
    for (const int rank : in_line.ranks) board.await_reader(rank, gathering);
  }

  MatrixView<const T> gather(PeerBoard& board, MatrixView<const T> mine, const Line& line) const {
    if (line.ranks.size() == 1) return mine;
    gathered_.reserve(blocks_.grid().backend(), line.height() * mine.cols);
    const MatrixView<T> whole = gathered_.matrix(line.height(), mine.cols);
    for (std::size_t k = 0; k < line.ranks.size(); ++k) {
      const MatrixView<const T> part = k == line.mine ? mine : board.block_of<T>(line.ranks[k]);
      kernels().copy(part, whole.row_block(line.parts[k]));
      blocks_.count(line.ranks[k], part.size());
    }
    return whole;
  }

  /// out ← this rank's part of the sum of all partial products + β out.
  void sum(PeerBoard& board, MatrixView<const T> mine, const Line& line, T beta, MatrixView<T> out) const {
    for (std::size_t k = 0; k < line.ranks.size(); ++k) {
      const MatrixView<const T> partial = k == line.mine ? mine : board.block_of<T>(line.ranks[k]);
      kernels().add(T(1), partial.row_block(line.parts[line.mine]), k == 0 ? beta : T(1), out);
      blocks_.count(line.ranks[k], out.size());
    }
  }

  const Kernels<T>& kernels() const { return blocks_.grid().backend()->template kernels<T>(); }

  mutable SharedBlocks<T> blocks_;
  mutable PanelledBlock<T> block_;
  mutable Buffer<T> gathered_, partial_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> make_shared_stationary_a(DistMatrix<T> A, const MatrixMultOptions& options) {
  return std::make_shared<SharedStationaryA<T>>(std::move(A), options);
}

template OperatorPtr<float> make_shared_stationary_a(DistMatrix<float>, const MatrixMultOptions&);
template OperatorPtr<double> make_shared_stationary_a(DistMatrix<double>, const MatrixMultOptions&);
template OperatorPtr<std::complex<float>> make_shared_stationary_a(DistMatrix<std::complex<float>>,
                                                                   const MatrixMultOptions&);
template OperatorPtr<std::complex<double>> make_shared_stationary_a(DistMatrix<std::complex<double>>,
                                                                    const MatrixMultOptions&);

}  // namespace gridlops
