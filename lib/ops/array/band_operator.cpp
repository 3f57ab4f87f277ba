// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/array_operators.hpp"

#include <memory>
#include <utility>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "ops/array/line_product.hpp"
#include "ops/operator/array_products.hpp"

namespace gridlops {

namespace {

/// Which rows of a band need what.
struct BandShape {
  Index n, lower, upper;

  Range within(Range rows, Range columns) const {
    const Index begin = columns.begin == 0 ? 0 : columns.begin + lower;
    const Index end = columns.end() == n ? n : columns.end() - upper;
    return begin < end ? Range{begin, end - begin} : Range{rows.begin, 0};
  }
  Range needed(Range rows) const {
    return intersect(Range{rows.begin - lower, rows.size + lower + upper}, Range{0, n});
  }
};

/// A band in the memory of a backend.
template <Scalar T>
class BandLines {
 public:
  explicit BandLines(Band band) : band_(std::move(band)) {}

  void reserve(const std::shared_ptr<Backend>& backend) const {
    if (weights_.size() == 0) weights_ = uploaded<Real<T>>(backend, band_.weights());
  }
  void add(const ArrayKernels<T>& kernels, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y,
           const LineExtent& extent) const {
    const BandWeights<Real<T>> A{weights_.data(), band_.size(),
                                 -band_.lower(),  band_.lower() + 1 + band_.upper(),
                                 band_.head(),    band_.tail()};
    kernels.add_band(alpha, A, X, beta, Y, extent);
  }

 private:
  Band band_;
  mutable Buffer<Real<T>> weights_;
};

template <Scalar T>
LineProduct<T, BandLines<T>> product_with(Band band, const Space& space, int dim) {
  const BandShape shape{band.size(), band.lower(), band.upper()};
  return {space, space, dim, shape, BandLines<T>(std::move(band))};
}

}  // namespace

template <Scalar T>
OperatorPtr<T> band_operator(const Space& space, int dim, const Band& band) {
  require_dims(space, "a band");
  require<ShapeError>(0 <= dim && dim < space.dims.count() && space.dims.size(dim) == band.size(),
                      "a band of order ", band.size(), " does not fit dimension ", dim, " of an array of ",
                      space.dims.describe(), "; dimensions are numbered from 0");
  return std::make_shared<LineOperator<T, BandLines<T>>>(space, space, product_with<T>(band, space, dim),
                                                         product_with<T>(band.transposed(), space, dim));
}

template <Scalar T>
OperatorPtr<T> laplacian(const Space& space, const std::vector<LaplacianTerm>& terms, Derivative::Kind kind,
                         bool edge) {
  require_dims(space, "a Laplacian");
  require<UsageError>(!terms.empty(), "a Laplacian needs at least one term");
  OperatorPtr<T> result;
  for (const LaplacianTerm& term : terms) {
    require<ShapeError>(0 <= term.dim && term.dim < space.dims.count(), "a Laplacian of an array of ",
                        space.dims.describe(), " has no term for dimension ", term.dim);
    const Band band = second_derivative(space.dims.size(term.dim), {kind, term.sampling, edge});
    OperatorPtr<T> one = scale(to_scalar<T>(term.weight), band_operator<T>(space, term.dim, band));
    result = result == nullptr ? one : sum(result, one);
  }
  return result;
}

template <Scalar T>
OperatorPtr<T> gradient(const Space& space, const std::vector<double>& sampling, Derivative::Kind kind,
                        bool edge) {
  require_dims(space, "a gradient");
  require<ShapeError>(static_cast<int>(sampling.size()) == space.dims.count(), "a gradient with ",
                      sampling.size(), " samplings does not fit an array of ", space.dims.describe(),
                      "; it needs one for each dimension");
  std::vector<OperatorPtr<T>> derivatives;
  for (int dim = 0; dim < space.dims.count(); ++dim)
    derivatives.push_back(band_operator<T>(
        space, dim, first_derivative(space.dims.size(dim), {kind, sampling[at(dim)], edge})));
  return vertical_stack(std::move(derivatives));
}

#define GRIDLOPS_INSTANTIATE(T)                                                                        \
  template OperatorPtr<T> band_operator(const Space&, int, const Band&);                               \
  template OperatorPtr<T> laplacian(const Space&, const std::vector<LaplacianTerm>&, Derivative::Kind, \
                                    bool);                                                             \
  template OperatorPtr<T> gradient(const Space&, const std::vector<double>&, Derivative::Kind, bool);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
