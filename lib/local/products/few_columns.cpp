// SPDX-License-Identifier: BSD-3-Clause
#include "local/products/packed_matrix.hpp"

#include <algorithm>

#include "base/instantiate.hpp"
#include "local/products/product_times.hpp"
#include "local/tiles/strip_products.hpp"

namespace gridlops {

namespace {

/// The tiles of a matrix stored in columns. A tile that A does not fill is copied into the caller's room,
/// with zeros beside and below.
template <class R>
class TilesOfColumns {
 public:
  TilesOfColumns(MatrixView<const R> A, Index height) : A_(A), height_(height) {}

  Index cols() const { return A_.cols; }
  Index strips() const { return (A_.rows + height_ - 1) / height_; }
  /// Enough of a column for memory to deliver at full speed.
  Index strips_at_once() const {
    return std::max<Index>(1, Index{16384} / static_cast<Index>(sizeof(R)) / height_);
  }
  /// Columns a power of two apart map to the same places of a cache, which has room for this many.
  static constexpr Index depth() { return TileKernels<R>::unit; }
  static constexpr Index end(Index col) { return col + depth(); }
  static constexpr Index run() { return depth(); }

  Tile<R> place(Index strip, Index col) const {
    return {A_.column(col) + strip * height_, A_.stride, std::min(depth(), A_.cols - col)};
  }
  Ahead<R> ahead(Index strip, Index col) const {
    const Tile<R> next = place(strip, col);
    return {next, 0, next.cols};
  }
  Workspace<R> room() const { return Workspace<R>(height_ * depth()); }
  Tile<R> tile(Index strip, Index col, const Workspace<R>& room) const {
    const Tile<R> place = this->place(strip, col);
    const Index rows = std::min(height_, A_.rows - strip * height_);
    if (rows == height_ && place.cols == depth()) return place;
    std::fill_n(room.data(), height_ * depth(), R(0));
    for (Index k = 0; k < place.cols; ++k)
      std::copy_n(place.begin + k * place.stride, rows, room.data() + k * height_);
    return {room.data(), height_, depth()};
  }

 private:
  MatrixView<const R> A_;
  Index height_;
};

}  // namespace

template <Scalar T>
void few_columns_gemm(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                      const KernelSet& set, bool column_stable) {
  const TileKernels<Real<T>>& kernels = set.tiles<Real<T>>(parts<T> * A.rows);
  const TilesOfColumns<Real<T>> tiles(real_view(A), kernels.height);
  multiply_tiles(tiles, kernels, op, alpha, X, beta, Y, column_stable);
}

template <Scalar T>
bool few_columns_gemm_is_faster(Op op, Index rows, Index cols, Index columns, const KernelSet& set) {
  // For one column BLAS has a special kernel, and with matrices that fit into a cache it starts faster.
  constexpr Index least = 2, least_bytes = 1 << 20;
  if (rows * cols * static_cast<Index>(sizeof(T)) < least_bytes) return false;
  constexpr ScalarType type = scalar_type_of<T>;
  const auto& most = op == Op::none ? set.most_forward : set.most_adjoint;
  const bool usual = least <= columns && columns <= most[static_cast<std::size_t>(type)];
  return own_kernels_pay(usual, type, op, columns);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                     \
  template void few_columns_gemm(Op, T, MatrixView<const T>, MatrixView<const T>, T, MatrixView<T>, \
                                 const KernelSet&, bool);                                           \
  template bool few_columns_gemm_is_faster<T>(Op, Index, Index, Index, const KernelSet&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
