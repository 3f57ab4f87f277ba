// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/array_operators.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "dist/axis_ranks.hpp"
#include "dist/box_exchange.hpp"
#include "gridlops/error.hpp"
#include "gridlops/operator_algebra.hpp"
#include "local/array_kernels.hpp"
#include "ops/recut.hpp"

namespace gridlops {

namespace {

/// Y ← β Y.
template <Scalar T>
void multiply_by(T beta, DistMatrix<T>& Y) {
  if (beta == T(1)) return;
  if (beta == T(0)) return Y.set_zero();
  const ConstDistMatrix<T>& old = Y;
  Y.grid()->backend()->template kernels<T>().add(beta, old.local(), T(0), Y.local());
}

/// The exchange in which each rank that holds a part of the space wants what `wants` makes of its block.
template <Scalar T, class Wants>
BoxExchange<T> exchange_in(const Space& space, Wants&& wants) {
  const AxisRanks ranks = ranks_along(*space.grid, space.rows.axis);
  std::vector<BoxesOfRank> boxes;
  for (const int part : ranks.parts) boxes.push_back({space.dims.block(part), wants(part)});
  return {space.grid->backend(), ranks.comm, boxes};
}

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

  /// Y ← α A X + β Y. The rows that need only this rank's block are computed while the others' travel.
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
class BandOperator final : public LinearOperator<T> {
 public:
  BandOperator(const Space& space, int dim, const Band& band)
      : LinearOperator<T>(space, space),
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

void require_dims(const Space& space, const char* what) {
  require<ShapeError>(space.dims.count() > 0, what, " needs a space of arrays, but this one, ",
                      space.describe(), ", has no dimensions; make it with array_space()");
}

/// The box with the halo that these widths give it.
Box with_halo(const Box& block, const HaloWidths& widths, const Dims& dims) {
  Box larger = block;
  for (std::size_t d = 0; d < block.size(); ++d) {
    larger[d] = {block[d].begin - widths.before[d], block[d].size + widths.before[d] + widths.behind[d]};
    if (!widths.beyond_array) larger[d] = intersect(larger[d], {0, dims.size(static_cast<int>(d))});
  }
  return larger;
}

template <Scalar T>
class Halo final : public LinearOperator<T> {
 public:
  Halo(const Space& space, const HaloWidths& widths)
      : LinearOperator<T>(halo_space(space, widths), space), covers_(!widths.beyond_array) {
    if (!space.grid->is_member()) return;
    exchange_.emplace(exchange_in<T>(space, [&](int part) {
      return std::vector<Box>{with_halo(space.dims.block(part), widths, space.dims)};
    }));
  }

 private:
  void do_reserve(Op, const Partition& columns) const override {
    exchange_->reserve(this->domain().local_columns(columns));
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    Request request = exchange_->start_fetch(X.local());
    if (!covers_) multiply_by(beta, Y);
    exchange_->finish_fetch(std::move(request), alpha, X.local(), covers_ ? beta : T(1), {Y.local()});
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    multiply_by(beta, X);
    exchange_->sum_back(alpha, {Y.local()}, X.local());
  }
  bool covers_;  // whether every cell of a block with its halo is a cell of the array
  std::optional<BoxExchange<T>> exchange_;
};

/// From blocks with halos to blocks. Every rank exchanges with itself only.
template <Scalar T>
class Crop final : public LinearOperator<T> {
 public:
  Crop(const Space& space, const HaloWidths& widths) : LinearOperator<T>(space, halo_space(space, widths)) {
    if (!space.grid->is_member()) return;
    const Box block = space.local_box();
    blocks_.emplace(space.grid->backend(), nullptr,
                    std::vector<BoxesOfRank>{{block, {with_halo(block, widths, space.dims)}}});
  }

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    multiply_by(beta, Y);
    blocks_->sum_back(alpha, {X.local()}, Y.local());
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    multiply_by(beta, X);
    blocks_->finish_fetch({}, alpha, Y.local(), T(1), {X.local()});
  }
  std::optional<BoxExchange<T>> blocks_;
};

/// Samples of a block that are as far apart as the first two of them, along one dimension.
struct Samples {
  Index first = 0, step = 1, count = 0;
  Index in_range = 0;  // where the first lies among those that are kept
};

template <Scalar T>
class Restriction final : public LinearOperator<T> {
 public:
  Restriction(const Space& space, int dim, const std::vector<Index>& indices)
      : LinearOperator<T>(restricted_space(space, dim, indices), space) {
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

  /// How far columns are apart, and in units of `inner` elements slices and samples.
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

/// From an array to the same one, cut elsewhere.
template <Scalar T>
class Recut final : public LinearOperator<T> {
 public:
  Recut(Space range, Space domain) : LinearOperator<T>(std::move(range), std::move(domain)) {
    const Space &data = this->range(), &model = this->domain();
    require<ShapeError>(data.dims.sizes() == model.dims.sizes(), "an identity from ", model.describe(),
                        " to ", data.describe(),
                        " is impossible: the two must be one array, cut in different ways");
    if (!data.grid->is_member()) return;
    forward_.emplace(between(model, data));
    adjoint_.emplace(between(data, model));
  }

 private:
  /// Where columns are cut, among the ranks that have the same columns as this one.
  static BoxExchange<T> between(const Space& from, const Space& to) {
    const ProcessGrid& grid = *from.grid;
    const Layout layout = from.layout(0);
    std::vector<BoxesOfRank> boxes;
    const bool along_rows = from.columns == Axis::grid_rows, along_cols = from.columns == Axis::grid_cols;
    for (int row = 0; row < grid.rows(); ++row) {
      for (int col = 0; col < grid.cols(); ++col) {
        if ((along_rows && row != grid.my_row()) || (along_cols && col != grid.my_col())) continue;
        BoxesOfRank rank{{}, {to.dims.block(grid.part_at(to.rows.axis, row, col))}};
        if (layout.owned_at(grid, row, col))
          rank.has = from.dims.block(grid.part_at(from.rows.axis, row, col));
        boxes.push_back(std::move(rank));
      }
    }
    return {grid.backend(),
            along_rows   ? &grid.row_comm()
            : along_cols ? &grid.col_comm()
                         : &grid.comm(),
            boxes};
  }
  void do_reserve(Op op, const Partition& columns) const override {
    (op == Op::none ? forward_ : adjoint_)->reserve(this->domain().local_columns(columns));
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    forward_->finish_fetch(forward_->start_fetch(X.local()), alpha, X.local(), beta, {Y.local()});
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    adjoint_->finish_fetch(adjoint_->start_fetch(Y.local()), alpha, Y.local(), beta, {X.local()});
  }
  std::optional<BoxExchange<T>> forward_, adjoint_;
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

Space halo_space(const Space& space, const HaloWidths& widths) {
  require_dims(space, "a halo");
  const Dims& dims = space.dims;
  const auto count = static_cast<std::size_t>(dims.count());
  require<ShapeError>(widths.before.size() == count && widths.behind.size() == count, "a halo of ",
                      widths.before.size(), " and ", widths.behind.size(),
                      " widths does not fit an array of ", dims.describe(),
                      "; it needs two for each dimension, before and behind");
  std::vector<Partition> cuts;
  for (std::size_t d = 0; d < count; ++d) {
    require<UsageError>(widths.before[d] >= 0 && widths.behind[d] >= 0,
                        "the widths of a halo along dimension ", d, " are ", widths.before[d], " and ",
                        widths.behind[d], "; they must not be negative");
    std::vector<Index> sizes;
    const Partition& cut = dims.cut(static_cast<int>(d));
    for (int part = 0; part < cut.parts(); ++part) {
      const Range own = cut.range(part);
      const Range larger{own.begin - widths.before[d], own.size + widths.before[d] + widths.behind[d]};
      sizes.push_back((widths.beyond_array ? larger : intersect(larger, {0, cut.total()})).size);
    }
    cuts.push_back(Partition::with_sizes(sizes));
  }
  return array_space(space.grid, Dims(std::move(cuts)), space.rows.axis, space.columns);
}

template <Scalar T>
OperatorPtr<T> halo(const Space& space, const HaloWidths& widths) {
  return std::make_shared<Halo<T>>(space, widths);
}

template <Scalar T>
OperatorPtr<T> crop(const Space& space, const HaloWidths& widths) {
  return std::make_shared<Crop<T>>(space, widths);
}

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

template <Scalar T>
OperatorPtr<T> recut(Space range, Space domain) {
  return std::make_shared<Recut<T>>(std::move(range), std::move(domain));
}

#define GRIDLOPS_INSTANTIATE(T)                                                                        \
  template OperatorPtr<T> band_operator(const Space&, int, const Band&);                               \
  template OperatorPtr<T> laplacian(const Space&, const std::vector<LaplacianTerm>&, Derivative::Kind, \
                                    bool);                                                             \
  template OperatorPtr<T> gradient(const Space&, const std::vector<double>&, Derivative::Kind, bool);  \
  template OperatorPtr<T> halo(const Space&, const HaloWidths&);                                       \
  template OperatorPtr<T> crop(const Space&, const HaloWidths&);                                       \
  template OperatorPtr<T> restriction(const Space&, int, const std::vector<Index>&);                   \
  template OperatorPtr<T> recut(Space, Space);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
