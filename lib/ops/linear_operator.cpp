// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/linear_operator.hpp"

#include <algorithm>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure_scope.hpp"
#include "dist/copies.hpp"
#include "gridlops/error.hpp"
#include "gridlops/trace.hpp"

namespace gridlops {

namespace {

/// Whether memory for so many columns in each part is enough for these.
bool covers(const std::vector<Index>& most, const Partition& columns) {
  for (int part = 0; part < columns.parts(); ++part)
    if (most.empty() || columns.size(part) > most[at(part)]) return false;
  return true;
}

}  // namespace

template <Scalar T>
LinearOperator<T>::LinearOperator(Space range, Space domain)
    : range_(std::move(range)), domain_(std::move(domain)) {
  require<ShapeError>(range_.grid == domain_.grid && range_.columns == domain_.columns, "an operator from ",
                      domain_.describe(), " to ", range_.describe(),
                      " would change the grid or the axis of the columns; both must stay the same");
  range_.layout(0).check(*range_.grid);
  domain_.layout(0).check(*domain_.grid);
}

template <Scalar T>
void LinearOperator<T>::require_operands(const ConstDistMatrix<T>& model, const ConstDistMatrix<T>& data,
                                         std::string_view caller) const {
  const bool have_same_columns = model.layout().cols.partition == data.layout().cols.partition;
  if (have_same_columns && domain_.contains(model) && range_.contains(data)) return;
  const std::string prefix = caller.empty() ? "" : message(caller, ": ");
  domain_.require_contains(model, prefix + "the model");
  range_.require_contains(data, prefix + "the data");
  throw ShapeError(message(prefix, "model and data have ", model.cols(), " and ", data.cols(),
                           " columns, or cut them at different places; they must agree column for column"));
}

template <Scalar T>
void LinearOperator<T>::apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const {
  const TraceRegion region("apply");
  require_operands(X, Y);
  if (copies_are_checked()) require_equal_copies(X, "the model");
  ++activity_.forward_applications;
  activity_.forward_columns += X.cols();
  const Partition& columns = X.layout().cols.partition;
  carry_out(
      Product::forward, columns, [&] { do_reserve(Op::none, columns); },
      [&] { do_apply(alpha, X, beta, Y); });
}

template <Scalar T>
void LinearOperator<T>::apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const {
  const TraceRegion region("apply_adjoint");
  require_operands(X, Y);
  if (copies_are_checked()) require_equal_copies(Y, "the data");
  ++activity_.adjoint_applications;
  activity_.adjoint_columns += Y.cols();
  const Partition& columns = Y.layout().cols.partition;
  carry_out(
      Product::adjoint, columns, [&] { do_reserve(Op::adjoint, columns); },
      [&] { do_apply_adjoint(alpha, Y, beta, X); });
}

template <Scalar T>
void LinearOperator<T>::normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R,
                                       DistMatrix<T>& Q, DistMatrix<T>& U, DistMatrix<T>& V) const {
  const TraceRegion region("normal_product");
  require_operands(P, R, "normal product of P and R");
  require_operands(U, R, "normal product of R to U");
  require_operands(V, Q, "normal product of Q to V");
  if (copies_are_checked()) {
    require_equal_copies(P, "normal product of P and R: P");
    require_equal_copies(R, "normal product of P and R: R");
  }
  ++activity_.forward_applications;
  activity_.forward_columns += P.cols();
  activity_.adjoint_applications += 2;
  activity_.adjoint_columns += 2 * P.cols();
  const Partition& columns = P.layout().cols.partition;
  carry_out(
      Product::normal, columns, [&] { do_reserve_normal_product(columns); },
      [&] { do_normal_product(P, R, Q, U, V); });
}

template <Scalar T>
void LinearOperator<T>::do_reserve_normal_product(const Partition& columns) const {
  KeptFailure failure;
  for (const Op op : {Op::none, Op::adjoint}) failure.run([&] { do_reserve(op, columns); });
  failure.rethrow();
}

template <Scalar T>
void LinearOperator<T>::do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R,
                                          DistMatrix<T>& Q, DistMatrix<T>& U, DistMatrix<T>& V) const {
  FailureScope failures;  // a rank goes on to the next product, since others wait for it there
  failures.run([&] { do_apply(T(1), P, T(0), Q); });
  failures.run([&] { do_apply_adjoint(T(1), R, T(0), U); });
  failures.run([&] { do_apply_adjoint(T(1), Q, T(0), V); });
  failures.close();
}

/// Calls multiply(), and reserve() before it if some part has more columns than ever before.
template <Scalar T>
template <class Reserve, class Multiply>
void LinearOperator<T>::carry_out(Product product, const Partition& columns, Reserve&& reserve,
                                  Multiply&& multiply) const {
  const ProcessGrid& grid = *domain_.grid;
  if (columns.total() == 0 || !grid.is_member()) return;
  if (std::vector<Index>& most = reserved_[static_cast<std::size_t>(product)]; !covers(most, columns)) {
    const TraceRegion region("reserve");
    std::vector<Index> wanted = most;
    wanted.resize(static_cast<std::size_t>(columns.parts()), 0);
    for (int part = 0; part < columns.parts(); ++part)
      wanted[at(part)] = std::max(wanted[at(part)], columns.size(part));
    try {
      succeed_together(grid.comm(), reserve);
    } catch (...) {
      // Memory that other products use, too, may be gone.
      for (std::vector<Index>& other : reserved_) other.clear();
      throw;
    }
    most = std::move(wanted);
  }
  FailureScope failures;
  failures.run(multiply);
  failures.close();
}

#define GRIDLOPS_INSTANTIATE(T) template class LinearOperator<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
