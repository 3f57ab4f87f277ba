// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/at_work.hpp"
#include "base/instantiate.hpp"
#include "local/products/kernel_set.hpp"
#include "local/products/tile_products.hpp"

namespace gridlops {

namespace {

template <class R>
using NarrowTile =
    std::conditional_t<std::is_same_v<R, double>, std::variant<Tile<Bfloat16>, Tile<float>, Tile<double>>,
                       std::variant<Tile<Bfloat16>, Tile<float>>>;

/// The tiles of narrow matrices side by side, where each begins at a multiple of NarrowMatrix::alignment
/// columns. A tile that a matrix does not fill is copied into the caller's room, with zeros below, and in the
/// adjoint beside.
template <Scalar T>
class NarrowTiles {
  using R = Real<T>;

 public:
  NarrowTiles(std::span<const NarrowMatrix<T>> A, Index height, Op op)
      : A_(A), rows_(parts<T> * A.front().rows), height_(height), fills_up_(op != Op::none) {
    for (const NarrowMatrix<T>& matrix : A) ends_.push_back(cols() + matrix.aligned(matrix.cols));
  }

  Index cols() const { return ends_.empty() ? 0 : ends_.back(); }
  Index strips() const { return (rows_ + height_ - 1) / height_; }
  Index strips_at_once() const { return std::max<Index>(1, Index{2048} / height_); }
  static constexpr Index depth() { return 64; }
  static constexpr Index run() { return depth(); }
  /// No tile is in two blocks of columns, or in two matrices.
  Index end(Index col) const {
    return std::min((col / depth() + 1) * depth(), *std::upper_bound(ends_.begin(), ends_.end(), col));
  }
  Ahead<R> ahead(Index, Index) const { return {}; }

  Workspace<R> room() const { return Workspace<R>(height_ * depth()); }
  NarrowTile<R> tile(Index strip, Index col, const Workspace<R>& room) const {
    const auto k = std::upper_bound(ends_.begin(), ends_.end(), col) - ends_.begin();
    const NarrowMatrix<T>& matrix = A_[at(k)];
    const Index first = col - (k == 0 ? 0 : ends_[at(k - 1)]);
    switch (matrix.precision) {
      case Precision::bfloat16:
        return tile_of<Bfloat16>(matrix, strip, first, end(col) - col, room);
      case Precision::float32:
        return tile_of<float>(matrix, strip, first, end(col) - col, room);
      case Precision::float64:
        break;
    }
    return tile_of<R>(matrix, strip, first, end(col) - col, room);
  }

 private:
  /// The strip's rows of columns [first, first + cols), of which the matrix may have fewer.
  template <class Element>
  Tile<Element> tile_of(const NarrowMatrix<T>& matrix, Index strip, Index first, Index cols,
                        const Workspace<R>& room) const {
    const Index row = strip * height_, rows = std::min(height_, rows_ - row),
                filled = std::min(cols, matrix.cols - first);
    if (!fills_up_) cols = filled;
    const Tile<Element> place{reinterpret_cast<const Element*>(matrix.data) + first * rows_ + row, rows_,
                              cols};
    if (rows == height_ && filled == cols) return place;
    auto* const copy = reinterpret_cast<Element*>(room.data());
    std::fill_n(copy, height_ * cols, Element(0));
    for (Index j = 0; j < filled; ++j) std::copy_n(place.begin + j * rows_, rows, copy + j * height_);
    return {copy, height_, cols};
  }

  std::span<const NarrowMatrix<T>> A_;
  Index rows_, height_;
  bool fills_up_;
  std::vector<Index> ends_{};
};

}  // namespace

template <Scalar T>
void narrow_gemm(Op op, T alpha, std::span<const NarrowMatrix<T>> A, MatrixView<const T> X, T beta,
                 MatrixView<T> Y, const KernelSet& set) {
  const AtWork at_work;
  const TileKernels<Real<T>>& kernels = set.tiles<Real<T>>(parts<T> * A.front().rows);
  multiply_tiles(NarrowTiles<T>(A, kernels.height, op), kernels, op, alpha, X, beta, Y, false);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                             \
  template void narrow_gemm(Op, T, std::span<const NarrowMatrix<T>>, MatrixView<const T>, T, MatrixView<T>, \
                            const KernelSet&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
