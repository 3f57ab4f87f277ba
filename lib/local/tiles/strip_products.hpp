// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <deque>
#include <initializer_list>

#include "base/at_work.hpp"
#include "local/threads.hpp"
#include "local/tiles/tile_sums.hpp"

namespace gridlops {

/// The most columns of X and Y that a product copies together.
inline constexpr Index columns_of_product = 128;

/// Calls work(strip, col, tile, ahead) for the tiles of A in these strips and columns, where the next tile
/// lies ahead, as far as possible in memory order: of several strips, one after the other, the tiles of one
/// run of columns; then those of the next run; then the next strips. So right-hand sides and sums are read
/// from a cache no more often than A from memory.
template <class Tiles, class Work>
void for_each_tile(const Tiles& A, Range strips, Range cols, Work&& work) {
  const auto room = A.room();
  Index strip = 0, col = 0;
  bool is_first = true;
  for (Index block = strips.begin; block < strips.end(); block += A.strips_at_once()) {
    const Index end = std::min(block + A.strips_at_once(), strips.end());
    for (Index run = cols.begin, next_run; run < cols.end(); run = next_run) {
      next_run = std::min((run / A.run() + 1) * A.run(), cols.end());
      for (Index s = block; s < end; ++s) {
        for (Index k = run; k < next_run; k = A.end(k)) {
          if (!is_first) work(strip, col, A.tile(strip, col, room), A.ahead(s, k));
          is_first = false;
          strip = s;
          col = k;
        }
      }
    }
  }
  if (!is_first) work(strip, col, A.tile(strip, col, room), A.ahead(strip, col));
}

/// Tiles of a matrix that is in memory a part at a time. A.in_parts(work) calls work(strips) for one part
/// after the other, from the first strip to the last. A.release_before(strip) says which strips are no longer
/// used.
template <class Tiles>
concept ArriveInParts = requires(const Tiles& A) {
  A.in_parts([](Range) {});
  A.release_before(Index{});
};

/// Calls work(strips) for all strips, a part at a time, and then no longer uses them.
template <class Tiles, class Work>
void for_each_part(const Tiles& A, Work&& work) {
  if constexpr (ArriveInParts<Tiles>) {
    A.in_parts([&](Range strips) {
      const AtWork at_work;
      work(strips);
      A.release_before(strips.end());
    });
  } else {
    work(Range{0, A.strips()});
  }
}

/// The rows of the matrix in these strips, each of this height.
inline Range rows_of(Range strips, Index height, Index rows) {
  const Index begin = strips.begin * height;
  return {begin, std::min(strips.size * height, rows - begin)};
}

/// Y ← α A X + β Y, some strips of A at a time. Each thread has strips of its own. Columns form groups of at
/// most `group`, for which the strips are read in turn.
template <Scalar T>
class ForwardProduct {
 public:
  template <class Tiles>
  ForwardProduct(const Tiles& A, const TileKernels<Real<T>>& kernels, MatrixView<const T> X, int threads,
                 Index group)
      : height_(kernels.height / parts<T>),
        threads_(threads),
        at_once_(std::min(A.strips(), A.strips_at_once())),
        group_(group) {
    for (Index j = 0; j < X.cols; j += group)
      products_.emplace_back(kernels, A.depth(), X.col_block({j, std::min(group, X.cols - j)}),
                             threads * at_once_);
  }

  template <class Tiles>
  void add(const Tiles& A, Range part, T alpha, T beta, MatrixView<T> Y) {
    Index first = 0;
    for (ForwardTiles<T>& product : products_) {
      const MatrixView<T> Y_group = Y.col_block({first, std::min(group_, Y.cols - first)});
      first += group_;
      for_ranges(part.size, 1, threads_, [&](int thread, Range strips) {
        strips.begin += part.begin;
        for_each_tile(A, strips, {0, A.cols()},
                      [&](Index strip, Index col, const auto& tile, const auto& next) {
                        const Index first_slot = thread * at_once_, k = (strip - strips.begin) % at_once_;
                        product.add(first_slot + k, tile, col, next);
                        const bool is_last = k + 1 == at_once_ || strip + 1 == strips.end();
                        if (is_last && A.end(col) >= A.cols())
                          product.finish(first_slot, alpha, beta,
                                         Y_group.row_block(rows_of({strip - k, k + 1}, height_, Y.rows)));
                      });
      });
    }
  }

 private:
  Index height_;
  int threads_;
  Index at_once_, group_;
  std::deque<ForwardTiles<T>> products_;
};

/// Y ← α op(A) X + β Y for the transpose or the adjoint, some strips of A at a time. Each thread has columns
/// of A, so that every sum belongs to one thread. Groups of columns as in the forward product.
template <Scalar T>
class AdjointProduct {
 public:
  template <class Tiles>
  AdjointProduct(const Tiles& A, const TileKernels<Real<T>>& kernels, Op op, Index columns, int threads,
                 bool column_stable, Index group)
      : height_(kernels.height / parts<T>),
        depth_(A.depth()),
        threads_(threads),
        at_once_(std::min(A.strips(), A.strips_at_once())),
        columns_(columns),
        group_(group) {
    for (Index j = 0; j < columns; j += group)
      products_.emplace_back(kernels, A.depth(), op, A.cols(), std::min(group, columns - j),
                             threads * at_once_, column_stable);
  }

  /// X: matrices whose columns lie side by side, with all rows of A.
  template <class Tiles>
  void add(const Tiles& A, Range part, std::initializer_list<MatrixView<const T>> X) {
    for_each_group([&](AdjointTiles<T>& product, Range columns) {
      const auto set = [&](Index slot, Range strips) {
        Index first = 0;
        for (const MatrixView<const T>& side : X) {
          const Range common = intersect({first, side.cols}, columns);
          if (common.size > 0)
            product.set(slot, common.begin - columns.begin,
                        side.col_block({common.begin - first, common.size})
                            .row_block(rows_of(strips, height_, side.rows)));
          first += side.cols;
        }
      };
      for_ranges(A.cols(), A.depth(), threads_, [&](int thread, Range cols) {
        for_each_tile(A, part, cols, [&](Index strip, Index col, const auto& tile, const auto& next) {
          const Index first_slot = thread * at_once_, k = (strip - part.begin) % at_once_;
          if (k == 0 && col == cols.begin) set(first_slot, {strip, std::min(at_once_, part.end() - strip)});
          product.add(first_slot + k, tile, col, next);
        });
      });
    });
  }

  /// Y ← α sums + β Y, for the columns of Y from `first` on.
  void finish(Index first, T alpha, T beta, MatrixView<T> Y) const {
    for_each_group([&](const AdjointTiles<T>& product, Range columns) {
      const Range common = intersect({first, Y.cols}, columns);
      if (common.size == 0) return;
      const int threads = threads_for(static_cast<double>(Y.rows * common.size));
      for_ranges(Y.rows, depth_, threads, [&](int, Range rows) {
        product.finish(common.begin - columns.begin, alpha, beta,
                       Y.col_block({common.begin - first, common.size}), rows);
      });
    });
  }

 private:
  template <class Work>
  void for_each_group(Work&& work) {
    for (Index g = 0; g < std::ssize(products_); ++g)
      work(products_[at(g)], Range{g * group_, std::min(group_, columns_ - g * group_)});
  }
  template <class Work>
  void for_each_group(Work&& work) const {
    for (Index g = 0; g < std::ssize(products_); ++g)
      work(products_[at(g)], Range{g * group_, std::min(group_, columns_ - g * group_)});
  }

  Index height_, depth_;
  int threads_;
  Index at_once_, columns_, group_;
  std::deque<AdjointTiles<T>> products_;
};

/// Y ← α op(A) X + β Y for A in tiles, with X and Y not empty.
template <Scalar T, class Tiles>
void multiply_some(const Tiles& A, const TileKernels<Real<T>>& kernels, Op op, T alpha, MatrixView<const T> X,
                   T beta, MatrixView<T> Y, bool column_stable) {
  const Index rows = op == Op::none ? Y.rows : X.rows;
  const int threads = threads_for(product_flops<T>(rows, A.cols(), X.cols));
  if (op == Op::none) {
    ForwardProduct<T> product(A, kernels, X, threads, columns_of_product);
    for_each_part(A, [&](Range part) { product.add(A, part, alpha, beta, Y); });
  } else {
    AdjointProduct<T> product(A, kernels, op, X.cols, threads, column_stable, columns_of_product);
    for_each_part(A, [&](Range part) { product.add(A, part, {X}); });
    product.finish(0, alpha, beta, Y);
  }
}

/// Y ← α op(A) X + β Y for A in tiles. Any operand may be empty. Like BLAS it reads neither A for α = 0 nor Y
/// for β = 0.
template <Scalar T, class Tiles>
void multiply_tiles(const Tiles& A, const TileKernels<Real<T>>& kernels, Op op, T alpha,
                    MatrixView<const T> X, T beta, MatrixView<T> Y, bool column_stable) {
  if (Y.empty()) return;
  if (X.rows == 0 || alpha == T(0)) {
    for (Index j = 0; j < Y.cols; ++j)
      add_scaled(
          T(0), [](Index) { return T(0); }, beta, Y.column(j), Y.rows);
    return;
  }
  const Index together = ArriveInParts<Tiles> ? Y.cols : columns_of_product;
  for (Index j = 0; j < Y.cols; j += together) {
    const Range cols{j, std::min(together, Y.cols - j)};
    multiply_some<T>(A, kernels, op, alpha, X.col_block(cols), beta, Y.col_block(cols), column_stable);
  }
}

}  // namespace gridlops
