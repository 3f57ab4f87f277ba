// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <deque>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/at_work.hpp"
#include "base/numbers.hpp"
#include "local/threads.hpp"
#include "local/tiles/real_parts.hpp"
#include "local/tiles/tile_kernels.hpp"
#include "local/tiles/workspace.hpp"

namespace gridlops {

/// The widths of groups of right-hand sides. Together the groups may be wider than the number of columns.
using Widths = std::vector<int>;

/// As few groups as possible, of nearly the same width, for columns of `parts` real ones.
inline Widths even_widths(Index columns, int parts, int widest) {
  const Index most = widest / parts, groups = (columns + most - 1) / most;
  Widths widths;
  for (Index g = 0; g < groups; ++g)
    widths.push_back(parts * static_cast<int>((g + 1) * columns / groups - g * columns / groups));
  return widths;
}

/// The groups that take the least time.
template <class AdjointTable>
Widths adjoint_widths(Index columns, const AdjointTable& kernels) {
  Widths widths;
  for (Index rest = columns; rest > 0; rest -= widths.back()) widths.push_back(kernels.first_width(rest));
  return widths;
}

/// The order of the elements of a matrix whose rows meet the columns of tiles: block after block of `depth`
/// rows, a power of two; in a block, group after group of its columns; in a group, row after row.
class GroupedColumns {
 public:
  GroupedColumns(Index rows, Index depth, Widths widths)
      : rows_(rows), depth_(depth), widths_(std::move(widths)) {
    for (const int width : widths_) begins_.push_back(begins_.back() + width);
  }

  Index rows() const { return rows_; }
  Index size() const { return rows_ * columns(); }
  Index columns() const { return begins_.back(); }
  Index groups() const { return static_cast<Index>(widths_.size()); }
  int width(Index group) const { return widths_[at(group)]; }
  Index begin(Index group) const { return begins_[at(group)]; }
  Index group_of(Index column) const {
    return std::upper_bound(begins_.begin(), begins_.end(), column) - begins_.begin() - 1;
  }
  /// Where the group begins in the rows of a block from `row` on.
  Index place(Index row, Index group) const {
    const Index block = row & -depth_;
    return block * columns() + begin(group) * std::min(depth_, rows_ - block) + (row - block) * width(group);
  }

 private:
  Index rows_, depth_;
  Widths widths_;
  std::vector<Index> begins_{0};
};

template <class R>
Index padded_cols(Index cols) {
  constexpr Index unit = TileKernels<R>::unit;
  return (cols + unit - 1) / unit * unit;
}

template <class R>
using Ahead = typename TileKernels<R>::Ahead;

/// The share of it that the kernel for group g of `groups` fetches.
template <class R>
Ahead<R> share_of(const Ahead<R>& ahead, Index g, Index groups) {
  const Index cols = ahead.end - ahead.first;
  return {ahead.tile, ahead.first + g * cols / groups, ahead.first + (g + 1) * cols / groups};
}

/// Calls work(part, first, ahead) for a few columns of a tile at a time, from its column `first` on, which
/// become numbers of R in the first-level cache: then the processor widens the next ones while it multiplies.
template <class R, class Element, class Work>
void for_each_widened(const TileKernels<R>& kernels, const Tile<Element>& A, const Ahead<R>& ahead,
                      Work&& work) {
  constexpr Index at_once = 4 * TileKernels<R>::unit, highest = 64;
  alignas(64) R room[at(at_once * highest)];
  const Index parts = (A.cols + at_once - 1) / at_once;
  for (Index part = 0; part < parts; ++part) {
    const Index first = part * at_once, cols = std::min(at_once, A.cols - first);
    kernels.template of<Element>().widen({A.begin + first * A.stride, A.stride, cols}, room);
    work(Tile<R>{room, kernels.height, cols}, first, share_of<R>(ahead, part, parts));
  }
}

/// The products of some strips of A with X. Each strip has a slot.
template <Scalar T>
class ForwardTiles {
  using R = Real<T>;

 public:
  ForwardTiles(const TileKernels<R>& kernels, Index depth, MatrixView<const T> X, Index slots)
      : kernels_(kernels),
        order_(padded_cols<R>(X.rows), depth, even_widths(X.cols, parts<T>, kernels.widest_forward)),
        X_(order_.size()),
        sums_(slots * slot_size()) {
    const int threads = threads_for(static_cast<double>(order_.size()));
    for_ranges(order_.rows(), depth, threads, [&](int, Range rows) {
      for (Index row = rows.begin; row < rows.end(); row += depth)
        for (Index g = 0; g < order_.groups(); ++g)
          copy_group(X, row, std::min(depth, order_.rows() - row), g);
    });
  }

  /// Adds a tile's product to the slot's, or starts it if the tile is the first. Fetches what lies ahead.
  template <class Element>
  void add(Index slot, const Tile<Element>& A, Index col, const Ahead<R>& ahead) {
    if (col == 0) std::fill_n(sums_.data() + slot * slot_size(), slot_size(), R(0));
    if constexpr (std::is_same_v<Element, R>) {
      // Few columns pass by so fast that the processor's own prefetching keeps up.
      multiply(slot, A, col, kernels_.forward, order_.columns() < 6 ? Ahead<R>{} : ahead);
    } else if (order_.groups() == 1) {
      multiply(slot, A, col, kernels_.template of<Element>().forward, ahead);
    } else {
      for_each_widened(kernels_, A, ahead, [&](const Tile<R>& part, Index first, const Ahead<R>& share) {
        multiply(slot, part, col + first, kernels_.forward, share);
      });
    }
  }

  template <class... Element>
  void add(Index slot, const std::variant<Tile<Element>...>& A, Index col, const Ahead<R>& ahead) {
    std::visit([&](const auto& tile) { add(slot, tile, col, ahead); }, A);
  }

  /// Y ← α sums + β Y, for the rows Y of the slot's strip, and of the next slots' if there are more.
  void finish(Index slot, T alpha, T beta, MatrixView<T> Y) const {
    const Index height = kernels_.height / parts<T>;
    for (Index j = 0; j < Y.cols; ++j) {
      const R* sums = sums_.data() + slot * slot_size() + parts<T> * j * kernels_.height;
      for (Index row = 0; row < Y.rows; row += height, sums += slot_size()) {
        const R* const imaginary = sums + kernels_.height;
        const auto sum = [=](Index i) {
          if constexpr (is_complex<T>) {
            return T(sums[2 * i] - imaginary[2 * i + 1], sums[2 * i + 1] + imaginary[2 * i]);
          } else {
            return sums[i];
          }
        };
        add_scaled(alpha, sum, beta, Y.column(j) + row, std::min(height, Y.rows - row));
      }
    }
  }

 private:
  template <class Element, class Kernels>
  void multiply(Index slot, const Tile<Element>& A, Index col, const Kernels& forward,
                const Ahead<R>& ahead) {
    R* const sums = sums_.data() + slot * slot_size();
    for (Index g = 0; g < order_.groups(); ++g)
      forward[at(order_.width(g) - 1)](A, X_.data() + order_.place(col, g),
                                       sums + order_.begin(g) * kernels_.height,
                                       share_of<R>(ahead, g, order_.groups()));
  }

  Index slot_size() const { return kernels_.height * order_.columns(); }

  /// Rows [row, row + count) of a group's columns, row by row. An element is its real columns, side by side.
  /// Rows beyond X's are zero.
  void copy_group(MatrixView<const T> X, Index row, Index count, Index group) {
    T* const to = reinterpret_cast<T*>(X_.data() + order_.place(row, group));
    const Index width = order_.width(group) / parts<T>, first = order_.begin(group) / parts<T>;
    const Index filled = std::clamp(X.rows - row, Index{0}, count);
    for (Index c = 0; c < width; ++c) {
      const T* const from = X.column(first + c) + row;
      for (Index k = 0; k < filled; ++k) to[k * width + c] = from[k];
    }
    std::fill(to + filled * width, to + count * width, T(0));
  }

  const TileKernels<R>& kernels_;
  GroupedColumns order_;
  Workspace<R> X_, sums_;
};

/// The sum, over strips, of op(strip) times its rows of Y. Slots hold the rows of some strips.
template <Scalar T>
class AdjointTiles {
  using R = Real<T>;

 public:
  /// If column-stable, each sum is one chain.
  AdjointTiles(const TileKernels<R>& kernels, Index depth, Op op, Index cols, Index columns, Index slots,
               bool column_stable)
      : all_kernels_(kernels),
        height_(kernels.height),
        kernels_(column_stable ? kernels.chains : kernels.adjoint),
        op_(op),
        depth_(depth),
        order_(padded_cols<R>(cols), depth, adjoint_widths(parts<T> * columns, kernels_)),
        Y_(slots * slot_size()),
        sums_(order_.size()) {
    std::fill_n(Y_.data(), slots * slot_size(), R(0));
    std::fill_n(sums_.data(), order_.size(), R(0));
  }

  /// Puts a strip's rows of Y into the slot, and those of the next strips into the next slots, as columns
  /// from `first` on. Rows beyond Y's are zero.
  void set(Index slot, Index first, MatrixView<const T> Y) {
    for (Index j = 0; j < Y.cols; ++j) {
      const Index column = parts<T> * (first + j), group = order_.group_of(column);
      const Index width = order_.width(group), run = kernels_.of_width(order_.width(group)).run;
      R* to = Y_.data() + slot * slot_size() + order_.begin(group) * height_ +
              (column - order_.begin(group)) * run;
      for (Index row = 0; row < Y.rows; row += height_ / parts<T>, to += slot_size())
        set_column(Y.column(j) + row, std::min(Y.rows - row, height_ / parts<T>), to, run, width);
    }
  }

  /// In one pass: how much of the next run memory can deliver while one is multiplied.
  Index quarters_to_fetch() const {
    return order_.columns() < 4 ? 0 : std::min<Index>(order_.columns() - 1, 4);
  }

  /// Adds the product with a tile of the slot's strip. Fetches what lies ahead.
  template <class Element>
  void add(Index slot, const Tile<Element>& A, Index col, const Ahead<R>& ahead) {
    if constexpr (std::is_same_v<Element, R>) {
      multiply(slot, A, col, ahead);
    } else {
      for_each_widened(all_kernels_, A, ahead, [&](const Tile<R>& part, Index first, const Ahead<R>& share) {
        multiply(slot, part, col + first, share);
      });
    }
  }

  template <class... Element>
  void add(Index slot, const std::variant<Tile<Element>...>& A, Index col, const Ahead<R>& ahead) {
    std::visit([&](const auto& tile) { add(slot, tile, col, ahead); }, A);
  }

  /// X ← α sums + β X, for these rows of X and the columns of the sums from `first` on.
  void finish(Index first, T alpha, T beta, MatrixView<T> X, Range rows) const {
    const Index end = std::min(rows.end(), X.rows);
    for (Index j = 0; j < X.cols; ++j) {
      const Index column = parts<T> * (first + j), group = order_.group_of(column);
      const Index width = order_.width(group);
      for (Index row = rows.begin; row < end; row += depth_) {
        const R* const sums = sums_.data() + order_.place(row, group) + column - order_.begin(group);
        const auto sum = [=](Index k) {
          const R* const at = sums + k * width;
          if constexpr (is_complex<T>) {
            return T(at[0], at[1]);
          } else {
            return at[0];
          }
        };
        add_scaled(alpha, sum, beta, X.column(j) + row, std::min(depth_, end - row));
      }
    }
  }

 private:
  void multiply(Index slot, const Tile<R>& A, Index col, const Ahead<R>& ahead) {
    const R* const Y = Y_.data() + slot * slot_size();
    for (Index g = 0; g < order_.groups(); ++g)
      kernels_.of_width(order_.width(g))
          .kernel(A, Y + order_.begin(g) * height_, sums_.data() + order_.place(col, g),
                  share_of<R>(ahead, g, order_.groups()));
  }

  Index slot_size() const { return height_ * order_.columns(); }

  /// A complex element has two real rows and columns (real_parts.hpp). Two of its four numbers are side by
  /// side: those of a column in a run, else those of a row.
  void set_column(const T* y, Index count, R* to, Index run, Index width) const {
    const Index rows = std::max(run, Index{parts<T>}), apart = run > 1 ? run : width;
    const R sign = op_ == Op::adjoint ? R(1) : R(-1), below = run > 1 ? sign : R(1), beside = sign * below;
    for (Index k = 0, i = 0; k < height_; k += rows, to += rows * width) {
      for (Index l = 0; l < rows; l += parts<T>, ++i) {
        const T element = i < count ? y[i] : T(0);
        if constexpr (is_complex<T>) {
          to[l] = element.real();
          to[l + 1] = below * element.imag();
          to[l + apart] = beside * element.imag();
          to[l + apart + 1] = -sign * element.real();
        } else {
          to[l] = element;
        }
      }
    }
  }

  const TileKernels<R>& all_kernels_;
  Index height_;
  const typename TileKernels<R>::AdjointTable& kernels_;
  Op op_;
  Index depth_;
  GroupedColumns order_;
  Workspace<R> Y_, sums_;
};

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
