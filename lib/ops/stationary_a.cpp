// SPDX-License-Identifier: BSD-3-Clause
#include "base/instantiate.hpp"
#include "comm/kept_failure.hpp"
#include "ops/algorithms.hpp"
#include "ops/one_pass.hpp"
#include "ops/one_pass_block.hpp"
#include "ops/reserve_together.hpp"

namespace gridlops {

namespace {

/// Rank (p, q) keeps A(p, q). Block q of X lies cut over the P ranks of grid column q, block p of Y over the
/// Q ranks of grid row p. Forward: gather X(q) in the grid column, multiply, reduce-scatter Y(p) = Σ over q
/// of A(p, q) X(q) in the grid row. The adjoint is the same with rows and columns of the grid exchanged.
///
/// The normal product always sends messages: no rank may wait for another at every panel.
template <Scalar T>
class StationaryA final : public LinearOperator<T>, public OnePass<T> {
 public:
  StationaryA(DistMatrix<T> A, const MatrixMultOptions& options)
      : LinearOperator<T>(range_nested(A), domain_nested(A)), block_(std::move(A), options) {
    const ProcessGrid& grid = *this->range().grid;
    if (!grid.is_member()) return;
    models_ = make_block_exchange<T>(grid.col_comm(), grid.backend(), reduction_order(options));
    data_ = make_block_exchange<T>(grid.row_comm(), grid.backend(), reduction_order(options));
  }

  void prepare() const override { block_.block().store_in_panels(); }
  void reserve_pass(const Partition& columns) const override {
    reserve_together(this->range().grid->comm(), reserved_for_pass_, columns, [&] {
      block_.reserve(block_of_models(*this), block_of_data(*this), this->domain().local_columns(columns));
    });
  }
  void pass_once(const DistMatrix<T>& P, const DistMatrix<T>& R, DistMatrix<T>& Q, DistMatrix<T>& U,
                 DistMatrix<T>& V) const override {
    block_.pass_once(block_of_models(*this), block_of_data(*this), P, R, Q, U, V);
  }

 private:
  void do_reserve(Op op, const Partition& columns) const override {
    const Index cols = this->domain().local_columns(columns);
    const CutBlock models = block_of_models(*this), data = block_of_data(*this);
    KeptFailure failure;
    failure.run([&] { block_.block().reserve(op); });
    if (op == Op::none) {
      failure.run([&] { models_->reserve_gather(models, cols, gathered_); });
      failure.run([&] { data_->reserve_sum(data, cols); });
    } else {
      failure.run([&] { data_->reserve_gather(data, cols, gathered_); });
      failure.run([&] { models_->reserve_sum(models, cols); });
    }
    failure.rethrow();
  }

  void do_apply(T alpha, const DistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    run(Op::none, alpha, X.local(), block_of_models(*this), *models_, beta, Y.local(), block_of_data(*this),
        *data_);
  }
  void do_apply_adjoint(T alpha, const DistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    run(Op::adjoint, alpha, Y.local(), block_of_data(*this), *data_, beta, X.local(), block_of_models(*this),
        *models_);
  }

  void run(Op op, T alpha, MatrixView<const T> in, const CutBlock& in_block, BlockExchange<T>& in_ranks,
           T beta, MatrixView<T> out, const CutBlock& out_block, BlockExchange<T>& out_ranks) const {
    const MatrixView<const T> gathered = in_ranks.gather(in, in_block, gathered_);
    if (out_block.parts() == 1) {
      block_.block().multiply(op, alpha, gathered, beta, out);
    } else {
      const MatrixView<T> partial = out_ranks.summand(out_block.height(), out.cols);
      block_.block().multiply(op, alpha, gathered, T(0), partial);
      out_ranks.reduce_scatter(partial, out_block, beta, out);
    }
    in_ranks.await_readers();
    out_ranks.await_readers();
  }

  mutable OnePassBlock<T> block_;
  std::unique_ptr<BlockExchange<T>> models_, data_;
  mutable Buffer<T> gathered_;
  mutable std::vector<Index> reserved_for_pass_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> make_stationary_a(DistMatrix<T> A, const MatrixMultOptions& options) {
  return std::make_shared<StationaryA<T>>(std::move(A), options);
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> make_stationary_a(DistMatrix<T>, const MatrixMultOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
