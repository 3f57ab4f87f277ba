// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/local_operator.hpp"

#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "comm/failure/failure.hpp"
#include "dist/axis_ranks.hpp"
#include "gridlops/base/error.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// Base: LinearOperator for the caller's functions, LibraryOperator for the library's.
template <Scalar T, class Base>
class LocalOperator final : public Base {
 public:
  LocalOperator(Space range, Space domain, LocalProduct<T> forward, LocalProduct<T> adjoint)
      : Base(std::move(range), std::move(domain)),
        forward_(std::move(forward)),
        adjoint_(std::move(adjoint)) {
    const Axis data = this->range().rows.axis, model = this->domain().rows.axis;
    const auto is_grids = [](Axis axis) { return axis == Axis::grid_rows || axis == Axis::grid_cols; };
    require<ShapeError>(
        data == model || data == Axis::uncut || model == Axis::uncut || (is_grids(data) && is_grids(model)),
        "an operator of the ranks' own matrices cannot go from ", this->domain().describe(), " to ",
        this->range().describe(),
        ": rows must be cut along the same axis, or along the two dimensions of the grid, or "
        "not at all in one of them");
  }

 private:
  void do_reserve(Op op, const Partition& columns) const override {
    const Space& result = op == Op::none ? this->range() : this->domain();
    memory_.reserve(result.grid->backend(), result.local_rows() * result.local_columns(columns));
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    multiply(forward_, this->domain(), alpha, X, beta, this->range(), Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    multiply(adjoint_, this->range(), alpha, Y, beta, this->domain(), X);
  }

  /// out ← α B in + β out, summed over the parts of `in` unless `out` is cut in the same way.
  void multiply(const LocalProduct<T>& product, const Space& from, T alpha, const ConstDistMatrix<T>& in,
                T beta, const Space& to, DistMatrix<T>& out) const {
    const bool sums = from.rows.axis != Axis::uncut && to.rows.axis != from.rows.axis;
    const MatrixView<T> result = out.local();
    const bool in_place = alpha == T(1) && beta == T(0) && (result.contiguous() || !sums);
    const MatrixView<T> target = in_place ? result : memory_.matrix(result.rows, result.cols);
    // A rank whose function throws still takes part in the sum, because the others wait for it there.
    FailureScope failures;
    failures.run([&] {
      if (target.cols > 0) product(in.local(), target);
    });
    if (sums)
      ranks_along(*to.grid, from.rows.axis).comm->all_reduce({target.data, target.size()}, ReduceOp::sum);
    if (!in_place)
      to.grid->backend()->template kernels<T>().add(alpha, MatrixView<const T>(target), beta, result);
    failures.close(to.grid->comm());
  }

  LocalProduct<T> forward_, adjoint_;
  mutable Buffer<T> memory_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> local_operator(Space range, Space domain, LocalProduct<T> forward, LocalProduct<T> adjoint) {
  return std::make_shared<LocalOperator<T, LinearOperator<T>>>(std::move(range), std::move(domain),
                                                               std::move(forward), std::move(adjoint));
}

template <Scalar T>
OperatorPtr<T> library_local_operator(Space range, Space domain, LocalProduct<T> forward,
                                      LocalProduct<T> adjoint) {
  return std::make_shared<LocalOperator<T, LibraryOperator<T>>>(std::move(range), std::move(domain),
                                                                std::move(forward), std::move(adjoint));
}

#define GRIDLOPS_INSTANTIATE(T)                                                           \
  template OperatorPtr<T> local_operator(Space, Space, LocalProduct<T>, LocalProduct<T>); \
  template OperatorPtr<T> library_local_operator(Space, Space, LocalProduct<T>, LocalProduct<T>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
