// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/local/buffer.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "ops/array/line_product.hpp"
#include "ops/array/padding.hpp"
#include "ops/operator/array_products.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// The product along a dimension that is whole on every rank. A block is, for each slice before the
/// dimension, a matrix of `inner` neighbours times the elements along it, in columns: it is multiplied by the
/// transposed matrix. Where there are no neighbours, all slices are the columns of one matrix.
template <Scalar T>
class MatrixAlong final : public LibraryOperator<T> {
 public:
  MatrixAlong(const Space& space, int dim, MatrixView<const T> matrix)
      : LibraryOperator<T>(with_samples(space, dim, matrix.rows), space), m_(matrix.rows), n_(matrix.cols) {
    if (!space.grid->is_member()) return;
    const Box box = space.local_box();
    for (std::size_t d = 0; d < box.size(); ++d)
      if (d != at(dim)) (d < at(dim) ? outer_ : inner_) *= box[d].size;
    const bool transposed = inner_ != 1;
    for (Index k = 0; k < (transposed ? m_ : n_); ++k)
      for (Index i = 0; i < (transposed ? n_ : m_); ++i)
        elements_.push_back(transposed ? matrix(k, i) : matrix(i, k));
  }

 private:
  void do_reserve(Op, const Partition&) const override {
    if (stored_.size() == 0) stored_ = uploaded<T>(this->domain().grid->backend(), elements_);
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition&) const override {
    kept.add(this, m_ * n_ * Index{sizeof(T)});
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    multiply(Op::none, alpha, X.local(), n_, beta, Y.local(), m_);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    multiply(Op::adjoint, alpha, Y.local(), m_, beta, X.local(), n_);
  }

  /// Y ← α op(A) X + β Y, where X has x_size elements along the dimension, and Y y_size.
  void multiply(Op op, T alpha, MatrixView<const T> X, Index x_size, T beta, MatrixView<T> Y,
                Index y_size) const {
    Backend& backend = *this->domain().grid->backend();
    const Kernels<T>& kernels = backend.kernels<T>();
    const double flops = product_flops<T>(m_, n_, outer_ * inner_ * X.cols);
    trace_flops(flops);
    if (inner_ == 1) {
      const MatrixView<const T> A(stored_.data(), m_, n_);
      const bool at_once = X.contiguous() && Y.contiguous();
      const Index lines = at_once ? outer_ * X.cols : outer_;
      for (Index j = 0; j < (at_once ? 1 : X.cols); ++j)
        kernels.gemm(op, Op::none, alpha, A, {X.column(j), x_size, lines}, beta,
                     {Y.column(j), y_size, lines});
      return;
    }
    const MatrixView<const T> transposed(stored_.data(), n_, m_);
    backend.for_each(outer_ * X.cols, flops, [&](Index i) {
      const Index slice = i % outer_ * inner_, column = i / outer_;
      kernels.gemm(Op::none, op, alpha, {X.column(column) + slice * x_size, inner_, x_size}, transposed, beta,
                   {Y.column(column) + slice * y_size, inner_, y_size});
    });
  }

  Index m_, n_, outer_ = 1, inner_ = 1;
  std::vector<T> elements_;  // the matrix, or its transpose, in columns
  mutable Buffer<T> stored_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> matrix_along(const Space& space, int dim, MatrixView<const T> matrix) {
  require_dim(space, dim, "a product with a matrix");
  require<ShapeError>(matrix.cols == space.dims.size(dim), "a ", matrix.rows, " x ", matrix.cols,
                      " matrix does not fit dimension ", dim, " of an array of ", space.dims.describe(),
                      "; it needs as many columns as the dimension has elements");
  if (space.dims.cut(dim).parts() == 1) return std::make_shared<MatrixAlong<T>>(space, dim, matrix);
  const Space whole = whole_along(space, dim);
  const auto local = std::make_shared<MatrixAlong<T>>(whole, dim, matrix);
  OperatorPtr<T> result = product<T>(local, identity<T>(whole, space));
  if (space.dims.count() > 1) return result;
  return product(
      identity<T>(array_space(space.grid, {matrix.rows}, 0, space.rows.axis, space.columns), local->range()),
      result);
}

#define GRIDLOPS_INSTANTIATE(T) template OperatorPtr<T> matrix_along(const Space&, int, MatrixView<const T>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
