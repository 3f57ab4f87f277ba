// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/array_operators.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "ops/array/line_product.hpp"
#include "ops/operator/array_products.hpp"

namespace gridlops {

namespace {

/// The sizes that all bands of a product have in common.
struct BandShape {
  Index n, lower, upper;

  // Which rows of a band need what.
  Range within(Range rows, Range columns) const {
    const Index begin = columns.begin == 0 ? 0 : columns.begin + lower;
    const Index end = columns.end() == n ? n : columns.end() - upper;
    return begin < end ? Range{begin, end - begin} : Range{rows.begin, 0};
  }
  Range needed(Range rows) const {
    return intersect(Range{rows.begin - lower, rows.size + lower + upper}, Range{0, n});
  }

  BandShape transposed() const { return {n, upper, lower}; }
};

/// This rank's lines along a dimension.
struct LocalLines {
  Range rows;                   ///< of a matrix along them
  std::vector<Index> bands{0};  ///< the numbers of their bands: one for all, or one for each
  Index own = 0;                ///< as in BandWeights
};

/// This rank's rows of the bands of its lines, in the memory of a backend. First all bands are announced, and
/// then set, each at its place among these lines. If none is, it has no memory.
template <Scalar T>
class BandLines {
 public:
  BandLines(const BandShape& shape, const LocalLines& lines, std::shared_ptr<Backend> backend)
      : backend_(std::move(backend)),
        A_{nullptr, shape.n, -shape.lower, shape.lower + 1 + shape.upper, lines.rows, lines.rows, lines.own},
        bands_(static_cast<Index>(lines.bands.size())) {}

  /// Returns whether rows are alike in all bands that were announced.
  bool announce(const Band& band) {
    A_.alike = intersect(A_.alike, {band.head(), band.size() - band.head() - band.tail()});
    return A_.alike.size > 0;
  }
  template <class Element>
  void set(Index place, const Element& element) {
    if (place == 0) host_ = Buffer<Real<T>>(is_on_host() ? backend_ : make_host_backend(), size());
    const Index slice = place / A_.apart(), neighbour = place % A_.apart();
    A_.fill(host_.data() + A_.place_of(slice, A_.rows.begin, neighbour), element);
    if (place + 1 < bands_) return;
    A_.is_finite = std::all_of(host_.data(), host_.data() + size(),
                               [](Real<T> weight) { return std::isfinite(weight); });
  }

  /// Brings the weights to a device.
  void reserve(const std::shared_ptr<Backend>&) const {
    if (host_.size() == 0 && device_.size() == 0 && size() > 0)
      throw UsageError("bands of lines without a function are a plan, which has no products",
                       KnownTo::one_rank);
    if (is_on_host() || host_.size() == 0) return;
    device_ = Buffer<Real<T>>(backend_, size());
    backend_->upload(host_.data(), device_.data(), size() * Index{sizeof(Real<T>)});
    host_ = Buffer<Real<T>>();
  }
  Index kept_bytes() const { return size() * Index{sizeof(Real<T>)}; }
  void add(const ArrayKernels<T>& kernels, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y,
           const LineExtent& extent) const {
    kernels.add_band(alpha, weights(), X, beta, Y, extent);
  }
  /// The weights, once reserve() has taken their memory.
  BandWeights<Real<T>> weights() const {
    BandWeights<Real<T>> A = A_;
    A.data = is_on_host() ? host_.data() : device_.data();
    return A;
  }

 private:
  bool is_on_host() const { return backend_->memory_space() == MemorySpace::host; }
  Index size() const { return bands_ * A_.sets() * A_.width; }

  std::shared_ptr<Backend> backend_;
  BandWeights<Real<T>> A_;
  Index bands_;
  mutable Buffer<Real<T>> host_, device_;
};

template <Scalar T>
using BandProduct = LineProduct<T, BandLines<T>>;

/// The products with bands and with their transposes.
template <Scalar T>
struct ProductPair {
  BandProduct<T> forward, adjoint;
};
template <Scalar T, class BandOf>
ProductPair<T> products_with(const Space& space, int dim, const BandShape& shape, const LocalLines& lines,
                             const BandOf& band_of, bool is_planned = false) {
  const std::shared_ptr<Backend>& backend = space.grid->backend();
  BandLines<T> forward(shape, lines, backend), adjoint(shape.transposed(), lines, backend);
  const std::size_t known = is_planned || lines.rows.size == 0 ? 0 : lines.bands.size();
  bool are_alike = true;
  for (std::size_t k = 0; k < known && are_alike; ++k) {
    const Band& band = band_of(lines.bands[k]);
    const bool here = forward.announce(band), there = adjoint.announce(band.transposed());
    are_alike = here || there;
  }
  for (std::size_t k = 0; k < known; ++k) {
    const Band& band = band_of(lines.bands[k]);
    forward.set(static_cast<Index>(k), band);
    adjoint.set(static_cast<Index>(k), [&](Index i, Index j) { return band(j, i); });
  }
  return {{space, space, dim, shape, std::move(forward)},
          {space, space, dim, shape.transposed(), std::move(adjoint)}};
}
/// Returns the products with one band for all lines.
template <Scalar T>
ProductPair<T> products_with(const Space& space, int dim, const Band& band) {
  LocalLines lines;
  if (space.grid->is_member()) lines.rows = space.local_box()[at(dim)];
  return products_with<T>(space, dim, {band.size(), band.lower(), band.upper()}, lines,
                          [&](Index) -> const Band& { return band; });
}

template <Scalar T>
OperatorPtr<T> operator_of(const Space& space, ProductPair<T> products) {
  return std::make_shared<LineOperator<T, BandProduct<T>>>(space, space, std::move(products.forward),
                                                           std::move(products.adjoint));
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
  return operator_of<T>(space, products_with<T>(space, dim, band));
}

template <Scalar T>
OperatorPtr<T> band_operator(const Space& space, int dim, const LineBands& bands) {
  require_dims(space, "a band for each line");
  require<ShapeError>(0 <= dim && dim < space.dims.count(), "an array of ", space.dims.describe(),
                      " has no lines along dimension ", dim, "; dimensions are numbered from 0");
  require<UsageError>(bands.lower >= 0 && bands.upper >= 0, "bands with at most ", bands.lower, " and ",
                      bands.upper, " diagonals beside the main one have a negative size");
  const BandShape shape{space.dims.size(dim), bands.lower, bands.upper};
  const auto band_of = [&](Index line) {
    Band band = bands.of(line);
    if (band.size() == shape.n && band.lower() <= shape.lower && band.upper() <= shape.upper) return band;
    throw ShapeError(
        message("line ", line, " has a band of order ", band.size(), " with ", band.lower(), " and ",
                band.upper(), " diagonals below and above the main one; here the order is ", shape.n,
                ", and at most ", shape.lower, " and ", shape.upper, " were announced"),
        KnownTo::one_rank);
  };
  LocalLines lines{{}, {}, 1};
  if (space.grid->is_member()) {
    Box others = space.local_box();
    std::vector<Index> sizes = space.dims.sizes();
    lines.rows = others[at(dim)];
    for (std::size_t d = at(dim) + 1; d < others.size(); ++d) lines.own *= others[d].size;
    others.erase(others.begin() + dim);
    sizes.erase(sizes.begin() + dim);
    lines.own = std::max<Index>(1, lines.own);  // also where there are no lines
    lines.bands = elements_of(others, sizes);
  }
  return operator_of<T>(space, products_with<T>(space, dim, shape, lines, band_of, !bands.of));
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
    ProductPair<T> products = products_with<T>(space, term.dim, band);
    forward.push_back(std::move(products.forward));
    adjoint.push_back(std::move(products.adjoint));
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
  template OperatorPtr<T> band_operator(const Space&, int, const LineBands&);                          \
  template OperatorPtr<T> laplacian(const Space&, const std::vector<LaplacianTerm>&, Derivative::Kind, \
                                    bool);                                                             \
  template OperatorPtr<T> gradient(const Space&, const std::vector<double>&, Derivative::Kind, bool);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
