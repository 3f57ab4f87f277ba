// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gridlops/comm/process_grid.hpp"
#include "gridlops/dist/layout.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"
#include "io/matrix_reader.hpp"
#include "local/products/one_pass.hpp"
#include "local/products/tile_order.hpp"
#include "streamed/slabs.hpp"
#include "streamed/stored_parts.hpp"

namespace gridlops {

template <Scalar T>
Index streamed_workspace_bytes(const TileOrder<T>& order, Index columns);

/// A rank's block of a matrix, in tiles, as far as it has no room in memory in a file.
template <Scalar T>
class StreamedBlock {
  using R = Real<T>;

 public:
  /// What is to be stored. Its elements are read once, some rows at a time, or columns.
  class Source {
   public:
    virtual ~Source() = default;
    virtual bool by_columns() const = 0;
    /// The elements of these rows and columns of the block, until the next call. On this rank alone.
    virtual MatrixView<const T> read(Range rows, Range cols) = 0;
  };

  /// Takes memory, and room on the disk. `of`: what the block is made of, for tiles that stay. Throws
  /// OutOfMemory and OutputError on this rank alone.
  StreamedBlock(std::shared_ptr<Backend> backend, Layout layout, Index rows, Index cols,
                const StreamOptions& options, const std::string& of = {});
  /// Whether its tiles had stayed.
  bool is_stored() const { return is_stored_; }
  /// Stores the block. Throws, on this rank alone, also what the source throws.
  void store(Source& source);

  /// ‖block‖_F.
  double norm() const { return norm_; }
  const Layout& layout() const { return layout_; }
  /// Its products read A once, as those of packed blocks do.
  static constexpr bool is_packed() { return true; }
  Index kept_bytes(Index columns) const {
    return slabs_.parts.bytes_in_memory() + streamed_workspace_bytes<T>(order_, columns);
  }
  Index bytes_read() const { return parts_->bytes_read(); }
  double seconds_waited() const { return parts_->seconds_waited(); }

  /// Y ← α op(A) X + β Y. If the disk fails, Y is meaningless, and the FailureScope of the caller keeps an
  /// InputError.
  void multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y);
  /// As MatrixBlock::multiply_once(), with the same failures.
  void multiply_once(MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> W,
                     const Completion& completed);

 private:
  class Tiles;

  bool stays() const { return !kept_.empty(); }
  bool take_kept(Index memory);
  std::unique_ptr<StoredParts> take_memory() const;
  void store_tiles(MatrixView<const T> part, Range strips, Range cols);
  Index bytes_of_tile(Index col) const { return order_.height() * order_.tile_cols(col) * Index{sizeof(R)}; }
  /// Where a tile begins in its slab.
  Index place(Index strip, Index col) const {
    const Range strips = slabs_.strips_of(strip / slabs_.strips_each);
    return order_.place(strips.size, strip - strips.begin, col) * Index{sizeof(R)};
  }

  std::shared_ptr<Backend> backend_;
  Layout layout_;
  TileOrder<T> order_;
  std::string kept_, of_;  // the path of tiles that stay, and what they are made of
  Slabs slabs_;
  bool column_stable_;
  bool is_stored_ = false;
  double norm_ = 0;
  std::unique_ptr<StoredParts> parts_;
};

/// The bytes of products with so many columns of a block in this order, beside what is sent.
template <Scalar T>
Index streamed_workspace_bytes(const TileOrder<T>& order, Index columns) {
  constexpr Index strips_at_once = 16;
  const Index in_slots = threads_per_rank() * std::min(order.strips(), strips_at_once) * order.height();
  return 3 * (order.padded_cols() + in_slots) * columns * Index{sizeof(T)};
}

}  // namespace gridlops
