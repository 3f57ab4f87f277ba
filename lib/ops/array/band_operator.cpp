// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/array_operators.hpp"

#include <algorithm>
#include <cmath>
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
  explicit BandLines(Band band) : band_(std::move(band)), is_toeplitz_(is_toeplitz(band_)) {}

  void reserve(const std::shared_ptr<Backend>& backend) const {
    if (weights_.size() == 0) weights_ = uploaded<Real<T>>(backend, band_.weights());
  }
  Index kept_bytes() const { return static_cast<Index>(band_.weights().size() * sizeof(Real<T>)); }
  void add(const ArrayKernels<T>& kernels, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y,
           const LineExtent& extent) const {
    kernels.add_band(alpha, weights(), X, beta, Y, extent);
  }
  /// The weights, once reserve() has taken their memory.
  BandWeights<Real<T>> weights() const {
    return {weights_.data(), band_.size(), -band_.lower(), band_.lower() + 1 + band_.upper(),
            band_.head(),    band_.tail(), is_toeplitz_};
  }

 private:
  /// Whether all rows have the weights of those in the middle, which are finite.
  static bool is_toeplitz(const Band& band) {
    const Index n = band.size(), middle = band.head();
    if (middle + band.tail() >= n) return false;
    for (Index j = middle - band.lower(); j <= middle + band.upper(); ++j)
      if (!std::isfinite(static_cast<Real<T>>(band(middle, j)))) return false;
    for (const Range rows : {Range{0, middle}, Range{n - band.tail(), band.tail()}})
      for (Index i = rows.begin; i < rows.end(); ++i)
        for (Index j = std::max<Index>(0, i - band.lower()); j <= std::min(n - 1, i + band.upper()); ++j)
          if (band(i, j) != band(middle, middle + j - i)) return false;
    return true;
  }

  Band band_;
  bool is_toeplitz_;
  mutable Buffer<Real<T>> weights_;
};

template <Scalar T>
using BandProduct = LineProduct<T, BandLines<T>>;

template <Scalar T>
BandProduct<T> product_with(Band band, const Space& space, int dim) {
  const BandShape shape{band.size(), band.lower(), band.upper()};
  return {space, space, dim, shape, BandLines<T>(std::move(band))};
}

Band multiple(double factor, const Band& A) {
  return {A.size(), A.lower(), A.upper(),
          A.head(), A.tail(),  [&](Index i, Index j) { return factor * A(i, j); }};
}

/// The sum of products with bands along dimensions of a space. Reads X and writes Y once, but for the rows
/// that need data of other ranks.
template <Scalar T>
class BandSum {
 public:
  explicit BandSum(std::vector<BandProduct<T>> terms) : terms_(std::move(terms)) {
    // The first term sets all rows of Y, if there is one that waits for no other rank.
    std::stable_partition(terms_.begin(), terms_.end(),
                          [](const BandProduct<T>& term) { return !term.sends(); });
  }

  void reserve() const {
    for (const BandProduct<T>& term : terms_) term.reserve();
  }
  Index kept_bytes() const {
    return sum_of_terms([](const BandProduct<T>& term) { return term.kept_bytes(); });
  }
  Index memory_size(Index columns) const {
    return sum_of_terms([&](const BandProduct<T>& term) { return term.memory_size(columns); });
  }
  void multiply(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y, T* memory) const {
    std::vector<T*> memory_of;
    for (const BandProduct<T>& term : terms_)
      memory_of.push_back(std::exchange(memory, memory + term.memory_size(X.cols)));
    std::size_t begin = 0;
    if (terms_.front().sends()) {
      terms_[begin++].multiply(alpha, X, beta, Y, memory_of.front());
      beta = T(1);
    }
    std::vector<Request> requests;
    std::vector<BandTerm<Real<T>>> here;
    for (std::size_t k = begin; k < terms_.size(); ++k) {
      requests.push_back(terms_[k].start(X, memory_of[k]));
      here.push_back({terms_[k].lines().weights(), terms_[k].extent()});
    }
    terms_.front().kernels().add_bands(alpha, here, X, beta, Y);
    for (std::size_t k = begin; k < terms_.size(); ++k)
      terms_[k].finish(std::move(requests[k - begin]), alpha, X, T(1), Y, memory_of[k]);
  }

 private:
  template <class Number>
  Index sum_of_terms(const Number& number) const {
    Index sum = 0;
    for (const BandProduct<T>& term : terms_) sum += number(term);
    return sum;
  }

  std::vector<BandProduct<T>> terms_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> band_operator(const Space& space, int dim, const Band& band) {
  require_dims(space, "a band");
  require<ShapeError>(0 <= dim && dim < space.dims.count() && space.dims.size(dim) == band.size(),
                      "a band of order ", band.size(), " does not fit dimension ", dim, " of an array of ",
                      space.dims.describe(), "; dimensions are numbered from 0");
  return std::make_shared<LineOperator<T, BandProduct<T>>>(space, space, product_with<T>(band, space, dim),
                                                           product_with<T>(band.transposed(), space, dim));
}

template <Scalar T>
OperatorPtr<T> laplacian(const Space& space, const std::vector<LaplacianTerm>& terms, Derivative::Kind kind,
                         bool edge) {
  require_dims(space, "a Laplacian");
  require<UsageError>(!terms.empty(), "a Laplacian needs at least one term");
  std::vector<BandProduct<T>> forward, adjoint;
  for (const LaplacianTerm& term : terms) {
    require<ShapeError>(0 <= term.dim && term.dim < space.dims.count(), "a Laplacian of an array of ",
                        space.dims.describe(), " has no term for dimension ", term.dim);
    const Band band =
        multiple(term.weight, second_derivative(space.dims.size(term.dim), {kind, term.sampling, edge}));
    forward.push_back(product_with<T>(band, space, term.dim));
    adjoint.push_back(product_with<T>(band.transposed(), space, term.dim));
  }
  return std::make_shared<LineOperator<T, BandSum<T>>>(space, space, BandSum<T>(std::move(forward)),
                                                       BandSum<T>(std::move(adjoint)));
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
