// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include "gridlops/local/matrix_view.hpp"
#include "local/tiles/kernel_set.hpp"
#include "local/tiles/real_parts.hpp"
#include "local/tiles/strip_products.hpp"

namespace gridlops {

/// A matrix cut into tiles (TileKernels), and their order: of some strips, those of one run of columns, one
/// strip below the other, then those of the next run. Products read long sequential runs, which the processor
/// recognises and prefetches. A complex matrix is a real one with twice the rows, as in real_parts.hpp. Zeros
/// fill tiles up beside the last column and below the last row.
template <Scalar T>
class TileOrder {
  using R = Real<T>;

 public:
  TileOrder() = default;
  TileOrder(Index rows, Index cols, const KernelSet& set)
      : kernels_(&set.tiles<R>(parts<T> * rows)),
        rows_(rows),
        cols_(cols),
        run_(std::clamp((cols / 8 + depth() - 1) / depth(), Index{1}, Index{16}) * depth()) {}

  /// The columns of a tile: as many as stay in the first-level cache while all right-hand sides use them.
  static constexpr Index depth() { return 64; }
  /// The strips whose results stay in that cache while a product reads a run of columns.
  static constexpr Index strips_at_once() { return 16; }

  const TileKernels<R>& kernels() const { return *kernels_; }
  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Index strips() const { return (parts<T> * rows_ + height() - 1) / height(); }
  /// Of real numbers.
  Index height() const { return kernels_->height; }
  Index padded_cols() const { return gridlops::padded_cols<R>(cols_); }
  /// The columns of a run: an eighth of A's, at least 64, at most 1024; packing holds them twice.
  Index run() const { return run_; }
  Index tile_cols(Index col) const { return std::min(depth(), padded_cols() - col); }
  /// The rows of A in a strip.
  Range strip_rows(Index strip) const {
    const Index rows = height() / parts<T>;
    return {strip * rows, std::min(rows, rows_ - strip * rows)};
  }

  /// Where the tile at this column of a strip begins, in numbers, if this many strips are stored together, of
  /// which it is number `strip`.
  Index place(Index strips, Index strip, Index col) const {
    const Index first = col / run_ * run_, width = std::min(run_, padded_cols() - first);
    return (first * strips + strip * width + col - first) * height();
  }

  /// to ← the tile at this column of a strip. A: the rows of the strip, and of A's columns those of the tile.
  void pack(MatrixView<const T> A, Index col, R* to) const {
    const MatrixView<const R> from = real_view(A);
    for (Index k = 0; k < from.cols; ++k, to += height())
      std::fill(std::copy_n(from.column(k), from.rows, to), to + height(), R(0));
    std::fill_n(to, (tile_cols(col) - from.cols) * height(), R(0));
  }
  /// The inverse: A ← the elements of a tile.
  void unpack(const R* tile, MatrixView<T> A) const {
    const MatrixView<R> to = real_view(A);
    for (Index k = 0; k < to.cols; ++k, tile += height()) std::copy_n(tile, to.rows, to.column(k));
  }

 private:
  const TileKernels<R>* kernels_ = nullptr;
  Index rows_ = 0, cols_ = 0, run_ = 0;
};

/// The base of all tiles in this order: the part of the interface for multiply_tiles() that the order
/// decides.
template <Scalar T>
class TilesInOrder {
 public:
  explicit TilesInOrder(const TileOrder<T>& order) : order_(order) {}

  Index cols() const { return order_.cols(); }
  Index strips() const { return order_.strips(); }
  static constexpr Index strips_at_once() { return TileOrder<T>::strips_at_once(); }
  static constexpr Index depth() { return TileOrder<T>::depth(); }
  static constexpr Index end(Index col) { return col + depth(); }
  Index run() const { return order_.run(); }
  struct NoRoom {};
  NoRoom room() const { return {}; }

 protected:
  const TileOrder<T>& order_;
};

}  // namespace gridlops
