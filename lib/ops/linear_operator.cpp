// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/linear_operator.hpp"

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "comm/failure_scope.hpp"
#include "gridlops/error.hpp"
#include "ops/reserve_together.hpp"

namespace gridlops {

namespace {

std::string describe(const Space& space) { return space.layout(Partition::balanced(0, 1)).describe(); }

template <Scalar T>
void require_in(const Space& space, const DistMatrix<T>& X, const char* role) {
  require<ShapeError>(
      space.contains(X), "the ", role, " is ", X.layout().describe(), ", but the operator takes ",
      describe(space), " (columns as many as you like)", X.grid() == space.grid ? "" : " on another grid",
      X.rows() == space.dimension() ? "; make it with the operator's own space, or redistribute it" : "");
}

template <Scalar T>
void require_same_columns(const DistMatrix<T>& X, const DistMatrix<T>& Y) {
  require<ShapeError>(X.layout().cols.partition == Y.layout().cols.partition, "model and data have ",
                      X.cols(), " and ", Y.cols(),
                      " columns, or cut them at different places; they must agree column for column");
}

}  // namespace

Layout Space::layout(Index nrhs) const { return layout(Partition::balanced(nrhs, grid->parts(columns))); }

template <Scalar T>
LinearOperator<T>::LinearOperator(Space range, Space domain)
    : range_(std::move(range)), domain_(std::move(domain)) {
  require<ShapeError>(range_.grid == domain_.grid && range_.columns == domain_.columns, "an operator from ",
                      describe(domain_), " to ", describe(range_),
                      " would change the grid or the axis of the columns; both must stay the same");
  range_.layout(0).check(*range_.grid);
  domain_.layout(0).check(*domain_.grid);
}

template <Scalar T>
void LinearOperator<T>::apply(T alpha, const DistMatrix<T>& X, T beta, DistMatrix<T>& Y) const {
  require_in(domain_, X, "model");
  require_in(range_, Y, "data");
  require_same_columns(X, Y);
  ++activity_.forward_applications;
  activity_.forward_columns += X.cols();
  apply_either(Op::none, alpha, X, beta, Y);
}

template <Scalar T>
void LinearOperator<T>::apply_adjoint(T alpha, const DistMatrix<T>& Y, T beta, DistMatrix<T>& X) const {
  require_in(domain_, X, "model");
  require_in(range_, Y, "data");
  require_same_columns(X, Y);
  ++activity_.adjoint_applications;
  activity_.adjoint_columns += Y.cols();
  apply_either(Op::adjoint, alpha, Y, beta, X);
}

template <Scalar T>
void LinearOperator<T>::apply_either(Op op, T alpha, const DistMatrix<T>& in, T beta,
                                     DistMatrix<T>& out) const {
  const ProcessGrid& grid = *domain_.grid;
  if (in.cols() == 0 || !grid.is_member()) return;
  const Partition& columns = in.layout().cols.partition;
  try {
    reserve_together(grid.comm(), reserved_[op == Op::none ? 0 : 1], columns,
                     [&] { do_reserve(op, columns); });
  } catch (...) {
    // Some memory may be gone that both directions use.
    for (std::vector<Index>& most : reserved_) most.clear();
    throw;
  }
  FailureScope failures;
  failures.run(
      [&] { op == Op::none ? do_apply(alpha, in, beta, out) : do_apply_adjoint(alpha, in, beta, out); });
  failures.close();
}

#define GRIDLOPS_INSTANTIATE(T) template class LinearOperator<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
