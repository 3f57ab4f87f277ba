// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "local/products/one_pass.hpp"
#include "local/tiles/tile_order.hpp"
#include "streamed/element_source.hpp"
#include "streamed/slabs.hpp"
#include "streamed/stored_block.hpp"

namespace gridlops {

/// A rank's block of a dense matrix in tiles: how they are cut into slabs, its parts, and the products with
/// them. A product uses each slab once.
template <Scalar T>
class SlabBlock final : public StoredBlock<T> {
  using R = Real<T>;

 public:
  using typename StoredBlockBase::BeginWait;
  using typename StoredBlockBase::WritePart;

  /// memory, strips_asked, in_place: as for Slabs.
  SlabBlock(std::shared_ptr<Backend> backend, Index rows, Index cols, bool column_stable, Index memory,
            Index strips_asked = 0, bool in_place = false)
      : backend_(std::move(backend)),
        order_(rows, cols, *kernel_choice().set),
        slabs_(order_, memory, strips_asked, in_place),
        column_stable_(column_stable) {}

  ~SlabBlock() override { this->stop(); }

  Index rows() const override { return order_.rows(); }
  Index cols() const override { return order_.cols(); }
  const TileOrder<T>& tiles() const { return order_; }
  const Slabs& slabs() const { return slabs_; }

  const PartPlan& parts() const override { return slabs_.parts; }
  Index parts_together() const override { return slabs_.together; }
  std::vector<Index> order(Op op, Index first) const override;
  void for_each_piece(Index part, const StoredParts::UsePiece& use) const override;

  /// Hands the tiles to write(), and their norm to norm(). The elements are read once. Throws what they
  /// throw.
  void store(ElementSource<T>& source, const WritePart& write, const BeginWait& begin_wait);
  /// Adds a part that is stored already to norm().
  void add_to_norm(Index part, const std::byte* memory);
  /// ‖block‖_F, of what is stored.
  double norm() const { return norm_; }
  void set_norm(double norm) { norm_ = norm; }

  /// These throw InputError if the disk fails.
  void reserve_visit() override {}
  void visit_rows(const ProcessGrid& grid, Op op, const typename LocalBlock<T>::UseRows& use) override;
  void multiply(const ProcessGrid& grid, Op op, T alpha, MatrixView<const T> X, T beta,
                MatrixView<T> Y) override;
  void multiply_once(const ProcessGrid& grid, MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q,
                     MatrixView<T> W, const Completion& completed) override;
  Index workspace_bytes(Index columns) const override;

 private:
  class Tiles;

  void store_tiles(MatrixView<const T> part, Range strips, Range cols, const WritePart& write) const;
  Index bytes_of_tile(Index col) const { return order_.height() * order_.tile_cols(col) * Index{sizeof(R)}; }
  /// Where a tile begins in its slab.
  Index place(Index strip, Index col) const {
    const Range strips = slabs_.strips_of(strip / slabs_.strips_each);
    return order_.place(strips.size, strip - strips.begin, col) * Index{sizeof(R)};
  }

  std::shared_ptr<Backend> backend_;
  TileOrder<T> order_;
  Slabs slabs_;
  bool column_stable_;
  double norm_ = 0;
};

/// The bytes of products with this many columns of a block in this order, beside messages.
template <Scalar T>
Index streamed_workspace_bytes(const TileOrder<T>& order, Index columns) {
  const Index in_slots =
      threads_per_rank() * std::min(order.strips(), order.strips_at_once()) * order.height();
  return 3 * (order.padded_cols() + in_slots) * columns * Index{sizeof(T)};
}

template <Scalar T>
Index SlabBlock<T>::workspace_bytes(Index columns) const {
  return streamed_workspace_bytes(order_, columns);
}

}  // namespace gridlops
