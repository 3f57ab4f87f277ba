// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "compressed/stored_tile.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/local/buffer.hpp"

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

  StoredTile& tile(Index i, Index j) {
    return tiles[static_cast<std::size_t>(i * static_cast<Index>(cols.sizes.size()) + j)];
  }
};

/// The products of one rank with its block of a compressed matrix. The vectors of all tiles in a row of tiles
/// lie side by side, the U of Σ U Vᴴ, and those of a column of tiles, the V. So a product reads long runs:
///
///   T ← Vᴴ X, column by column of tiles;  T in the order of the rows of tiles;  Y ← U T, row by row,
///
/// and the adjoint is the same with U and V, rows and columns, exchanged.
template <Scalar T>
class CompressedBlock {
 public:
  CompressedBlock() = default;
  /// Moves the tiles into memory of the backend. Throws OutOfMemory on this rank alone.
  CompressedBlock(std::shared_ptr<Backend> backend, TiledBlock tiles);

  /// The memory that it keeps.
  Index bytes() const;
  /// The scratch memory of a product with this many columns.
  Index scratch_bytes(Index columns) const;

  /// Y ← α op(A) X + β Y. Takes scratch memory of the grid.
  void multiply(const ProcessGrid& grid, Op op, T alpha, MatrixView<const T> X, T beta,
                MatrixView<T> Y) const;

 private:
  /// A row of tiles, or a column.
  struct Line {
    Range range{};                                           // in the order of the tiles
    Range vectors{};                                         // of the vectors of the side
    std::array<NarrowMatrix<T>, precisions> factors{};       // the vectors of each precision
    std::vector<std::pair<Index, NarrowMatrix<T>>> dense{};  // tiles, with the number of the other line
  };
  /// The rows, with the U, or the columns, with the V.
  struct Side {
    Index size = 0, vectors = 0;
    std::vector<Line> lines;
    Buffer<std::byte>
        memory{};  // of all factors; of the rows also of the dense tiles. Large pages need it in one
    Buffer<Index> order, place;  // of index k in the order of the tiles, and the inverse; empty if they agree
    Buffer<Index> from_other;    // for each vector of this side, its place on the other side
  };

  Buffer<Index> uploaded(const std::vector<Index>& indices) const;
  void set_up(Side& side, const TileLines& lines) const;
  using Places = std::vector<std::array<Index, precisions>>;  // of the first vector of a tile and precision
  Places number_vectors(Side& side, TiledBlock& block, bool by_rows);
  void fill(Side& side, TiledBlock& block, bool by_rows);
  void move_rows(const Buffer<Index>& from, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const;

  std::shared_ptr<Backend> backend_;
  Side rows_, cols_;
  Index elements_ = 0;  // of all factors and dense tiles
};

}  // namespace gridlops
