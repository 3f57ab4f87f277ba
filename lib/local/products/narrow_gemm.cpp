// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/at_work.hpp"
#include "base/instantiate.hpp"
#include "local/tiles/kernel_set.hpp"
#include "local/tiles/strip_products.hpp"

namespace gridlops {

namespace {

template <class R>
using NarrowTile =
    std::conditional_t<std::is_same_v<R, double>, std::variant<Tile<Bfloat16>, Tile<float>, Tile<double>>,
                       std::variant<Tile<Bfloat16>, Tile<float>>>;

template <Scalar T>
const TileKernels<Real<T>>& kernels_for(Index rows, const KernelSet& set) {
  return set.tiles<Real<T>>(parts<T> * rows);
}

/// Where the real numbers of a strip of a narrow matrix begin: strip after strip, each column by column. The
/// last strip may have fewer rows.
struct StripPlace {
  Index begin, rows;

  StripPlace(Index strip, Index height, Index rows_of_all, Index cols)
      : begin(strip * height * cols), rows(std::min(height, rows_of_all - strip * height)) {}
};

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
  static constexpr Index run() { return 16 * depth(); }
  /// No tile is in two blocks of columns, or in two matrices; those that need filling up are narrow.
  Index end(Index col) const {
    const std::size_t k = matrix_at(col);
    const Index whole = begin(k) + A_[k].cols / NarrowMatrix<T>::alignment * NarrowMatrix<T>::alignment;
    return std::min((col / depth() + 1) * depth(), fills_up_ && col < whole ? whole : ends_[k]);
  }
  /// As columns of R: those of fewer bits are shorter.
  Ahead<R> ahead(Index strip, Index col) const {
    const std::size_t k = matrix_at(col);
    const Index cols = std::min(end(col) - begin(k), A_[k].cols) - (col - begin(k));
    const Index bytes = cols * height_ * bytes_of(A_[k].precision), of_column = height_ * Index{sizeof(R)};
    return {{reinterpret_cast<const R*>(place(A_[k], strip, col - begin(k))), height_, 0},
            0,
            (bytes + of_column - 1) / of_column};
  }

  Workspace<R> room() const { return Workspace<R>(height_ * depth()); }
  NarrowTile<R> tile(Index strip, Index col, const Workspace<R>& room) const {
    const std::size_t k = matrix_at(col);
    const Range cols{col - begin(k), end(col) - col};
    switch (A_[k].precision) {
      case Precision::bfloat16:
        return tile_of<Bfloat16>(A_[k], strip, cols, room);
      case Precision::float32:
        return tile_of<float>(A_[k], strip, cols, room);
      case Precision::float64:
        break;
    }
    return tile_of<R>(A_[k], strip, cols, room);
  }

 private:
  std::size_t matrix_at(Index col) const {
    return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), col) - ends_.begin());
  }
  Index begin(std::size_t k) const { return k == 0 ? 0 : ends_[k - 1]; }

  const std::byte* place(const NarrowMatrix<T>& matrix, Index strip, Index col) const {
    const StripPlace place(strip, height_, rows_, matrix.cols);
    return matrix.data + (place.begin + col * place.rows) * bytes_of(matrix.precision);
  }

  /// The strip's rows of these columns, of which the matrix may have fewer.
  template <class Element>
  Tile<Element> tile_of(const NarrowMatrix<T>& matrix, Index strip, Range cols,
                        const Workspace<R>& room) const {
    const StripPlace place(strip, height_, rows_, matrix.cols);
    const Index filled = std::min(cols.size, matrix.cols - cols.begin), all = fills_up_ ? cols.size : filled;
    const Tile<Element> tile{
        reinterpret_cast<const Element*>(matrix.data) + place.begin + cols.begin * place.rows, place.rows,
        all};
    if (place.rows == height_ && filled == all) return tile;
    auto* const copy = reinterpret_cast<Element*>(room.data());
    std::fill_n(copy, height_ * all, Element(0));
    for (Index j = 0; j < filled; ++j)
      std::copy_n(tile.begin + j * place.rows, place.rows, copy + j * height_);
    return {copy, height_, all};
  }

  std::span<const NarrowMatrix<T>> A_;
  Index rows_, height_;
  bool fills_up_;
  std::vector<Index> ends_{};
};

}  // namespace

template <Scalar T>
Index narrow_strip(Index rows, const KernelSet& set) {
  return kernels_for<T>(rows, set).height;
}

template <Scalar T>
void put_narrow(const NarrowMatrix<T>& columns, Index strip, Index first, Index cols, std::byte* to) {
  const Index rows = parts<T> * columns.rows, size = bytes_of(columns.precision);
  for (Index s = 0; s * strip < rows; ++s) {
    const StripPlace place(s, strip, rows, cols);
    for (Index j = 0; j < columns.cols; ++j)
      std::copy_n(columns.data + (j * rows + s * strip) * size, place.rows * size,
                  to + (place.begin + (first + j) * place.rows) * size);
  }
}

template <Scalar T>
void narrow_gemm(Op op, T alpha, std::span<const NarrowMatrix<T>> A, MatrixView<const T> X, T beta,
                 MatrixView<T> Y, const KernelSet& set) {
  const AtWork at_work;
  const TileKernels<Real<T>>& kernels = kernels_for<T>(A.front().rows, set);
  multiply_tiles(NarrowTiles<T>(A, kernels.height, op), kernels, op, alpha, X, beta, Y, false);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                             \
  template Index narrow_strip<T>(Index, const KernelSet&);                                                  \
  template void put_narrow(const NarrowMatrix<T>&, Index, Index, Index, std::byte*);                        \
  template void narrow_gemm(Op, T, std::span<const NarrowMatrix<T>>, MatrixView<const T>, T, MatrixView<T>, \
                            const KernelSet&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
