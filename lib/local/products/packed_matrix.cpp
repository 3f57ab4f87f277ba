// SPDX-License-Identifier: BSD-3-Clause
#include "local/products/packed_matrix.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/at_work.hpp"
#include "base/instantiate.hpp"
#include "local/products/planes.hpp"
#include "local/products/product_times.hpp"
#include "local/products/tile_products.hpp"

namespace gridlops {

/// The tiles of the real matrix, in the order in which they are stored.
template <Scalar T>
class PackedMatrix<T>::WholeTiles {
 public:
  explicit WholeTiles(const PackedMatrix& A) : A_(A) {}

  Index cols() const { return A_.cols_; }
  Index strips() const { return A_.strips(); }
  static constexpr Index strips_at_once() { return 16; }
  static constexpr Index depth() { return PackedMatrix::depth(); }
  static constexpr Index end(Index col) { return col + depth(); }
  Index run() const { return A_.run_; }
  struct NoRoom {};
  NoRoom room() const { return {}; }
  Tile<Real<T>> tile(Index strip, Index col, NoRoom) const {
    return {A_.storage_.data() + A_.offset(strip, col), A_.kernels_->height, A_.tile_cols(col)};
  }
  /// What to fetch for columns [first, end) from this one on.
  Ahead<Real<T>> ahead(Index strip, Index col, Index first, Index end) const {
    return {tile(strip, col, {}), first, end};
  }
  Ahead<Real<T>> ahead(Index strip, Index col) const { return ahead(strip, col, 0, A_.tile_cols(col)); }

 protected:
  const PackedMatrix& A_;
};

/// The tiles of the high plane.
template <Scalar T>
class PackedMatrix<T>::HighTiles : public WholeTiles {
 public:
  using WholeTiles::WholeTiles;

  Tile<HighHalf> tile(Index strip, Index col, typename WholeTiles::NoRoom) const {
    return {A_.high_plane() + A_.offset(strip, col), A_.kernels_->height, A_.tile_cols(col)};
  }
  /// One more tile ahead, because a tile takes no longer than memory to answer. What lies behind the last
  /// tile is of the low plane. A column is as long as half a column of numbers.
  Ahead<Real<T>> ahead(Index strip, Index col, Index first, Index end) const {
    const Index height = A_.kernels_->height;
    const HighHalf* const begin = tile(strip, col, {}).begin + depth() * height;
    return {{reinterpret_cast<const Real<T>*>(begin), height, end / 2}, first / 2, end / 2};
  }
  Ahead<Real<T>> ahead(Index strip, Index col) const { return ahead(strip, col, 0, A_.tile_cols(col)); }

 protected:
  using WholeTiles::A_;
};

/// The tiles of both planes, joined in the caller's room.
template <Scalar T>
class PackedMatrix<T>::JoinedTiles : public HighTiles {
 public:
  using HighTiles::HighTiles;

  Workspace<Real<T>> room() const { return Workspace<Real<T>>(A_.kernels_->height * depth()); }
  Tile<Real<T>> tile(Index strip, Index col, const Workspace<Real<T>>& room) const {
    const Index place = A_.offset(strip, col), height = A_.kernels_->height, cols = A_.tile_cols(col);
    A_.kernels_->join(height * cols, A_.high_plane() + place, A_.low_plane() + place, room.data());
    return {room.data(), height, cols};
  }

 private:
  using HighTiles::A_;
};

template <Scalar T>
PackedMatrix<T>::PackedMatrix(const std::shared_ptr<Backend>& backend, MatrixView<const T> A,
                              const KernelSet& set, bool column_stable,
                              const std::function<void(Index)>& taken, Packing packing)
    : kernels_(&set.tiles<Real<T>>(parts_ * A.rows)),
      column_stable_(column_stable),
      packing_(packing),
      rows_(A.rows),
      cols_(A.cols),
      run_(std::clamp((cols_ / 8 + depth() - 1) / depth(), Index{1}, Index{16}) * depth()),
      storage_(backend, places() * padded_cols() * kernels_->height) {
  copy(A, taken);
}

template <Scalar T>
Index PackedMatrix<T>::padded_cols() const {
  return gridlops::padded_cols<Real<T>>(cols_);
}

template <Scalar T>
Index PackedMatrix<T>::offset(Index strip, Index col) const {
  const Index first = col / run_ * run_, run = std::min(run_, padded_cols() - first);
  return (first * places() + strip * run + col - first) * kernels_->height;
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
    return kernels_->join(count, high_plane() + place, low_plane() + place, to);
  std::copy_n(storage_.data() + place, count, to);
}

template <Scalar T>
void PackedMatrix<T>::copy(MatrixView<const T> A, const std::function<void(Index)>& taken) {
  const MatrixView<const Real<T>> from = real_view(A);
  const Index height = kernels_->height;
  const std::vector<Real<T>> zeros(at(height));
  for (Index first = 0; first < cols_; first += run_) {
    const Index end = std::min(first + run_, padded_cols());
    const int threads = threads_for(static_cast<double>(strips() * height * (end - first)));
    for_ranges(strips(), 1, threads, [&](int, Range range) {
      for (Index strip = range.begin; strip < range.end(); ++strip) {
        Index place = offset(strip, first);
        const Index rows = std::min(height, from.rows - strip * height);
        for (Index k = first; k < end; ++k, place += height) {
          const Index count = k < cols_ ? rows : 0;
          if (count > 0) put(from.column(k) + strip * height, count, place);
          put(zeros.data(), height - count, place + count);
        }
      }
    });
    if (taken) taken(std::min(end, cols_));
  }
}

template <Scalar T>
void PackedMatrix<T>::read_column(Index j, T* to) const {
  const Index height = kernels_->height, rows = parts_ * rows_;
  Real<T>* const reals = reinterpret_cast<Real<T>*>(to);
  for (Index strip = 0; strip < strips(); ++strip)
    get(std::min(height, rows - strip * height), offset(strip, j), reals + strip * height);
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
    multiply_tiles(tiles, *kernels_, op, alpha, X, beta, Y, column_stable_);
  });
}

template <Scalar T>
void PackedMatrix<T>::one_pass(MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> U,
                               MatrixView<T> V, const Completion& completed, Planes planes) const {
  with_tiles(planes, [&](const auto& tiles) { one_pass_of(tiles, P, R, Q, U, V, completed); });
}

template <Scalar T>
template <class Tiles>
void PackedMatrix<T>::one_pass_of(const Tiles& A, MatrixView<const T> P, MatrixView<const T> R,
                                  MatrixView<T> Q, MatrixView<T> U, MatrixView<T> V,
                                  const Completion& completed) const {
  const int threads = threads_for(3 * product_flops<T>(rows_, cols_, P.cols));
  ForwardTiles<T> forward(*kernels_, depth(), P, threads);
  AdjointTiles<T> adjoint(*kernels_, depth(), Op::adjoint, cols_, 2 * P.cols, threads, column_stable_);
  const Index tiles = (cols_ + depth() - 1) / depth();
  // Each thread takes a strip through the product, and its columns of earlier strips, still in a cache,
  // through the adjoint, in turns of one run. That keeps memory busy all the time.
  const auto work = [&](int thread, Range products, Range adjoints) {
    const auto room = A.room();
    const Range own = balanced_part(tiles, threads, thread);
    const Index p = products.begin + thread;
    for (Index run = 0; run < cols_; run += run_) {
      const Range cols{run, std::min(run_, cols_ - run)};
      if (thread < products.size)
        for (Index col = cols.begin; col < cols.end(); col += depth())
          forward.add(thread, A.tile(p, col, room), col, {});
      // A slow adjoint leaves memory time to fetch the beginning of what the product needs next. The product
      // reads the rest faster, because the processor then prefetches by itself.
      const bool is_last = cols.end() == cols_;
      const Index next_col = is_last ? 0 : cols.end();
      const Index next = std::min(is_last ? p + threads : p, strips() - 1);
      const Range ahead{next_col, std::min(run_, cols_ - next_col)};
      const auto share = [&](Index col) {
        return (col + depth() - 1) / depth() * adjoints.size * own.size / tiles;
      };
      const Index first = share(cols.begin), end = share(cols.end());
      const auto fetched_before = [&](Index i) {
        return std::min((i - first) * depth(), ahead.size) * adjoint.quarters_to_fetch() / 4;
      };
      for (Index i = first; i < end; ++i) {
        const Index slot = i / own.size, col = (own.begin + i % own.size) * depth();
        adjoint.add(slot, A.tile(adjoints.begin + slot, col, room), col,
                    A.ahead(next, ahead.begin, fetched_before(i), fetched_before(i + 1)));
      }
    }
    if (thread >= products.size) return;
    forward.finish(thread, T(1), T(0), Q.row_block(strip_rows(p)));
  };

  Index complete = 0, done = 0;  // rows of Q that have arrived, and strips that the adjoint has processed
  for (Index p = 0; done < strips();) {
    const Range products{p, std::min<Index>(threads, strips() - p)};
    Range adjoints{done, 0};
    while (adjoints.size < threads && adjoints.end() < strips() &&
           strip_rows(adjoints.end()).end() <= complete)
      ++adjoints.size;
    for (Index slot = 0; slot < adjoints.size; ++slot) {
      const Range rows = strip_rows(done + slot);
      adjoint.set(slot, 0, R.row_block(rows));
      adjoint.set(slot, P.cols, MatrixView<const T>(Q).row_block(rows));
    }
    {
      const AtWork at_work;
      in_threads(threads, [&](int thread) { work(thread, products, adjoints); });
    }
    done = adjoints.end();
    p = products.end();
    const Index computed = std::min(p * (kernels_->height / parts_), rows_);
    complete = completed ? completed(computed) : computed;
  }
  for_ranges(cols_, depth(), threads, [&](int, Range cols) {
    adjoint.finish(0, T(1), T(0), U, cols);
    adjoint.finish(P.cols, T(1), T(0), V, cols);
  });
}

// The built-in choice: on a Zen 4 core packed products were as fast as BLAS or faster, up to the largest
// number of columns tried; docs/performance-notes.md has the figures and the two exceptions.
bool packed_is_faster(ScalarType type, Index rows, Index cols, Index columns, const KernelChoice& choice) {
  constexpr Index most = 128, least = 100;
  const Index smallest = std::min(rows, cols);
  const bool usual = choice.set->is_usual() && 0 < columns && columns <= most;
  return choice.use != KernelChoice::Use::never && smallest >= least && 3 * columns <= smallest &&
         packing_pays(usual, type, columns);
}

#define GRIDLOPS_INSTANTIATE(T) template class PackedMatrix<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
