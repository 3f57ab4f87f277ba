// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compressed/line_plan.hpp"
#include "compressed/stored_tile.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/local/buffer.hpp"
#include "streamed/stored_block.hpp"

namespace gridlops {

/// How the rows of a block, or its columns, are cut into tiles: tile k has the next sizes[k] of them in
/// `order`, which has each index of the block once.
struct TileLines {
  std::vector<Index> sizes;
  std::vector<Index> order;
};

/// A block in tiles.
struct TiledBlock {
  TileLines rows, cols;
  std::vector<StoredTile> tiles;  ///< row of tiles by row of tiles

  StoredTile& tile(Index i, Index j) { return tiles[place(i, j)]; }
  const StoredTile& tile(Index i, Index j) const { return tiles[place(i, j)]; }

 private:
  std::size_t place(Index i, Index j) const {
    return static_cast<std::size_t>(i * static_cast<Index>(cols.sizes.size()) + j);
  }
};

/// Fills the factors of a tile, which has its shape: for a row of tiles its U, or the tile if it is dense,
/// and for a column its V. Rows come first.
using FetchFactors = std::function<void(Index i, Index j, bool of_row, StoredTile& tile)>;

/// The products of one rank with its block of a compressed matrix. The vectors of all tiles in a row of tiles
/// lie side by side, the U of Σ U Vᴴ, and those of a column of tiles, the V. So a product reads long runs:
///
///   T ← Vᴴ X, column by column of tiles;  T in the order of the rows of tiles;  Y ← U T, row by row,
///
/// and the adjoint is the same with U and V, rows and columns, exchanged. Dense tiles are multiplied with the
/// U of their row. Some columns, or rows, are a part, which may be on a disk; each is used once.
template <Scalar T>
class CompressedBlock final : public StoredBlock<T> {
 public:
  using typename StoredBlockBase::WritePart;

  /// Says where everything will lie, for tiles of which only the shapes are used. Takes memory for the
  /// orders. memory: of the parts, what is to be in memory (LinePlan). Without a backend it is a plan, which
  /// takes no memory, and only says how much a block takes. Throws OutOfMemory on this rank alone.
  CompressedBlock(std::shared_ptr<Backend> backend, const TiledBlock& shapes, std::optional<Index> memory);

  ~CompressedBlock() override { this->stop(); }

  Index rows() const override { return rows_.size; }
  Index cols() const override { return cols_.size; }

  const PartPlan& parts() const override { return plan_.parts; }
  Index parts_together() const override { return 1; }
  std::vector<Index> order(Op op, Index first) const override;
  void for_each_piece(Index part, const StoredParts::UsePiece& use) const override {
    for (const Range piece : pieces_[static_cast<std::size_t>(part)]) use(piece.begin, piece.size);
  }

  /// Hands the factors to write(), line by line. fetch: brings them; null: the tiles have theirs.
  void store(TiledBlock block, const FetchFactors& fetch, const WritePart& write);
  /// Stores them in parts of its own: what has no room in memory, in a file in the directory `scratch`.
  /// Throws OutOfMemory, OutputError, and what fetch throws.
  void store_alone(TiledBlock block, const FetchFactors& fetch, const std::string& scratch);
  /// From now on multiplies every product by this factor.
  void scale_products(Real<T> factor) { factor_ = factor; }

  /// Of the factors, and of the orders.
  Index bytes() const { return order_bytes() + factor_bytes(); }
  Index order_bytes() const;
  Index factor_bytes() const;
  void add_kept_bytes(KeptBytes& kept) const override {
    kept.add(this, order_bytes());
    StoredBlock<T>::add_kept_bytes(kept);
  }

  void reserve(ProductKind, Index) override { backend_->template kernels<T>().reserve_narrow_gemm(); }
  Index scratch_bytes(Index columns) const override;
  /// Throws InputError if the disk fails.
  void multiply(const ProcessGrid& grid, Op op, T alpha, MatrixView<const T> X, T beta,
                MatrixView<T> Y) override;

 private:
  /// A matrix that begins there in its part.
  struct Stored {
    Index begin = 0;
    NarrowMatrix<T> shape{};
    NarrowMatrix<T> in(const std::byte* part) const {
      return {part + begin, shape.rows, shape.cols, shape.precision};
    }
  };
  struct DenseTile {
    Index other = 0;  // the number of the other line
    Stored tile{};
  };
  /// A row of tiles, or a column.
  struct Line {
    Range range{};                             // in the order of the tiles
    Range vectors{};                           // of the vectors of the side
    std::array<Stored, precisions> factors{};  // the vectors of each precision
    std::vector<DenseTile> dense{};
    Index begin = 0, bytes = 0;  // in its part; of a row with the dense tiles
  };
  /// The rows, with the U, or the columns, with the V.
  struct Side {
    Index size = 0, vectors = 0;
    std::vector<Line> lines;
    bool is_moved = false;       // the order of the tiles is another
    Buffer<Index> order, place;  // then: of index k in that order, and the inverse
    Buffer<Index> from_other;    // for each vector of this side, its place on the other side
  };

  class Product;

  Buffer<Index> uploaded(const std::vector<Index>& indices) const;
  void set_up(Side& side, const TileLines& lines) const;
  using Places = std::vector<std::array<Index, precisions>>;  // of the first vector of a tile and precision
  Places number_vectors(Side& side, const TiledBlock& block, bool by_rows);
  void link_vectors(const TiledBlock& block, const Places& in_rows, const Places& in_cols);
  void place_lines(const TiledBlock& block, std::optional<Index> memory);
  void store(bool by_rows, TiledBlock& block, const FetchFactors& fetch, const WritePart& write) const;
  void move_rows(const Buffer<Index>& from, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const;

  std::shared_ptr<Backend> backend_;
  Side rows_, cols_;
  Index elements_ = 0;  // of all factors and dense tiles
  LinePlan plan_;
  std::vector<std::vector<Range>> pieces_;
  Real<T> factor_ = 1;
};

}  // namespace gridlops
