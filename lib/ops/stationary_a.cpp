// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "ops/algorithms.hpp"
#include "ops/local_product.hpp"
#include "ops/one_pass.hpp"

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

  void pass_once(const DistMatrix<T>& P, const DistMatrix<T>& R, DistMatrix<T>& Q, DistMatrix<T>& U,
                 DistMatrix<T>& V) const override {
    const MatrixView<const T> A = static_cast<const DistMatrix<T>&>(A_).local();
    const MatrixView<const T> gathered = gather(P.local(), block_of_X());
    const Index count = gathered.cols;
    data_.reserve(backend(), A.rows * 2 * count);
    partial_.reserve(backend(), A.cols * 2 * count);
    both_.reserve(backend(), U.local().size() + V.local().size());
    const MatrixView<T> data = data_.matrix(A.rows, 2 * count), partial = partial_.matrix(A.cols, 2 * count);
    const MatrixView<T> products = data.col_block({count, count});
    kernels().copy(R.local(), data.col_block({0, count}));
    const Index height = rows_in_cache(A.cols);
    // Also without rows, for the zeros that are the sum then.
    for (Index begin = 0; begin == 0 || begin < A.rows; begin += height) {
      const Range rows{begin, std::min(height, A.rows - begin)};
      product_.multiply(Op::none, T(1), A.row_block(rows), gathered, T(0), products.row_block(rows));
      product_.multiply(Op::adjoint, T(1), A.row_block(rows), data.row_block(rows), T(begin == 0 ? 0 : 1),
                        partial);
    }
    kernels().copy(products, Q.local());
    const MatrixView<T> both = both_.matrix(U.local().rows, 2 * count);
    reduce_scatter(partial, block_of_X(), T(0), both);
    kernels().copy(both.col_block({0, count}), U.local());
    kernels().copy(both.col_block({count, count}), V.local());
  }

 private:
  /// So many rows of A that they stay in the cache between two uses: 4 MiB, part of the last level, measured
  /// best among 1 to 16 MiB on a Zen 4 core. The second level would be faster, but in an array stored by
  /// columns rows that fit it are pieces too short for memory.
  static Index rows_in_cache(Index cols) {
    constexpr Index bytes = 4 << 20, least = 64;
    return std::max(bytes / (std::max<Index>(cols, 1) * static_cast<Index>(sizeof(T))) / least, Index{1}) *
           least;
  }

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
    const MatrixView<const T> A = static_cast<const DistMatrix<T>&>(A_).local();
    const MatrixView<const T> gathered = gather(in, in_block);
    if (out_block.parts() == 1) {
      product_.multiply(op, alpha, A, gathered, beta, out);
      return;
    }
    partial_.reserve(backend(), out_block.height() * out.cols);
    const MatrixView<T> partial = partial_.matrix(out_block.height(), out.cols);
    product_.multiply(op, alpha, A, gathered, T(0), partial);
    reduce_scatter(partial, out_block, beta, out);
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
    for (int k = 0; k < block.parts(); ++k) {
      const Range rows = block.part(k);
      kernels().copy(MatrixView<const T>(travelling_.data() + rows.begin * cols, rows.size, cols),
                     whole.row_block(rows));
    }
    return whole;
  }

  /// mine ← this rank's part of the sum of all ranks' `partial` + β mine.
  void reduce_scatter(MatrixView<const T> partial, const CutBlock& block, T beta, MatrixView<T> mine) const {
    const Index cols = mine.cols;
    set_counts(block, cols);
    own_.reserve(backend(), mine.size());
    travelling_.reserve(backend(), partial.size());
    for (int k = 0; k < block.parts(); ++k) {
      const Range rows = block.part(k);
      kernels().copy(partial.row_block(rows),
                     MatrixView<T>(travelling_.data() + rows.begin * cols, rows.size, cols));
    }
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

  DistMatrix<T> A_;
  LocalProduct<T> product_;
  ReductionOrder order_;
  mutable Buffer<T> own_, travelling_, gathered_, partial_, data_, both_;
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
