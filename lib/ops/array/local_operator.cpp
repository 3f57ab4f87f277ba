// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/local_operator.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "comm/failure/failure.hpp"
#include "dist/axis_ranks.hpp"
#include "gridlops/base/error.hpp"
#include "ops/operator/cut_block.hpp"
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
    require<ShapeError>(
        data == model || data == Axis::uncut || model == Axis::uncut || outer_axis(data) != outer_axis(model),
        "an operator of the ranks' own matrices cannot go from ", this->domain().describe(), " to ",
        this->range().describe(),
        ": rows must be cut along the same axis, or one along grid_rows or all and the other "
        "along grid_cols or all_transposed, or not at all in one of them");
  }

 private:
  // The caller's functions may apply operators of their own in the scratch memory, so that a product with
  // them has memory of this operator's.
  static constexpr bool has_scratch = std::is_same_v<Base, LibraryOperator<T>>;

  /// The memory of a product, in elements: for the block that the function is given, if the ranks gather it,
  /// for the one that it makes, for this rank's part of the sum of these, and for parts that travel.
  struct Sizes {
    Index given = 0, made = 0, part = 0, travelling = 0;
    Index total() const { return given + made + part + travelling; }
  };
  static Sizes sizes_for(const Space& from, const Space& to, Index cols) {
    Sizes sizes;
    sizes.made = to.local_rows() * cols;
    if (const auto block = nested_block(from, to)) {
      sizes.given = block->height() * cols;
      sizes.travelling = cols > 1 ? sizes.given : 0;
    }
    if (const auto block = nested_block(to, from)) {
      sizes.part = sizes.made;
      sizes.made = block->height() * cols;
      sizes.travelling = std::max(sizes.travelling, cols > 1 ? sizes.made : 0);
    }
    return sizes;
  }
  Index memory_size(bool forward, const Partition& columns) const {
    const Space &from = forward ? this->domain() : this->range(),
                &to = forward ? this->range() : this->domain();
    return sizes_for(from, to, to.local_columns(columns)).total();
  }
  void do_reserve(Op op, const Partition& columns) const override {
    if (!has_scratch) memory_.reserve(this->range().grid->backend(), memory_size(op == Op::none, columns));
    const Space &from = op == Op::none ? this->domain() : this->range(),
                &to = op == Op::none ? this->range() : this->domain();
    if (const auto gathered = nested_block(from, to)) reserve_gather<T>(*gathered, to.local_columns(columns));
  }
  Index do_scratch_bytes(ProductKind kind, const Partition& columns) const override {
    return ScratchStack::bytes_of<T>(memory_size(kind == ProductKind::forward, columns));
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const override {
    if (!has_scratch)
      kept.add(this, std::max(memory_size(true, columns), memory_size(false, columns)) * Index{sizeof(T)});
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    multiply(forward_, this->domain(), alpha, X, beta, this->range(), Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    multiply(adjoint_, this->range(), alpha, Y, beta, this->domain(), X);
  }

  /// out ← α B in + β out, summed over the parts of `in` unless `out` is cut in the same way: over all of
  /// them, or if `out` is cut as well, over those in a row or a column of the grid.
  void multiply(const LocalProduct<T>& product, const Space& from, T alpha, const ConstDistMatrix<T>& in,
                T beta, const Space& to, DistMatrix<T>& out) const {
    const ProcessGrid& grid = *to.grid;
    const Kernels<T>& kernels = grid.backend()->template kernels<T>();
    const MatrixView<T> result = out.local();
    const Index cols = result.cols;
    const Sizes sizes = sizes_for(from, to, cols);
    const ScratchArray<T> scratch(grid, has_scratch ? sizes.total() : 0);
    T* const of_given = has_scratch ? scratch.data() : memory_.data();
    T* const of_made = of_given + sizes.given;
    T* const of_part = of_made + sizes.made;
    T* const travelling = sizes.travelling > 0 ? of_part + sizes.part : nullptr;

    const auto gathered = nested_block(from, to), scattered = nested_block(to, from);
    const Axis summed = to.rows.axis == Axis::uncut ? from.rows.axis : outer_axis(from.rows.axis);
    const bool sums = summed != Axis::uncut && to.rows.axis != from.rows.axis;
    const bool in_place = alpha == T(1) && beta == T(0) && (result.contiguous() || !sums);
    MatrixView<T> made = in_place ? result : MatrixView<T>(of_made, result.rows, cols), mine = made;
    if (scattered) {
      made = {of_made, scattered->height(), cols};
      if (!in_place) mine = {of_part, result.rows, cols};
    }
    // A rank whose function throws still takes part in the sum, because the others wait for it there.
    FailureScope failures;
    MatrixView<const T> given = in.local();
    if (gathered) {
      const MatrixView<T> whole(of_given, gathered->height(), cols);
      gather_parts<T>(kernels, given, *gathered, whole, travelling);
      given = whole;
    }
    failures.run([&] {
      if (cols > 0) product(given, made);
    });
    if (scattered) {
      reduce_scatter_parts<T>(kernels, made, *scattered, ReductionOrder::any, mine, travelling);
    } else if (sums) {
      ranks_along(grid, summed).comm->all_reduce({made.data, made.size()}, ReduceOp::sum);
    }
    if (!in_place) kernels.add(alpha, MatrixView<const T>(mine), beta, result);
    failures.close(grid.comm());
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
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
