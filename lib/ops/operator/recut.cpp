// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "dist/box_exchange.hpp"
#include "gridlops/base/error.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// Maps an array to the same array, cut at other places.
template <Scalar T>
class Recut final : public LibraryOperator<T> {
 public:
  Recut(Space range, Space domain) : LibraryOperator<T>(std::move(range), std::move(domain)) {
    const Space &data = this->range(), &model = this->domain();
    require<ShapeError>(data.dims.sizes() == model.dims.sizes(), "an identity from ", model.describe(),
                        " to ", data.describe(),
                        " is impossible: the two must be one array, cut in different ways");
    if (!data.grid->is_member()) return;
    forward_.emplace(between(model, data));
    adjoint_.emplace(between(data, model));
  }

 private:
  /// Along cut columns, only ranks with the same columns as this one take part.
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
  Index do_scratch_bytes(ProductKind kind, const Partition& columns) const override {
    const BoxExchange<T>& exchange = *(kind == ProductKind::forward ? forward_ : adjoint_);
    return ScratchStack::bytes_of<T>(exchange.memory_size(this->domain().local_columns(columns)));
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    fetch(*forward_, alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    fetch(*adjoint_, alpha, Y, beta, X);
  }
  static void fetch(const BoxExchange<T>& exchange, T alpha, const ConstDistMatrix<T>& from, T beta,
                    DistMatrix<T>& to) {
    const ScratchArray<T> memory(*to.grid(), exchange.memory_size(to.local().cols));
    exchange.finish_fetch(exchange.start_fetch(from.local(), memory.data()), alpha, from.local(), beta,
                          {to.local()}, memory.data());
  }
  std::optional<BoxExchange<T>> forward_, adjoint_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> recut(Space range, Space domain) {
  return std::make_shared<Recut<T>>(std::move(range), std::move(domain));
}

#define GRIDLOPS_INSTANTIATE(T) template OperatorPtr<T> recut(Space, Space);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
