// SPDX-License-Identifier: BSD-3-Clause
#include "local/products/packed_matrix.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/at_work.hpp"
#include "base/instantiate.hpp"
#include "local/products/one_pass.hpp"
#include "local/products/product_times.hpp"
#include "local/tiles/planes.hpp"
#include "local/tiles/strip_products.hpp"

namespace gridlops {

/// The tiles of the real matrix, in the order in which they are stored.
template <Scalar T>
class PackedMatrix<T>::WholeTiles : public TilesInOrder<T> {
 public:
  using typename TilesInOrder<T>::NoRoom;

  explicit WholeTiles(const PackedMatrix& A) : TilesInOrder<T>(A.order_), A_(A) {}

  Tile<Real<T>> tile(Index strip, Index col, NoRoom) const {
    return {A_.storage_.data() + A_.offset(strip, col), A_.order_.height(), A_.order_.tile_cols(col)};
  }
  /// The tiles to fetch for columns [first, end) from this one on.
  Ahead<Real<T>> ahead(Index strip, Index col, Index first, Index end) const {
    return {tile(strip, col, {}), first, end};
  }
  Ahead<Real<T>> ahead(Index strip, Index col) const {
    return ahead(strip, col, 0, A_.order_.tile_cols(col));
  }

 protected:
  const PackedMatrix& A_;
};

/// The tiles of the high plane.
template <Scalar T>
class PackedMatrix<T>::HighTiles : public WholeTiles {
 public:
  using WholeTiles::WholeTiles;

  Tile<HighHalf> tile(Index strip, Index col, typename WholeTiles::NoRoom) const {
    return {A_.high_plane() + A_.offset(strip, col), A_.order_.height(), A_.order_.tile_cols(col)};
  }
  /// One more tile ahead, because a tile takes no longer than memory to answer. What lies behind the last
  /// tile is of the low plane. A column is as long as half a column of numbers.
  Ahead<Real<T>> ahead(Index strip, Index col, Index first, Index end) const {
    const Index height = A_.order_.height();
    const HighHalf* const begin = tile(strip, col, {}).begin + TileOrder<T>::depth() * height;
    return {{reinterpret_cast<const Real<T>*>(begin), height, end / 2}, first / 2, end / 2};
  }
  Ahead<Real<T>> ahead(Index strip, Index col) const {
    return ahead(strip, col, 0, A_.order_.tile_cols(col));
  }

 protected:
  using WholeTiles::A_;
};

/// The tiles of both planes, joined in the caller's room.
template <Scalar T>
class PackedMatrix<T>::JoinedTiles : public HighTiles {
 public:
  using HighTiles::HighTiles;

  Workspace<Real<T>> room() const { return Workspace<Real<T>>(A_.order_.height() * TileOrder<T>::depth()); }
  Tile<Real<T>> tile(Index strip, Index col, const Workspace<Real<T>>& room) const {
    const Index place = A_.offset(strip, col), height = A_.order_.height(), cols = A_.order_.tile_cols(col);
    A_.order_.kernels().join(height * cols, A_.high_plane() + place, A_.low_plane() + place, room.data());
    return {room.data(), height, cols};
  }

 private:
  using HighTiles::A_;
};

template <Scalar T>
PackedMatrix<T>::PackedMatrix(const std::shared_ptr<Backend>& backend, MatrixView<const T> A,
                              const KernelSet& set, bool column_stable,
                              const std::function<void(Index)>& taken, Packing packing)
    : order_(A.rows, A.cols, set),
      column_stable_(column_stable),
      packing_(packing),
      storage_(backend, numbers(order_)) {
  copy(A, taken);
}

template <Scalar T>
void PackedMatrix<T>::put(const Real<T>* from, Index count, Index place) {
  if constexpr (std::is_same_v<Real<T>, double>) {
    if (packing_ == Packing::planes) {
      for (Index i = 0; i < count; ++i) {
        const Halves halves = split(from[i]);
        high_plane()[place + i] = halves.high;
        low_plane()[place + i] = halves.low;
      }
      return;
    }
  }
  std::copy_n(from, count, storage_.data() + place);
}

template <Scalar T>
void PackedMatrix<T>::get(Index count, Index place, Real<T>* to) const {
  if (packing_ == Packing::planes)
    return order_.kernels().join(count, high_plane() + place, low_plane() + place, to);
  std::copy_n(storage_.data() + place, count, to);
}

template <Scalar T>
void PackedMatrix<T>::copy(MatrixView<const T> A, const std::function<void(Index)>& taken) {
  const Index cols = order_.cols(), run = order_.run(), size = order_.height() * order_.depth();
  for (Index first = 0; first < cols; first += run) {
    const Index end = std::min(first + run, cols);
    const int threads = threads_for(static_cast<double>(order_.strips() * order_.height() * (end - first)));
    for_ranges(order_.strips(), 1, threads, [&](int, Range range) {
      const Workspace<Real<T>> room(packing_ == Packing::planes ? size : 0);
      for (Index strip = range.begin; strip < range.end(); ++strip) {
        for (Index col = first; col < end; col += order_.depth()) {
          const Range columns{col, std::min(order_.depth(), end - col)};
          const bool is_whole = packing_ == Packing::whole;
          Real<T>* const to = is_whole ? storage_.data() + offset(strip, col) : room.data();
          order_.pack(A.block(order_.strip_rows(strip), columns), col, to);
          if (!is_whole) put(to, order_.height() * order_.tile_cols(col), offset(strip, col));
        }
      }
    });
    if (taken) taken(end);
  }
}

template <Scalar T>
void PackedMatrix<T>::read_column(Index j, T* to) const {
  const Index height = order_.height(), rows = parts<T> * order_.rows();
  Real<T>* const reals = reinterpret_cast<Real<T>*>(to);
  for (Index strip = 0; strip < order_.strips(); ++strip)
    get(std::min(height, rows - strip * height), offset(strip, j), reals + strip * height);
}

template <Scalar T>
void PackedMatrix<T>::read_strip(Index strip, MatrixView<T> to, Planes planes) const {
  read_tiles(strip, 0, to, planes);
}

template <Scalar T>
void PackedMatrix<T>::read_columns(Index first, MatrixView<T> to, Planes planes) const {
  for (Index strip = 0; strip < order_.strips(); ++strip)
    read_tiles(strip, first, to.row_block(order_.strip_rows(strip)), planes);
}

/// Copies the tiles of a strip from this column on.
template <Scalar T>
void PackedMatrix<T>::read_tiles(Index strip, Index first, MatrixView<T> to, Planes planes) const {
  const Workspace<Real<T>> room(order_.height() * order_.depth());
  for (Index col = 0; col < to.cols; col += order_.depth()) {
    const Index place = offset(strip, first + col), count = order_.height() * order_.tile_cols(first + col);
    if (planes == Planes::both) {
      get(count, place, room.data());
    } else {
      const auto rounded = [](HighHalf half) { return static_cast<Real<T>>(joined(Halves{half, 0})); };
      std::transform(high_plane() + place, high_plane() + place + count, room.data(), rounded);
    }
    order_.unpack(room.data(), to.col_block({col, std::min(order_.depth(), to.cols - col)}));
  }
}

template <Scalar T>
template <class Work>
void PackedMatrix<T>::with_tiles(Planes planes, Work&& work) const {
  if (packing_ == Packing::whole) return work(WholeTiles(*this));
  if constexpr (std::is_same_v<Real<T>, double>)
    planes == Planes::high ? work(HighTiles(*this)) : work(JoinedTiles(*this));
}

template <Scalar T>
void PackedMatrix<T>::multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y,
                               Planes planes) const {
  const AtWork at_work;
  with_tiles(planes, [&](const auto& tiles) {
    multiply_tiles(tiles, order_.kernels(), op, alpha, X, beta, Y, column_stable_);
  });
}

template <Scalar T>
void PackedMatrix<T>::one_pass(MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> U,
                               MatrixView<T> V, const Completion& completed, Planes planes) const {
  with_tiles(planes, [&](const auto& tiles) {
    one_pass_of_tiles(tiles, order_, column_stable_, P, R, Q, U, V, completed);
  });
}

// The built-in choice: on a Zen 4 core packed products were as fast as BLAS or faster, up to the largest
// number of columns tried; docs/performance-notes.md has the figures and the exceptions.
bool packed_is_faster(ScalarType type, Index rows, Index cols, Index columns, const KernelChoice& choice) {
  constexpr Index most = 128, least = 100;
  const Index smallest = std::min(rows, cols);
  const bool usual = choice.set->is_usual() && 0 < columns && columns <= most;
  return choice.use != KernelChoice::Use::never && smallest >= least && 3 * columns <= smallest &&
         packing_pays(usual, type, columns);
}

#define GRIDLOPS_INSTANTIATE(T) template class PackedMatrix<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
