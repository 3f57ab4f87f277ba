// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <optional>
#include <utility>

#include "base/instantiate.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "ops/operator/array_products.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// The box including its halo of these widths.
Box with_halo(const Box& block, const HaloWidths& widths, const Dims& dims) {
  Box larger = block;
  for (std::size_t d = 0; d < block.size(); ++d) {
    larger[d] = {block[d].begin - widths.before[d], block[d].size + widths.before[d] + widths.behind[d]};
    if (!widths.beyond_array) larger[d] = intersect(larger[d], {0, dims.size(static_cast<int>(d))});
  }
  return larger;
}

template <Scalar T>
class Halo final : public LibraryOperator<T> {
 public:
  Halo(const Space& space, const HaloWidths& widths)
      : LibraryOperator<T>(halo_space(space, widths), space), covers_(!widths.beyond_array) {
    if (!space.grid->is_member()) return;
    exchange_.emplace(exchange_in<T>(space, [&](int part) {
      return std::vector<Box>{with_halo(space.dims.block(part), widths, space.dims)};
    }));
  }

 private:
  Index do_scratch_bytes(ProductKind, const Partition& columns) const override {
    return ScratchStack::bytes_of<T>(exchange_->memory_size(this->domain().local_columns(columns)));
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    const ScratchArray<T> memory(*X.grid(), exchange_->memory_size(X.local().cols));
    Request request = exchange_->start_fetch(X.local(), memory.data());
    if (!covers_) multiply_by(beta, Y);
    exchange_->finish_fetch(std::move(request), alpha, X.local(), covers_ ? beta : T(1), {Y.local()},
                            memory.data());
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    const ScratchArray<T> memory(*X.grid(), exchange_->memory_size(X.local().cols));
    multiply_by(beta, X);
    exchange_->sum_back(alpha, {Y.local()}, X.local(), memory.data());
  }
  bool covers_;  // whether every cell of a block with its halo is a cell of the array
  std::optional<BoxExchange<T>> exchange_;
};

/// Maps blocks with halos to blocks. Every rank exchanges only with itself.
template <Scalar T>
class Crop final : public LibraryOperator<T> {
 public:
  Crop(const Space& space, const HaloWidths& widths) : LibraryOperator<T>(space, halo_space(space, widths)) {
    if (!space.grid->is_member()) return;
    const Box block = space.local_box();
    blocks_.emplace(space.grid->backend(), nullptr,
                    std::vector<BoxesOfRank>{{block, {with_halo(block, widths, space.dims)}}});
  }

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    multiply_by(beta, Y);
    blocks_->sum_back(alpha, {X.local()}, Y.local(), nullptr);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    multiply_by(beta, X);
    blocks_->finish_fetch({}, alpha, Y.local(), T(1), {X.local()}, nullptr);
  }
  std::optional<BoxExchange<T>> blocks_;
};

}  // namespace

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

#define GRIDLOPS_INSTANTIATE(T)                                  \
  template OperatorPtr<T> halo(const Space&, const HaloWidths&); \
  template OperatorPtr<T> crop(const Space&, const HaloWidths&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
