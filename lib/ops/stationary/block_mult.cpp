// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <utility>

#include "base/instantiate.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/stationary/high_plane.hpp"

namespace gridlops {

namespace {

/// Every rank of grid column q has block row q of A, and every rank of grid row p has block column p of X.
/// So Y(q, p) = A(q) X(p) is local, and X(p) = Σ over q of A(q)ᴴ Y(q, p) is a sum over grid row p. Blocks are
/// in memory: they never fail alone.
template <Scalar T, class Interface>
class BlockRows : public Interface, public MatrixInBlocks<T> {
 public:
  template <class... Arguments>
  BlockRows(const ConstDistMatrix<T>& A, std::shared_ptr<LocalBlock<T>> block, const BlockFacts& facts,
            ReductionOrder order, std::shared_ptr<Buffer<T>> sum, Arguments&&... arguments)
      : Interface({A.grid(), A.layout().rows, Axis::grid_rows}, {A.grid(), A.layout().cols, Axis::grid_rows},
                  std::forward<Arguments>(arguments)...),
        MatrixInBlocks<T>(A.layout(), std::move(block), facts),
        order_(order),
        sum_(std::move(sum)) {}

 protected:
  ReductionOrder order() const { return order_; }
  const std::shared_ptr<Buffer<T>>& sum() const { return sum_; }

 private:
  bool runs_callers_code() const final { return false; }

  void do_reserve(Op op, const Partition& columns) const final {
    const Index cols = this->domain().local_columns(columns);
    this->local_block()->reserve(op == Op::none ? ProductKind::forward : ProductKind::adjoint, cols);
    const ProcessGrid& grid = *this->domain().grid;
    if (op == Op::none || grid.row_comm().size() == 1) return;
    const Index size = this->domain().local_rows() * cols;
    sum_->reserve(grid.backend(), size);
    grid.row_comm().reserve(CommOperation::all_reduce, {&size, 1}, sizeof(T), order_);
  }
  Index do_scratch_bytes(ProductKind, const Partition& columns) const final {
    return this->local_block()->scratch_bytes(this->domain().local_columns(columns));
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const final {
    this->local_block()->add_kept_bytes(kept);
    kept.add(sum_.get(), workspace_bytes(Algorithm::block, *this, columns.total()));
  }

  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const final {
    this->local_block()->multiply(*this->domain().grid, Op::none, alpha, X.local(), beta, Y.local());
  }

  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const final {
    const ProcessGrid& grid = *this->domain().grid;
    const MatrixView<T> X_local = X.local();
    if (grid.row_comm().size() == 1) {
      this->local_block()->multiply(grid, Op::adjoint, alpha, Y.local(), beta, X_local);
      return;
    }
    const MatrixView<T> sum = sum_->matrix(X_local.rows, X_local.cols);
    this->local_block()->multiply(grid, Op::adjoint, alpha, Y.local(), T(0), sum);
    grid.row_comm().all_reduce({sum.data, sum.size()}, ReduceOp::sum, order_);
    grid.backend()->template kernels<T>().add(T(1), sum, beta, X_local);
  }

  ReductionOrder order_;
  std::shared_ptr<Buffer<T>> sum_;
};

template <Scalar T>
class BlockMult final : public BlockRows<T, MatrixOperator<T>> {
 public:
  BlockMult(const std::shared_ptr<MatrixBlock<T>>& A, ReductionOrder order)
      : BlockRows<T, MatrixOperator<T>>(A->matrix(), A, A->facts(), order, std::make_shared<Buffer<T>>(), A) {
  }

  OperatorPtr<T> high_plane() const override {
    const std::shared_ptr<MatrixBlock<T>>& A = this->matrix_block();
    return std::make_shared<BlockRows<T, HighPlaneOperator<T>>>(
        A->matrix(), std::make_shared<HighPlane<T>>(A), this->block_facts(), this->order(), this->sum(), A);
  }
};

}  // namespace

template <Scalar T>
OperatorPtr<T> make_block_mult(DistMatrix<T> A, const MatrixMultOptions& options) {
  return std::make_shared<BlockMult<T>>(std::make_shared<MatrixBlock<T>>(std::move(A), options),
                                        reduction_order(options));
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> make_block_mult(DistMatrix<T>, const MatrixMultOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
