// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/lone_error.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "dist/box_exchange.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/ops/slice_groups.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/operator/array_products.hpp"
#include "ops/operator/library_operator.hpp"
#include "ops/stationary/matrix_block.hpp"
#include "ops/stationary/stationary_products.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class GroupedSlices final : public LibraryOperator<T> {
 public:
  GroupedSlices(const SliceGroups& groups, std::vector<DistMatrix<T>> A, const MatrixMultOptions& options)
      : LibraryOperator<T>(groups.data().space, groups.models().space),
        own_grid_(groups.own_grid()),
        is_packed_(stays_packed(options, *own_grid_->backend())),
        products_(own_products<T>(*own_grid_, reduction_order(options))) {
    if (!own_grid_->is_member()) return;
    Range models, data;
    for (DistMatrix<T>& matrix : A) {
      const Space model_space = domain_nested(matrix), data_space = range_nested(matrix);
      models = {models.end(), model_space.local_rows()};
      data = {data.end(), data_space.local_rows()};
      slices_.push_back({std::make_unique<MatrixBlock<T>>(std::move(matrix), options),
                         model_space.rows.partition, data_space.rows.partition, models, data});
    }
  }

  bool has_one_pass() const override { return is_packed_; }

 private:
  /// A matrix, how its models and data are cut over the group, and which rows of this rank's block they are.
  struct Slice {
    std::unique_ptr<MatrixBlock<T>> A;
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
    if (products_ != nullptr) products_->connect();
  }
  void do_reserve(Op op, const Partition& columns) const override {
    reserve(op == Op::none ? ProductKind::forward : ProductKind::adjoint, columns);
  }
  void do_reserve_normal_product(const Partition& columns) const override {
    reserve(ProductKind::normal, columns);
  }
  void reserve(ProductKind kind, const Partition& columns) const {
    for (const Slice& slice : slices_) {
      slice.A->reserve(kind, columns.total());
      products_->reserve(kind, models_of(slice), data_of(slice), columns.total());
    }
  }
  /// The workspace of products is exact if all slices have one shape.
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const override {
    const ProcessGrid& grid = *own_grid_;
    for (const Slice& slice : slices_) {
      slice.A->add_kept_bytes(kept);
      const ProductShape shape{slice.data_parts.total(), slice.model_parts.total(), columns.total(),
                               scalar_type_of<T>};
      kept.add(products_.get(), product_workspace_bytes(Algorithm::stationary_a, shape, grid.shape(),
                                                        grid.my_row(), grid.my_col(), is_packed_));
    }
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    for (const Slice& slice : slices_)
      products_->multiply(*slice.A, *own_grid_, Op::none, alpha, models_of(slice), data_of(slice),
                          X.local().row_block(slice.models), beta, Y.local().row_block(slice.data));
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    for (const Slice& slice : slices_)
      products_->multiply(*slice.A, *own_grid_, Op::adjoint, alpha, models_of(slice), data_of(slice),
                          Y.local().row_block(slice.data), beta, X.local().row_block(slice.models));
  }
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const override {
    for (const Slice& slice : slices_)
      products_->multiply_once(*slice.A, *own_grid_, slice.A->facts(), models_of(slice), data_of(slice),
                               P.local().row_block(slice.models), R.local().row_block(slice.data),
                               Q.local().row_block(slice.data), U.local().row_block(slice.models),
                               V.local().row_block(slice.models));
  }

  std::shared_ptr<const ProcessGrid> own_grid_;
  bool is_packed_;
  std::shared_ptr<StationaryProducts<T>> products_;  // null on ranks without a group
  std::vector<Slice> slices_;
};

/// Slices that are operators of their own. These may take memory, and fail, on the ranks of one group.
template <Scalar T>
class GroupedOperators final : public LinearOperator<T> {
 public:
  GroupedOperators(const SliceGroups& groups, std::vector<OperatorPtr<T>> A, bool has_one_pass)
      : LinearOperator<T>(groups.data().space, groups.models().space),
        slices_(std::move(A)),
        has_one_pass_(has_one_pass) {}

  bool has_one_pass() const override { return has_one_pass_; }

 private:
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const override {
    for (const OperatorPtr<T>& slice : slices_) slice->add_kept_bytes(kept, columns);
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    for_each_slice([&](const LinearOperator<T>& A, const Rows& rows) {
      DistMatrix<T> data = rows.of_data(Y);
      A.apply(alpha, rows.of_models(X), beta, data);
    });
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    for_each_slice([&](const LinearOperator<T>& A, const Rows& rows) {
      DistMatrix<T> models = rows.of_models(X);
      A.apply_adjoint(alpha, rows.of_data(Y), beta, models);
    });
  }
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const override {
    if (!has_one_pass_) return LinearOperator<T>::do_normal_product(P, R, Q, U, V);
    for_each_slice([&](const LinearOperator<T>& A, const Rows& rows) {
      DistMatrix<T> q = rows.of_data(Q), u = rows.of_models(U), v = rows.of_models(V);
      A.normal_product(rows.of_models(P), rows.of_data(R), q, u, v);
    });
  }

  /// The rows of a slice.
  struct Rows {
    const LinearOperator<T>& A;
    Range models{}, data{};

    template <class Matrix>
    std::remove_const_t<Matrix> of_models(Matrix& X) const {
      return {A.domain().grid, A.domain().layout(X.cols()), X.local().row_block(models)};
    }
    template <class Matrix>
    std::remove_const_t<Matrix> of_data(Matrix& Y) const {
      return {A.range().grid, A.range().layout(Y.cols()), Y.local().row_block(data)};
    }
  };

  /// Calls work() with each slice and its rows.
  template <class Work>
  void for_each_slice(Work&& work) const {
    FailureScope failures;  // all groups must say so, also those without slices
    failures.note_lone_failures();
    Range models, data;
    for (const OperatorPtr<T>& slice : slices_) {
      models = {models.end(), slice->domain().local_rows()};
      data = {data.end(), slice->range().local_rows()};
      work(*slice, Rows{*slice, models, data});
    }
  }

  std::vector<OperatorPtr<T>> slices_;
  bool has_one_pass_;
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
  Index do_scratch_bytes(ProductKind, const Partition& columns) const override {
    return ScratchStack::bytes_of<T>(exchange_->memory_size(columns.total()));
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    const ScratchArray<T> memory(*X.grid(), exchange_->memory_size(X.local().cols));
    exchange_->finish_fetch(exchange_->start_fetch(X.local(), memory.data()), alpha, X.local(), beta,
                            by_slice(Y.local()), memory.data());
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    const ScratchArray<T> memory(*X.grid(), exchange_->memory_size(X.local().cols));
    multiply_by(beta, X);
    exchange_->sum_back(alpha, by_slice(Y.local()), X.local(), memory.data());
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

/// The boxes of a kernel that each rank has, and those that make up its matrices, one after the other.
std::vector<BoxesOfRank> boxes_of_kernel(const SliceGroups& groups, const Space& kernel) {
  std::vector<BoxesOfRank> boxes;
  Index slice = 0;
  for (const RankGroup& group : groups.groups()) {
    const Partition rows = Partition::balanced(kernel.dims.size(2), group.shape.rows),
                    cols = Partition::balanced(kernel.dims.size(1), group.shape.cols);
    for (int rank = 0; rank < group.shape.size(); ++rank) {
      boxes.emplace_back();
      for (Index f = slice; f < slice + group.slices; ++f)
        boxes.back().wants.push_back(
            {{f, 1}, cols.range(rank % group.shape.cols), rows.range(rank / group.shape.cols)});
    }
    slice += group.slices;
  }
  boxes.resize(at(kernel.grid->shape().size()));
  for (std::size_t rank = 0; rank < boxes.size(); ++rank)
    boxes[rank].has = kernel.dims.block(static_cast<int>(rank));
  return boxes;
}

/// Calls check(slice, A, needed) for each of this rank's slices, and the layout that its matrix must have.
template <class Slice, class Check>
void require_own_slices(const SliceGroups& groups, const std::vector<Slice>& A, Check&& check) {
  const Range own = groups.own_slices();
  require_here<ShapeError>(static_cast<Index>(A.size()) == own.size, "this rank's group shares ", own.size,
                           " slices, but the rank passes ", A.size(), "; it must pass one for each");
  for (Index k = 0; k < own.size; ++k) {
    const ProductShape& slice = groups.slices()[at(own.begin + k)];
    check(own.begin + k, A[at(k)],
          matrix_layout(Algorithm::stationary_a, *groups.own_grid(), slice.rows, slice.cols));
  }
}

void require_own_grid(const SliceGroups& groups, Index slice,
                      const std::shared_ptr<const ProcessGrid>& grid) {
  require_here<ShapeError>(grid == groups.own_grid(), "slice ", slice,
                           " is not on the grid of this rank's group; make it on own_grid()");
}

template <Scalar T>
void require_matrices(const SliceGroups& groups, const std::vector<DistMatrix<T>>& A) {
  require_own_slices(groups, A, [&](Index slice, const DistMatrix<T>& matrix, const Layout& needed) {
    require_own_grid(groups, slice, matrix.grid());
    require_here<ShapeError>(matrix.layout() == needed, "the matrix of slice ", slice, " is ",
                             matrix.layout().describe(), ", but must be ", needed.describe(),
                             "; allocate_slices() makes it so");
  });
}

template <Scalar T>
void require_operators(const SliceGroups& groups, const std::vector<OperatorPtr<T>>& A) {
  require_own_slices(groups, A, [&](Index slice, const OperatorPtr<T>& op, const Layout& needed) {
    const auto& grid = groups.own_grid();
    require_own_grid(groups, slice, op->domain().grid);
    const DistMatrix<T> matrix = planned_matrix<T>(grid, needed);
    const Layout models = domain_nested(matrix).layout(1), data = range_nested(matrix).layout(1);
    require_here<ShapeError>(op->domain().layout(1) == models && op->range().layout(1) == data,
                             "the operator of slice ", slice, " takes ", op->domain().layout(1).describe(),
                             " to ", op->range().layout(1).describe(), ", but must take ", models.describe(),
                             " to ", data.describe());
  });
}

/// All ranks agree that the check passes.
template <class Check>
void agree_on_slices(const SliceGroups& groups, Check&& check) {
  if (groups.grid()->is_member()) {
    agree(groups.grid()->comm(), "grouped_slices", check);
  } else {
    Agreement alone("grouped_slices");
    check(alone);
  }
}

}  // namespace

template <Scalar T>
std::vector<DistMatrix<T>> slices_of_kernel(const SliceGroups& groups, const Space& kernel,
                                            const ConstDistMatrix<T>& G) {
  const Dims& dims = kernel.dims;
  require<ShapeError>(
      kernel.grid == groups.grid() && kernel.rows.axis == Axis::all && dims.count() == 3 &&
          dims.cut(1).parts() == 1 && dims.cut(2).parts() == 1,
      "the kernel of slices in groups of ranks is an array (slices, ny, nx) on their grid that "
      "is cut along all and the slices only, but this space has ",
      kernel.describe());
  kernel.require_contains(G, "the kernel of slices in groups of ranks");
  require<ShapeError>(G.cols() == 1, "a kernel is one column, not ", G.layout().describe());
  require<ShapeError>(static_cast<Index>(groups.slices().size()) == dims.size(0), "groups of ranks share ",
                      groups.slices().size(), " slices, but the kernel is an array of ", dims.describe());
  for (const ProductShape& slice : groups.slices())
    require<ShapeError>(slice.rows == dims.size(2) && slice.cols == dims.size(1), "a slice of ", slice.rows,
                        " x ", slice.cols, " is none of a kernel (slices, ny, nx) of ", dims.describe());
  std::vector<DistMatrix<T>> A = allocate_slices<T>(groups);
  const ProcessGrid& grid = *kernel.grid;
  if (!grid.is_member()) return A;
  const BoxExchange<T> exchange(grid.backend(), &grid.comm(), boxes_of_kernel(groups, kernel));
  Buffer<T> memory;
  attempt(grid.comm(), [&] { memory = Buffer<T>(grid.backend(), exchange.memory_size(1)); });
  std::vector<MatrixView<T>> blocks;
  for (DistMatrix<T>& matrix : A) blocks.push_back({matrix.local().data, matrix.local().size(), 1});
  exchange.finish_fetch(exchange.start_fetch(G.local(), memory.data()), T(1), G.local(), T(0), blocks,
                        memory.data());
  return A;
}

template <Scalar T>
OperatorPtr<T> grouped_slices(const SliceGroups& groups, std::vector<DistMatrix<T>> A,
                              const MatrixMultOptions& options) {
  // All groups need one storage, since it decides whether there is one pass.
  agree_on_slices(groups, [&](Agreement& agreement) {
    agreement.on("the storage", name_of(options.storage)).on("column_stable", options.column_stable);
    require_storage_possible(options.storage, scalar_type_of<T>,
                             groups.own_grid()->backend()->memory_space());
    require_matrices(groups, A);
  });
  return std::make_shared<GroupedSlices<T>>(groups, std::move(A), options);
}

template <Scalar T>
OperatorPtr<T> grouped_slices(const SliceGroups& groups, std::vector<OperatorPtr<T>> A) {
  agree_on_slices(groups, [&](Agreement&) { require_operators(groups, A); });
  std::array<Index, 1> with_one_pass{
      std::count_if(A.begin(), A.end(), [](const OperatorPtr<T>& slice) { return slice->has_one_pass(); })};
  if (groups.grid()->is_member()) groups.grid()->comm().all_reduce(with_one_pass, ReduceOp::sum);
  return std::make_shared<GroupedOperators<T>>(groups, std::move(A), with_one_pass[0] > 0);
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

#define GRIDLOPS_INSTANTIATE(T)                                                            \
  template OperatorPtr<T> grouped_slices(const SliceGroups&, std::vector<DistMatrix<T>>,   \
                                         const MatrixMultOptions&);                        \
  template OperatorPtr<T> grouped_slices(const SliceGroups&, std::vector<OperatorPtr<T>>); \
  template OperatorPtr<T> into_groups(const GroupedSpace&, const Space&);                  \
  template std::vector<DistMatrix<T>> slices_of_kernel(const SliceGroups&, const Space&,   \
                                                       const ConstDistMatrix<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
