// SPDX-License-Identifier: BSD-3-Clause
#include "ops/array/run_operator.hpp"

#include <memory>
#include <utility>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "ops/array/line_product.hpp"

namespace gridlops {

namespace {

/// Rows of a matrix of runs in the memory of a backend.
template <Scalar T>
class RunLines {
 public:
  explicit RunLines(RunMatrix rows) : rows_(std::move(rows)) {}

  void reserve(const std::shared_ptr<Backend>& backend) const {
    if (first_.size() > 0) return;
    Buffer<Index> begin = uploaded<Index>(backend, rows_.begin());
    Buffer<Real<T>> weights = uploaded<Real<T>>(backend, rows_.weights());
    first_ = uploaded<Index>(backend, rows_.first());
    begin_ = std::move(begin);
    weights_ = std::move(weights);
  }
  Index kept_bytes() const {
    return static_cast<Index>((rows_.first().size() + rows_.begin().size()) * sizeof(Index) +
                              rows_.weights().size() * sizeof(Real<T>));
  }
  void add(const ArrayKernels<T>& kernels, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y,
           const LineExtent& extent) const {
    const RunWeights<Real<T>> A{rows_.rows(), weights_.size(), first_.data(), begin_.data(), weights_.data()};
    kernels.add_runs(alpha, A, X, beta, Y, extent);
  }

 private:
  RunMatrix rows_;
  mutable Buffer<Index> first_, begin_;
  mutable Buffer<Real<T>> weights_;
};

template <Scalar T>
LineProduct<T, RunLines<T>> product_with(const RunMatrix& matrix, const Space& to, const Space& from,
                                         int dim) {
  const Range own = to.grid->is_member() ? to.local_box()[at(dim)] : Range{};
  return {to, from, dim, matrix, RunLines<T>(matrix.part(own))};
}

}  // namespace

Space space_of_samples(const Space& space, int dim, const std::vector<Index>& indices) {
  std::vector<Partition> cuts = space.dims.cuts();
  std::vector<Index> sizes(at(cuts[at(dim)].parts()), 0);
  for (const Index index : indices) ++sizes[at(cuts[at(dim)].owner_of(index))];
  cuts[at(dim)] = Partition::with_sizes(sizes);
  return array_space(space.grid, Dims(std::move(cuts)), space.rows.axis, space.columns);
}

template <Scalar T>
OperatorPtr<T> run_operator(const Space& range, const Space& domain, int dim, const RunMatrix& matrix) {
  return std::make_shared<LineOperator<T, LineProduct<T, RunLines<T>>>>(
      range, domain, product_with<T>(matrix, range, domain, dim),
      product_with<T>(matrix.transposed(), domain, range, dim));
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> run_operator(const Space&, const Space&, int, const RunMatrix&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
