// SPDX-License-Identifier: BSD-3-Clause
#include "ops/algorithms.hpp"
#include "ops/local_product.hpp"
#include "ops/shared_blocks.hpp"

namespace gridlops {

namespace {

/// Y stays where it is, and nothing else moves either: each rank multiplies from the blocks of the others.
///   forward  Y(p, q) = Σ over K of A(p, K) X(K, q), the inner dimension cut where the owner of A's columns
///            or of X's rows changes; each rank begins with its own columns of A, so that not all read one
///            rank's block at a time;
///   adjoint  X(i, q) = Σ over p of A(p, K)ᴴ Y(p, q) for the rows K of X that the rank at (i, q) owns. There
///            are no partial sums of others.
template <Scalar T>
class SharedSumma final : public LinearOperator<T> {
 public:
  SharedSumma(DistMatrix<T> A, const MatrixMultOptions& options)
      : LinearOperator<T>(range_in_blocks(A), domain_in_blocks(A)),
        product_(A.grid()->backend(), options.column_stable),
        column_stable_(options.column_stable),
        cols_of_A_(A.layout().cols.partition),
        rows_of_X_(this->domain().rows.partition),
        inner_(common_refinement(cols_of_A_, rows_of_X_)),
        blocks_(std::move(A)) {}

 private:
  void do_apply(T alpha, const DistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    const ProcessGrid& grid = blocks_.grid();
    PeerBoard& board = blocks_.board();
    const MatrixView<const T> mine = blocks_.shareable(X.local());
    const PeerBoard::Round round = board.show(mine);
    if (inner_.empty()) product_.multiply(Op::none, alpha, local_A(), X.local(), beta, Y.local());
    const std::size_t first = first_step();
    for (std::size_t step = 0; step < inner_.size(); ++step) {
      const Range K = inner_[(first + step) % inner_.size()];
      const int q = cols_of_A_.owner_of(K.begin), i = rows_of_X_.owner_of(K.begin);
      const int holds_A = blocks_.rank_at(grid.my_row(), q), holds_X = blocks_.rank_at(i, grid.my_col());
      const MatrixView<const T> A_part =
          blocks_.A_block(grid.my_row(), q).col_block(relative(K, cols_of_A_.begin(q)));
      const MatrixView<const T> X_block = i == grid.my_row() ? mine : board.block_of<T>(holds_X);
      const MatrixView<const T> X_part = X_block.row_block(relative(K, rows_of_X_.begin(i)));
      blocks_.count(holds_A, A_part.size());
      blocks_.count(holds_X, X_part.size());
      product_.multiply(Op::none, alpha, A_part, X_part, step == 0 ? beta : T(1), Y.local());
    }
    end_round(board, round);
  }

  void do_apply_adjoint(T alpha, const DistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    const ProcessGrid& grid = blocks_.grid();
    PeerBoard& board = blocks_.board();
    const MatrixView<const T> mine = blocks_.shareable(Y.local());
    const PeerBoard::Round round = board.show(mine);
    for (int step = 0; step < grid.rows(); ++step) {
      const int p = (grid.my_row() + step) % grid.rows();
      const int holds_Y = blocks_.rank_at(p, grid.my_col());
      const MatrixView<const T> Y_block = step == 0 ? mine : board.block_of<T>(holds_Y);
      blocks_.count(holds_Y, Y_block.size());
      for (const Range& K : inner_) {
        if (rows_of_X_.owner_of(K.begin) != grid.my_row()) continue;
        const int q = cols_of_A_.owner_of(K.begin);
        const MatrixView<const T> A_part = blocks_.A_block(p, q).col_block(relative(K, cols_of_A_.begin(q)));
        blocks_.count(blocks_.rank_at(p, q), A_part.size());
        product_.multiply(Op::adjoint, alpha, A_part, Y_block, step == 0 ? beta : T(1),
                          X.local().row_block(relative(K, rows_of_X_.begin(grid.my_row()))));
      }
    }
    end_round(board, round);
  }

  /// The ranks of the grid column are done with what this one showed, which may change from now on.
  void end_round(PeerBoard& board, PeerBoard::Round round) const {
    board.done_reading();
    for (int p = 0; p < blocks_.grid().rows(); ++p)
      board.await_reader(blocks_.rank_at(p, blocks_.grid().my_col()), round);
  }

  /// Column-stable, all grid columns sum in one order.
  std::size_t first_step() const {
    std::size_t step = 0;
    while (!column_stable_ && step < inner_.size() &&
           cols_of_A_.owner_of(inner_[step].begin) != blocks_.grid().my_col())
      ++step;
    return step;
  }

  static Range relative(Range range, Index origin) { return {range.begin - origin, range.size}; }
  MatrixView<const T> local_A() const { return std::as_const(blocks_).A().local(); }

  LocalProduct<T> product_;
  bool column_stable_;
  Partition cols_of_A_, rows_of_X_;
  std::vector<Range> inner_;
  mutable SharedBlocks<T> blocks_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> make_shared_summa(DistMatrix<T> A, const MatrixMultOptions& options) {
  return std::make_shared<SharedSumma<T>>(std::move(A), options);
}

template OperatorPtr<float> make_shared_summa(DistMatrix<float>, const MatrixMultOptions&);
template OperatorPtr<double> make_shared_summa(DistMatrix<double>, const MatrixMultOptions&);
template OperatorPtr<std::complex<float>> make_shared_summa(DistMatrix<std::complex<float>>,
                                                            const MatrixMultOptions&);
template OperatorPtr<std::complex<double>> make_shared_summa(DistMatrix<std::complex<double>>,
                                                             const MatrixMultOptions&);

}  // namespace gridlops
