// SPDX-License-Identifier: BSD-3-Clause
#include "base/instantiate.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/matrix/matrix_block.hpp"

namespace gridlops {

namespace {

/// Every rank of grid column q has block row q of A, and every rank of grid row p has block column p of X.
/// So Y(q, p) = A(q) X(p) is local, and X(p) = Σ over q of A(q)ᴴ Y(q, p) is a sum over grid row p.
template <Scalar T>
class BlockMult final : public StationaryMatrix<T> {
 public:
  BlockMult(DistMatrix<T> A, const MatrixMultOptions& options)
      : StationaryMatrix<T>(Algorithm::block, {A.grid(), A.layout().rows, Axis::grid_rows},
                            {A.grid(), A.layout().cols, Axis::grid_rows}, std::move(A), options),
        order_(reduction_order(options)) {}

 private:
  using StationaryMatrix<T>::A_;

  void do_reserve(Op op, const Partition& columns) const override {
    A_.reserve(op);
    const ProcessGrid& grid = A_.grid();
    if (op == Op::none || grid.row_comm().size() == 1) return;
    const Index size = this->domain().local_rows() * this->domain().local_columns(columns);
    sum_.reserve(grid.backend(), size);
    grid.row_comm().reserve(CommOperation::all_reduce, {&size, 1}, sizeof(T), order_);
  }

  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    A_.multiply(Op::none, alpha, X.local(), beta, Y.local());
  }

  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    const ProcessGrid& grid = A_.grid();
    const MatrixView<T> X_local = X.local();
    if (grid.row_comm().size() == 1) {
      A_.multiply(Op::adjoint, alpha, Y.local(), beta, X_local);
      return;
    }
    const MatrixView<T> sum = sum_.matrix(X_local.rows, X_local.cols);
    A_.multiply(Op::adjoint, alpha, Y.local(), T(0), sum);
    grid.row_comm().all_reduce({sum.data, sum.size()}, ReduceOp::sum, order_);
    grid.backend()->template kernels<T>().add(T(1), sum, beta, X_local);
  }

  ReductionOrder order_;
  mutable Buffer<T> sum_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> make_block_mult(DistMatrix<T> A, const MatrixMultOptions& options) {
  return std::make_shared<BlockMult<T>>(std::move(A), options);
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> make_block_mult(DistMatrix<T>, const MatrixMultOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
