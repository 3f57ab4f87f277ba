// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/array_operators.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "local/arrays/array_kernels.hpp"
#include "ops/operator/array_products.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// Rows of a dimension, and the box that the product with a band needs for them.
struct Edge {
  Range rows;
  Box needs;
};

/// A band in the memory of a backend, and how it is applied along one dimension of the blocks of a space.
template <Scalar T>
class BandProduct {
 public:
  BandProduct(const Space& space, int dim, Band band) : space_(space), dim_(at(dim)), band_(std::move(band)) {
    const ProcessGrid& grid = *space.grid;
    if (!grid.is_member()) return;
    box_ = space.local_box();
    interior_ = interior_of(box_);
    edges_ = edges_of(box_);
    if (space.dims.cut(dim).parts() == 1) return;
    exchange_.emplace(exchange_in<T>(space, [&](int part) {
      std::vector<Box> wants;
      for (Edge& edge : edges_of(space.dims.block(part))) wants.push_back(std::move(edge.needs));
      return wants;
    }));
  }

  void reserve(const Partition& columns) const {
    const std::shared_ptr<Backend>& backend = space_.grid->backend();
    if (weights_.size() == 0 && !band_.weights().empty()) {
      const std::vector<Real<T>> weights(band_.weights().begin(), band_.weights().end());
      Buffer<Real<T>> memory(backend, static_cast<Index>(weights.size()));
      backend->upload(weights.data(), memory.data(), memory.size() * Index{sizeof(Real<T>)});
      weights_ = std::move(memory);
    }
    if (!exchange_) return;
    const Index local_columns = space_.local_columns(columns);
    exchange_->reserve(local_columns);
    Index size = 0;
    for (const Edge& edge : edges_) size += size_of(edge.needs);
    halo_.reserve(backend, size * local_columns);
  }

  /// Y ← α A X + β Y. Computes the rows that need only this rank's block while the others' data travel.
  void multiply(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const {
    const ArrayKernels<T>& kernels = space_.grid->backend()->template kernels<T>().arrays();
    const BandWeights<Real<T>> A{weights_.data(), band_.size(),
                                 -band_.lower(),  band_.lower() + 1 + band_.upper(),
                                 band_.head(),    band_.tail()};
    BandExtent extent{1, 1, box_[dim_], box_[dim_], interior_};
    for (std::size_t d = 0; d < box_.size(); ++d)
      (d < dim_ ? extent.outer : extent.inner) *= d == dim_ ? 1 : box_[d].size;
    if (!exchange_) {
      kernels.add_band(alpha, A, X, beta, Y, extent);
      return;
    }
    Request request = exchange_->start_fetch(X);
    kernels.add_band(alpha, A, X, beta, Y, extent);
    std::vector<MatrixView<T>> fetched;
    Index begin = 0;
    for (const Edge& edge : edges_) {
      const Index size = size_of(edge.needs);
      fetched.push_back({halo_.data() + begin, size, X.cols});
      begin += size * X.cols;
    }
    exchange_->finish_fetch(std::move(request), T(1), X, T(0), fetched);
    for (std::size_t k = 0; k < edges_.size(); ++k) {
      extent.x_rows = edges_[k].needs[dim_];
      extent.rows = edges_[k].rows;
      kernels.add_band(alpha, A, fetched[k], beta, Y, extent);
    }
  }

 private:
  /// The rows of a block whose product needs nothing outside the block.
  Range interior_of(const Box& block) const {
    const Range own = block[dim_];
    const Index begin = own.begin == 0 ? 0 : own.begin + band_.lower();
    const Index end = own.end() == band_.size() ? own.end() : own.end() - band_.upper();
    return begin < end ? Range{begin, end - begin} : Range{own.begin, 0};
  }
  /// The other rows, in one or two pieces.
  std::vector<Edge> edges_of(const Box& block) const {
    if (size_of(block) == 0) return {};
    const Range own = block[dim_], interior = interior_of(block);
    std::vector<Edge> edges;
    for (const Range rows : {Range{own.begin, interior.size == 0 ? own.size : interior.begin - own.begin},
                             Range{interior.end(), interior.size == 0 ? 0 : own.end() - interior.end()}}) {
      if (rows.size == 0) continue;
      Edge edge{rows, block};
      edge.needs[dim_] =
          intersect(Range{rows.begin - band_.lower(), rows.size + band_.lower() + band_.upper()},
                    Range{0, band_.size()});
      edges.push_back(std::move(edge));
    }
    return edges;
  }

  Space space_;
  std::size_t dim_;
  Band band_;
  Box box_;
  Range interior_;
  std::vector<Edge> edges_;
  std::optional<BoxExchange<T>> exchange_;
  mutable Buffer<Real<T>> weights_;
  mutable Buffer<T> halo_;
};

template <Scalar T>
class BandOperator final : public LibraryOperator<T> {
 public:
  BandOperator(const Space& space, int dim, const Band& band)
      : LibraryOperator<T>(space, space),
        forward_(space, dim, band),
        adjoint_(space, dim, band.transposed()) {}

 private:
  void do_reserve(Op op, const Partition& columns) const override {
    (op == Op::none ? forward_ : adjoint_).reserve(columns);
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    forward_.multiply(alpha, X.local(), beta, Y.local());
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    adjoint_.multiply(alpha, Y.local(), beta, X.local());
  }
  BandProduct<T> forward_, adjoint_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> band_operator(const Space& space, int dim, const Band& band) {
  require_dims(space, "a band");
  require<ShapeError>(0 <= dim && dim < space.dims.count() && space.dims.size(dim) == band.size(),
                      "a band of order ", band.size(), " does not fit dimension ", dim, " of an array of ",
                      space.dims.describe(), "; dimensions are numbered from 0");
  return std::make_shared<BandOperator<T>>(space, dim, band);
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
