// SPDX-License-Identifier: BSD-3-Clause
#include "local/panel_matrix.hpp"
#include "ops/algorithms.hpp"
#include "ops/local_product.hpp"
#include "ops/one_pass.hpp"
#include "ops/stacked_parts.hpp"

namespace gridlops {

namespace {

/// Rank (p, q) keeps A(p, q). Block q of X lies cut over the P ranks of grid column q, block p of Y over the
/// Q ranks of grid row p. Forward: gather X(q) in the grid column, multiply, reduce-scatter Y(p) = Σ over q
/// of A(p, q) X(q) in the grid row. The adjoint is the same with rows and columns of the grid exchanged.
template <Scalar T>
class StationaryA final : public LinearOperator<T>, public OnePass<T> {
 public:
  StationaryA(DistMatrix<T> A, const MatrixMultOptions& options)
      : LinearOperator<T>(range_nested(A), domain_nested(A)),
        A_(std::move(A)),
        product_(A_.grid()->backend(), options.column_stable),
        order_(reduction_order(options)) {}

  bool can_pass_once() const override { return A_.grid()->cols() == 1; }

  void prepare() const override {
    const MatrixView<const T> A = matrix();
    if (!panels_.empty() || A.empty() || backend()->memory_space() != MemorySpace::host) return;
    panels_ = PanelMatrix<T>(backend(), A, best_instruction_set());
    // Its shape is all that is needed of A from now on.
    A_ = DistMatrix<T>(A_.grid(), A_.layout(), MatrixView<T>(nullptr, A.rows, A.cols));
  }

  void pass_once(const DistMatrix<T>& P, const DistMatrix<T>& R, DistMatrix<T>& Q, DistMatrix<T>& U,
                 DistMatrix<T>& V) const override {
    prepare();
    const MatrixView<const T> A = matrix(), gathered = gather(P.local(), block_of_X());
    const Index count = gathered.cols;
    partial_.reserve(backend(), A.cols * 2 * count);
    both_.reserve(backend(), U.local().size() + V.local().size());
    const MatrixView<T> partial = partial_.matrix(A.cols, 2 * count);
    if (panels_.empty()) {
      product_.multiply(Op::none, T(1), A, gathered, T(0), Q.local());
      product_.multiply(Op::adjoint, T(1), A, R.local(), T(0), partial.col_block({0, count}));
      product_.multiply(Op::adjoint, T(1), A, Q.local(), T(0), partial.col_block({count, count}));
    } else {
      panels_.one_pass(gathered, R.local(), Q.local(), partial);
    }
    const MatrixView<T> both = both_.matrix(U.local().rows, 2 * count);
    reduce_scatter(partial, block_of_X(), T(0), both);
    kernels().copy(both.col_block({0, count}), U.local());
    kernels().copy(both.col_block({count, count}), V.local());
  }

 private:
  /// One block of X or Y, which the ranks of `comm` hold in parts: those that follow first_part in `rows`.
  struct CutBlock {
    Communicator& comm;
    const Partition& rows;
    int first_part;

    int parts() const { return comm.size(); }
    Range part(int k) const {
      return {rows.begin(first_part + k) - rows.begin(first_part), rows.size(first_part + k)};
    }
    Index height() const { return part(parts() - 1).end(); }
  };
  CutBlock block_of_X() const {
    const ProcessGrid& grid = *A_.grid();
    return {grid.col_comm(), this->domain().rows.partition, grid.my_col() * grid.rows()};
  }
  CutBlock block_of_Y() const {
    const ProcessGrid& grid = *A_.grid();
    return {grid.row_comm(), this->range().rows.partition, grid.my_row() * grid.cols()};
  }

  void do_apply(T alpha, const DistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    run(Op::none, alpha, X.local(), block_of_X(), beta, Y.local(), block_of_Y());
  }
  void do_apply_adjoint(T alpha, const DistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    run(Op::adjoint, alpha, Y.local(), block_of_Y(), beta, X.local(), block_of_X());
  }

  void run(Op op, T alpha, MatrixView<const T> in, const CutBlock& in_block, T beta, MatrixView<T> out,
           const CutBlock& out_block) const {
    const MatrixView<const T> gathered = gather(in, in_block);
    if (out_block.parts() == 1) {
      multiply(op, alpha, gathered, beta, out);
      return;
    }
    partial_.reserve(backend(), out_block.height() * out.cols);
    const MatrixView<T> partial = partial_.matrix(out_block.height(), out.cols);
    multiply(op, alpha, gathered, T(0), partial);
    reduce_scatter(partial, out_block, beta, out);
  }

  MatrixView<const T> matrix() const { return static_cast<const DistMatrix<T>&>(A_).local(); }

  void multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const {
    if (panels_.empty()) {
      product_.multiply(op, alpha, matrix(), X, beta, Y);
    } else {
      panels_.multiply(op, alpha, X, beta, Y);
    }
  }

  /// All parts of a block, one below the other.
  MatrixView<const T> gather(MatrixView<const T> mine, const CutBlock& block) const {
    if (block.parts() == 1) return mine;
    const Index cols = mine.cols;
    set_counts(block, cols);
    own_.reserve(backend(), mine.size());
    travelling_.reserve(backend(), block.height() * cols);
    gathered_.reserve(backend(), block.height() * cols);
    kernels().copy(mine, own_.matrix(mine.rows, cols));
    block.comm.all_gather_v({own_.data(), mine.size()}, {travelling_.data(), block.height() * cols}, counts_);
    const MatrixView<T> whole = gathered_.matrix(block.height(), cols);
    unstack<T>(kernels(), travelling_.data(), counts_, whole);
    return whole;
  }

  /// mine ← this rank's part of the sum of all ranks' `partial` + β mine.
  void reduce_scatter(MatrixView<const T> partial, const CutBlock& block, T beta, MatrixView<T> mine) const {
    const Index cols = mine.cols;
    set_counts(block, cols);
    own_.reserve(backend(), mine.size());
    travelling_.reserve(backend(), partial.size());
    stack<T>(kernels(), partial, counts_, travelling_.data());
    block.comm.reduce_scatter_v({travelling_.data(), partial.size()}, counts_, {own_.data(), mine.size()},
                                ReduceOp::sum, order_);
    kernels().add(T(1), own_.matrix(mine.rows, cols), beta, mine);
  }

  void set_counts(const CutBlock& block, Index cols) const {
    counts_.resize(static_cast<std::size_t>(block.parts()));
    for (int k = 0; k < block.parts(); ++k) counts_[static_cast<std::size_t>(k)] = block.part(k).size * cols;
  }
  const std::shared_ptr<Backend>& backend() const { return A_.grid()->backend(); }
  const Kernels<T>& kernels() const { return backend()->template kernels<T>(); }

  // A lies in one of these: as it was given, or in panels once the normal product is used.
  mutable DistMatrix<T> A_;
  mutable PanelMatrix<T> panels_;
  LocalProduct<T> product_;
  ReductionOrder order_;
  mutable Buffer<T> own_, travelling_, gathered_, partial_, both_;
  mutable std::vector<Index> counts_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> make_stationary_a(DistMatrix<T> A, const MatrixMultOptions& options) {
  return std::make_shared<StationaryA<T>>(std::move(A), options);
}

template OperatorPtr<float> make_stationary_a(DistMatrix<float>, const MatrixMultOptions&);
template OperatorPtr<double> make_stationary_a(DistMatrix<double>, const MatrixMultOptions&);
template OperatorPtr<std::complex<float>> make_stationary_a(DistMatrix<std::complex<float>>,
                                                            const MatrixMultOptions&);
template OperatorPtr<std::complex<double>> make_stationary_a(DistMatrix<std::complex<double>>,
                                                             const MatrixMultOptions&);

}  // namespace gridlops
