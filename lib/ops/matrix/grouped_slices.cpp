// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "dist/box_exchange.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/ops/slice_groups.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/matrix/stationary_product.hpp"
#include "ops/operator/array_products.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class GroupedSlices final : public LibraryOperator<T> {
 public:
  GroupedSlices(const SliceGroups& groups, std::vector<DistMatrix<T>> A, const MatrixMultOptions& options)
      : LibraryOperator<T>(groups.data().space, groups.models().space), own_grid_(groups.own_grid()) {
    if (!own_grid_->is_member()) return;
    product_ = std::make_unique<StationaryProduct<T>>(*own_grid_, reduction_order(options));
    Range models, data;
    for (DistMatrix<T>& matrix : A) {
      const Space model_space = domain_nested(matrix), data_space = range_nested(matrix);
      models = {models.end(), model_space.local_rows()};
      data = {data.end(), data_space.local_rows()};
      slices_.push_back({MatrixBlock<T>(std::move(matrix), options), model_space.rows.partition,
                         data_space.rows.partition, models, data});
    }
  }

 private:
  /// A matrix, how its models and data are cut over the group, and which rows of this rank's block they are.
  struct Slice {
    MatrixBlock<T> A;
    Partition model_parts, data_parts;
    Range models, data;
  };

  CutBlock models_of(const Slice& slice) const {
    return {own_grid_->col_comm(), slice.model_parts, own_grid_->my_col() * own_grid_->rows()};
  }
  CutBlock data_of(const Slice& slice) const {
    return {own_grid_->row_comm(), slice.data_parts, own_grid_->my_row() * own_grid_->cols()};
  }

  void do_connect(Op) const override {
    if (product_ != nullptr) product_->connect();
  }
  void do_reserve(Op op, const Partition& columns) const override {
    for (Slice& slice : slices_)
      product_->reserve(op, slice.A, models_of(slice), data_of(slice), columns.total());
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    for (Slice& slice : slices_)
      product_->multiply(Op::none, alpha, slice.A, models_of(slice), data_of(slice),
                         X.local().row_block(slice.models), beta, Y.local().row_block(slice.data));
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    for (Slice& slice : slices_)
      product_->multiply(Op::adjoint, alpha, slice.A, models_of(slice), data_of(slice),
                         Y.local().row_block(slice.data), beta, X.local().row_block(slice.models));
  }

  std::shared_ptr<const ProcessGrid> own_grid_;
  std::unique_ptr<StationaryProduct<T>> product_;  // null on ranks without a group
  mutable std::vector<Slice> slices_;
};

/// Fetches a rank's rows of each of its slices.
template <Scalar T>
class IntoGroups final : public LibraryOperator<T> {
 public:
  IntoGroups(const GroupedSpace& to, const Space& from) : LibraryOperator<T>(to.space, from) {
    const ProcessGrid& grid = *from.grid;
    if (!grid.is_member()) return;
    std::vector<BoxesOfRank> boxes;
    for (int rank = 0; rank < grid.shape().size(); ++rank) {
      boxes.push_back({{from.rows.partition.range(rank)}, {}});
      for (const Range& rows : to.rows[at(rank)]) boxes.back().wants.push_back({rows});
    }
    own_rows_ = to.rows[at(grid.comm().rank())];
    exchange_.emplace(grid.backend(), &grid.comm(), boxes);
  }

 private:
  void do_reserve(Op, const Partition& columns) const override { exchange_->reserve(columns.total()); }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    exchange_->finish_fetch(exchange_->start_fetch(X.local()), alpha, X.local(), beta, by_slice(Y.local()));
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    multiply_by(beta, X);
    exchange_->sum_back(alpha, by_slice(Y.local()), X.local());
  }

  template <class E>
  std::vector<MatrixView<E>> by_slice(MatrixView<E> block) const {
    std::vector<MatrixView<E>> slices;
    Index row = 0;
    for (const Range& rows : own_rows_) {
      slices.push_back(block.row_block({row, rows.size}));
      row += rows.size;
    }
    return slices;
  }

  std::vector<Range> own_rows_;
  std::optional<BoxExchange<T>> exchange_;
};

template <Scalar T>
void require_own_slices(const SliceGroups& groups, const std::vector<DistMatrix<T>>& A) {
  const Range own = groups.own_slices();
  require<ShapeError>(static_cast<Index>(A.size()) == own.size, "this rank's group shares ", own.size,
                      " slices, but the rank passes ", A.size(),
                      " matrices; allocate_slices() makes one for each");
  for (Index k = 0; k < own.size; ++k) {
    const DistMatrix<T>& matrix = A[at(k)];
    const ProductShape& slice = groups.slices()[at(own.begin + k)];
    require<ShapeError>(matrix.grid() == groups.own_grid(), "the matrix of slice ", own.begin + k,
                        " is not on the grid of this rank's group; make it on own_grid()");
    const Layout needed = matrix_layout(Algorithm::stationary_a, *groups.own_grid(), slice.rows, slice.cols);
    require<ShapeError>(matrix.layout() == needed, "the matrix of slice ", own.begin + k, " is ",
                        matrix.layout().describe(), ", but must be ", needed.describe(),
                        "; allocate_slices() makes it so");
  }
}

}  // namespace

template <Scalar T>
OperatorPtr<T> grouped_slices(const SliceGroups& groups, std::vector<DistMatrix<T>> A,
                              const MatrixMultOptions& options) {
  const auto check = [&] { require_own_slices(groups, A); };
  if (groups.grid()->is_member())
    attempt(groups.grid()->comm(), check);
  else
    check();
  return std::make_shared<GroupedSlices<T>>(groups, std::move(A), options);
}

template <Scalar T>
OperatorPtr<T> into_groups(const GroupedSpace& to, const Space& from) {
  const Space& space = to.space;
  require<ShapeError>(from.grid == space.grid && from.rows.axis == Axis::all && from.columns == Axis::uncut &&
                          from.dimension() == space.dimension() && from.dims.ordered_as(Dims()),
                      "vectors of ", from.describe(), from.grid == space.grid ? "" : " on another grid",
                      " cannot be moved into groups of ranks, which have ", space.describe(),
                      "; slices must lie one after the other, cut along all, with uncut columns");
  return std::make_shared<IntoGroups<T>>(to, from);
}

#define GRIDLOPS_INSTANTIATE(T)                                                          \
  template OperatorPtr<T> grouped_slices(const SliceGroups&, std::vector<DistMatrix<T>>, \
                                         const MatrixMultOptions&);                      \
  template OperatorPtr<T> into_groups(const GroupedSpace&, const Space&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
