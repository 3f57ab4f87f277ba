// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/slab_block.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/at_work.hpp"
#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "base/square_sum.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops {

namespace {

template <Scalar T>
double norm_of_block(MatrixView<const T> block) {
  const MatrixView<const Real<T>> reals = real_view(block);
  SquareSum sum;
  for (Index j = 0; j < reals.cols; ++j) sum.add(reals.column(j), reals.rows);
  return sum.root();
}

}  // namespace

/// The tiles of a block during a product.
template <Scalar T>
class SlabBlock<T>::Tiles : public TilesInOrder<T> {
 public:
  using typename TilesInOrder<T>::NoRoom;

  Tiles(const SlabBlock& A, Op op)
      : TilesInOrder<T>(A.order_), A_(A), pass_(A.pass(op)), held_(at(A.slabs_.count())) {}

  Tile<R> tile(Index strip, Index col, NoRoom) const {
    const std::byte* const slab = held_[at(strip / A_.slabs_.strips_each)];
    return {reinterpret_cast<const R*>(slab + A_.place(strip, col)), A_.order_.height(),
            A_.order_.tile_cols(col)};
  }
  gridlops::Ahead<R> ahead(Index strip, Index col) const {
    return {tile(strip, col, {}), 0, A_.order_.tile_cols(col)};
  }

  /// Calls work(strips) for one slab after the other, which stays in memory until it is released.
  template <class Work>
  void in_parts(Work&& work) const {
    for (Index slab = 0; slab < A_.slabs_.count(); ++slab) {
      held_[at(slab)] = pass_.get(slab);
      work(A_.slabs_.strips_of(slab));
    }
  }
  /// The strips before this one are no longer used.
  void release_before(Index strip) const {
    pass_.release_before(strip == A_.slabs_.strips ? A_.slabs_.count() : strip / A_.slabs_.strips_each);
  }

 private:
  const SlabBlock& A_;
  StoredParts::Pass pass_;
  mutable std::vector<const std::byte*> held_;  // those that have arrived
};

template <Scalar T>
std::vector<Index> SlabBlock<T>::order(Op, Index first) const {
  std::vector<Index> slabs(at(slabs_.count()));
  std::iota(slabs.begin(), slabs.end(), first);
  return slabs;
}

template <Scalar T>
void SlabBlock<T>::for_each_piece(Index part, const StoredParts::UsePiece& use) const {
  const Range strips = slabs_.strips_of(part);
  for (Index strip = strips.begin; strip < strips.end(); ++strip)
    for (Index col = 0; col < order_.cols(); col += order_.depth())
      use(place(strip, col), bytes_of_tile(col));
}

template <Scalar T>
void SlabBlock<T>::store(ElementSource<T>& source, const WritePart& write, const BeginWait& begin_wait) {
  const TraceRegion region("store tiles");
  norm_ = 0;
  const auto store_part = [&](Range strips, Range cols) {
    const Index first = order_.strip_rows(strips.begin).begin;
    const Range rows{first, order_.strip_rows(strips.end() - 1).end() - first};
    const MatrixView<const T> part = source.read(rows, cols);
    {
      const DiskWait wait = begin_wait(part.size() * Index{sizeof(T)});
      norm_ = std::hypot(norm_, norm_of_block(part));
      store_tiles(part, strips, cols, write);
    }
    keep_alive();
  };
  const Index all = order_.cols();
  if (slabs_.count() > 0 && !source.by_columns()) {
    for (Index slab = 0; slab < slabs_.count(); ++slab) store_part(slabs_.strips_of(slab), {0, all});
  } else if (slabs_.count() > 0) {
    // As many columns as make a slab, or of long columns some strips.
    const Index depth = order_.depth(), of_strip = order_.strip_rows(0).size * Index{sizeof(T)};
    const Index strips = std::clamp(slabs_.bytes_each() / (of_strip * depth), Index{1}, slabs_.strips);
    const Index width = std::max(slabs_.bytes_each() / (of_strip * strips) / depth, Index{1}) * depth;
    for (Index col = 0; col < all; col += width)
      for (Index strip = 0; strip < slabs_.strips; strip += strips)
        store_part({strip, std::min(strips, slabs_.strips - strip)}, {col, std::min(width, all - col)});
  }
}

template <Scalar T>
void SlabBlock<T>::add_to_norm(Index part, const std::byte* memory) {
  SquareSum sum;
  for_each_piece(part, [&](Index begin, Index bytes) {
    sum.add(reinterpret_cast<const R*>(memory + begin), bytes / Index{sizeof(R)});
  });
  norm_ = std::hypot(norm_, sum.root());
}

/// Stores the tiles of these strips and columns, which `part` has.
template <Scalar T>
void SlabBlock<T>::store_tiles(MatrixView<const T> part, Range strips, Range cols,
                               const WritePart& write) const {
  const Workspace<R> room(order_.height() * order_.depth());
  auto* const tile = reinterpret_cast<std::byte*>(room.data());
  const Index first = order_.strip_rows(strips.begin).begin;
  for (Index strip = strips.begin; strip < strips.end(); ++strip) {
    const Range rows = order_.strip_rows(strip);
    for (Index col = cols.begin; col < cols.end(); col += order_.depth()) {
      const Range columns{col - cols.begin, std::min(order_.depth(), cols.end() - col)};
      order_.pack(part.block({rows.begin - first, rows.size}, columns), col, room.data());
      write(strip / slabs_.strips_each, place(strip, col), tile, bytes_of_tile(col));
    }
  }
}

template <Scalar T>
void SlabBlock<T>::multiply(const ProcessGrid&, Op op, T alpha, MatrixView<const T> X, T beta,
                            MatrixView<T> Y) {
  const TraceRegion region("local product");
  trace_flops(product_flops<T>(X.rows, Y.rows, X.cols));
  multiply_tiles(Tiles(*this, op), order_.kernels(), op, alpha, X, beta, Y, column_stable_);
}

template <Scalar T>
void SlabBlock<T>::multiply_once(const ProcessGrid&, MatrixView<const T> P, MatrixView<const T> data,
                                 MatrixView<T> Q, MatrixView<T> W, const Completion& completed) {
  const TraceRegion region("local product");
  trace_flops(3 * product_flops<T>(Q.rows, W.rows, P.cols));
  if (slabs_.count() == 0) {
    const Kernels<T>& kernels = backend_->template kernels<T>();
    kernels.fill(T(0), Q);
    kernels.fill(T(0), W);
  } else {
    one_pass_in_parts(Tiles(*this, Op::none), order_, column_stable_, P, data, Q, W.col_block({0, P.cols}),
                      W.col_block({P.cols, P.cols}), completed);
  }
}

template <Scalar T>
void SlabBlock<T>::visit_rows(const ProcessGrid& grid, Op op, const typename LocalBlock<T>::UseRows& use) {
  if (op != Op::none) return LocalBlock<T>::visit_rows(grid, op, use);
  if (slabs_.count() == 0) return;
  const Tiles tiles(*this, Op::none);
  Buffer<T> elements(backend_, order_.strip_rows(0).size * cols());
  tiles.in_parts([&](Range strips) {
    for (Index strip = strips.begin; strip < strips.end(); ++strip) {
      const Range range = order_.strip_rows(strip);
      const MatrixView<T> slab = elements.matrix(range.size, cols());
      for (Index col = 0; col < cols(); col += order_.depth())
        order_.unpack(tiles.tile(strip, col, {}).begin,
                      slab.col_block({col, std::min(order_.depth(), cols() - col)}));
      use(range, slab);
    }
    tiles.release_before(strips.end());
  });
}

#define GRIDLOPS_INSTANTIATE(T) template class SlabBlock<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
