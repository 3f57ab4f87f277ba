// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <type_traits>
#include <variant>

#include "local/threads.hpp"
#include "local/tiles/real_parts.hpp"
#include "local/tiles/tile_groups.hpp"
#include "local/tiles/workspace.hpp"

namespace gridlops {

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

}  // namespace gridlops
