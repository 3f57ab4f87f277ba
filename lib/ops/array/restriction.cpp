// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <utility>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "local/arrays/array_kernels.hpp"
#include "ops/operator/array_products.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// Equally spaced samples of a block along one dimension; the first two define the spacing.
struct Samples {
  Index first = 0, step = 1, count = 0;
  Index in_range = 0;  // position of the first sample among those kept
};

template <Scalar T>
class Restriction final : public LibraryOperator<T> {
 public:
  Restriction(const Space& space, int dim, const std::vector<Index>& indices)
      : LibraryOperator<T>(restricted_space(space, dim, indices), space) {
    if (!space.grid->is_member()) return;
    const Box box = space.local_box(), kept = this->range().local_box();
    for (std::size_t d = 0; d < box.size(); ++d)
      if (d != at(dim)) (d < at(dim) ? outer_ : inner_) *= box[d].size;
    rows_ = box[at(dim)].size;
    kept_rows_ = kept[at(dim)].size;
    for (Index k = 0; k < kept_rows_; ++k) {
      const Index index = indices[at(kept[at(dim)].begin + k)] - box[at(dim)].begin;
      Samples* const last = samples_.empty() ? nullptr : &samples_.back();
      if (last != nullptr && last->count == 1) last->step = index - last->first;
      if (last != nullptr && index == last->first + last->count * last->step) {
        ++last->count;
      } else {
        samples_.push_back({index, 1, 1, k});
      }
    }
  }

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    const MatrixView<const T> x = X.local();
    const MatrixView<T> y = Y.local();
    const ArrayKernels<T>& kernels = Y.grid()->backend()->template kernels<T>().arrays();
    for (const Samples& samples : samples_)
      if (inner_ > 0)
        kernels.add_box(alpha, x.data + samples.first * inner_, beta, y.data + samples.in_range * inner_,
                        loops(samples, x.cols, {x.stride, rows_, samples.step}, {y.stride, kept_rows_, 1}));
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    multiply_by(beta, X);
    const MatrixView<const T> y = Y.local();
    const MatrixView<T> x = X.local();
    const ArrayKernels<T>& kernels = Y.grid()->backend()->template kernels<T>().arrays();
    for (const Samples& samples : samples_)
      if (inner_ > 0)
        kernels.add_box(alpha, y.data + samples.in_range * inner_, T(1), x.data + samples.first * inner_,
                        loops(samples, x.cols, {y.stride, kept_rows_, 1}, {x.stride, rows_, samples.step}));
  }

  /// The distance between columns, and, in units of `inner` elements, between slices and between samples.
  struct Strides {
    Index column, slice, sample;
  };
  BoxLoops loops(const Samples& samples, Index columns, Strides from, Strides to) const {
    BoxLoops box;
    box.add(columns, from.column, to.column);
    box.add(outer_, from.slice * inner_, to.slice * inner_);
    box.add(samples.count, from.sample * inner_, to.sample * inner_);
    box.add(inner_, 1, 1);
    return box;
  }

  Index outer_ = 1, inner_ = 1, rows_ = 0, kept_rows_ = 0;
  std::vector<Samples> samples_;
};

}  // namespace

Space restricted_space(const Space& space, int dim, const std::vector<Index>& indices) {
  require_dims(space, "a restriction");
  const Dims& dims = space.dims;
  require<ShapeError>(0 <= dim && dim < dims.count(), "an array of ", dims.describe(),
                      " cannot be restricted along dimension ", dim, "; they are numbered from 0");
  for (std::size_t k = 0; k < indices.size(); ++k)
    require<UsageError>(
        0 <= indices[k] && indices[k] < dims.size(dim) && (k == 0 || indices[k - 1] < indices[k]),
        "index number ", k, " of a restriction is ", indices[k], "; indices must increase and be from 0 to ",
        dims.size(dim) - 1);
  std::vector<Partition> cuts;
  for (int d = 0; d < dims.count(); ++d) cuts.push_back(dims.cut(d));
  std::vector<Index> sizes(at(dims.cut(dim).parts()), 0);
  for (const Index index : indices) ++sizes[at(dims.cut(dim).owner_of(index))];
  cuts[at(dim)] = Partition::with_sizes(sizes);
  return array_space(space.grid, Dims(std::move(cuts)), space.rows.axis, space.columns);
}

template <Scalar T>
OperatorPtr<T> restriction(const Space& space, int dim, const std::vector<Index>& indices) {
  return std::make_shared<Restriction<T>>(space, dim, indices);
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> restriction(const Space&, int, const std::vector<Index>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
