// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "local/packed_kernels.hpp"
#include "local/skinny_parts.hpp"

namespace gridlops {

/// The tiles of a chunk: a part of a strip that is multiplied by all right-hand sides before the next part.
/// It is 8 KiB with AVX2 and 16 KiB with AVX-512, which stay in the first-level cache.
inline constexpr Index chunk_tiles = 16;

/// The order of elements of a matrix whose rows meet the columns of strips: chunk after chunk, in a chunk
/// group after group of its (real) columns, in a group tile after tile, and in a tile column after column of
/// tile_cols elements. There is at least one column.
class ChunkedColumns {
 public:
  ChunkedColumns(Index rows, Index tile_cols, Index columns, int widest)
      : tile_cols_(tile_cols), tiles_((rows + tile_cols - 1) / tile_cols), columns_(columns) {
    const Index groups = (columns + widest - 1) / widest;
    for (Index group = 0; group <= groups; ++group) begins_.push_back(group * columns / groups);
  }

  Index size() const { return tiles_ * tile_cols_ * columns_; }
  Index tiles() const { return tiles_; }
  /// Where the chunk that begins at `tile` lies.
  Index tiles_from(Index tile) const { return std::min(chunk_tiles, tiles_ - tile); }

  Index columns() const { return columns_; }
  Index groups() const { return static_cast<Index>(begins_.size()) - 1; }
  Index begin(Index group) const { return begins_[static_cast<std::size_t>(group)]; }
  Index width(Index group) const { return begin(group + 1) - begin(group); }
  Index group_of(Index column) const { return ((column + 1) * groups() - 1) / columns_; }

  /// Where a group of the chunk that begins at `tile` begins.
  Index at(Index tile, Index group) const {
    return (tile * columns_ + begin(group) * tiles_from(tile)) * tile_cols_;
  }
  /// Where a column of a tile begins.
  Index run(Index tile, Index column) const {
    const Index first = tile / chunk_tiles * chunk_tiles, group = group_of(column);
    return at(first, group) + ((tile - first) * width(group) + column - begin(group)) * tile_cols_;
  }

 private:
  Index tile_cols_, tiles_, columns_;
  std::vector<Index> begins_;  // of the groups, and the end
};

template <class Table>
auto* kernel_for(const Table& table, Index width) {
  return table[static_cast<std::size_t>(width - 1)];
}

/// The products of some strips with X; each strip has a slot.
template <Scalar T>
class PackedForward {
  using R = Real<T>;
  using Kernels = PackedKernels<R>;
  using Tiles = typename Kernels::Tiles;
  using Ahead = typename Kernels::Ahead;

 public:
  PackedForward(const Kernels& kernels, MatrixView<const T> X, Index slots)
      : kernels_(kernels),
        place_(X.rows, kernels.tile_cols, parts<T> * X.cols, Kernels::widest_forward),
        coefficients_(place_.size()),
        sums_(slots * slot_size()) {
    for (Index c = 0; c < place_.columns(); ++c) {
      for (Index t = 0; t < place_.tiles(); ++t) {
        R* to = coefficients_.data() + place_.run(t, c);
        for (Index k = t * kernels.tile_cols; k < (t + 1) * kernels.tile_cols; ++k)
          *to++ = k < X.rows ? real_part_of(X, k, c) : R(0);
      }
    }
  }

  /// Adds a chunk's product to the slot's, or begins it with the first chunk's.
  void run(Index slot, const Tiles& chunk, Index tile, const Ahead& ahead) {
    R* const sums = sums_.data() + slot * slot_size();
    if (tile == 0) std::fill_n(sums, slot_size(), R(0));
    const Index steps = place_.tiles_from(tile);
    Ahead step = ahead.part(0, place_.groups() * steps);
    for (Index g = 0; g < place_.groups(); ++g, step.begin += step.size * steps) {
      kernel_for(kernels_.forward, place_.width(g))(chunk, coefficients_.data() + place_.at(tile, g),
                                                    sums + place_.begin(g) * Kernels::rows * kernels_.parts(),
                                                    step);
    }
  }

  /// Element i of the slot's rows of the product's column j.
  T sum(Index slot, Index i, Index j) const {
    const auto real_sum = [&](Index row, Index c) {
      const R* const of = sums_.data() + slot * slot_size() + (c * Kernels::rows + row) * kernels_.parts();
      R sum = 0;
      for (Index part = 0; part < kernels_.parts(); ++part) sum += of[part];
      return sum;
    };
    if constexpr (is_complex<T>) {
      return T(real_sum(2 * i, 2 * j) - real_sum(2 * i + 1, 2 * j + 1),
               real_sum(2 * i + 1, 2 * j) + real_sum(2 * i, 2 * j + 1));
    } else {
      return real_sum(i, j);
    }
  }

 private:
  Index slot_size() const { return Kernels::rows * place_.columns() * kernels_.parts(); }

  const Kernels& kernels_;
  ChunkedColumns place_;
  Workspace<R> coefficients_, sums_;
};

/// The sum over strips of op(strip) times its rows of Y. Slots hold the rows of some strips.
template <Scalar T>
class PackedAdjoint {
  using R = Real<T>;
  using Kernels = PackedKernels<R>;
  using Tiles = typename Kernels::Tiles;
  using Ahead = typename Kernels::Ahead;

 public:
  PackedAdjoint(const Kernels& kernels, Op op, Index cols, Index columns, Index slots)
      : kernels_(kernels),
        op_(op),
        place_(cols, kernels.tile_cols, parts<T> * columns, Kernels::widest_adjoint),
        rows_of_Y_(slots * slot_size()),
        sums_(place_.size()) {
    std::fill_n(sums_.data(), place_.size(), R(0));
  }

  /// Sets the rows below the last one of the matrix to zero.
  void clear(Index slot) { std::fill_n(rows_of_Y_.data() + slot * slot_size(), slot_size(), R(0)); }

  /// Column j of the slot's rows of Y.
  void set(Index slot, Index j, const T* y, Index rows) {
    const R sign = op_ == Op::adjoint ? R(1) : R(-1);
    for (int part = 0; part < parts<T>; ++part) {
      const Index c = parts<T> * j + part, group = place_.group_of(c), width = place_.width(group);
      const Index begin = place_.begin(group);
      R* const to = rows_of_Y_.data() + slot * slot_size() + begin * Kernels::rows + c - begin;
      for (Index i = 0; i < rows; ++i) {
        if constexpr (is_complex<T>) {
          to[2 * i * width] = part == 0 ? y[i].real() : y[i].imag();
          to[(2 * i + 1) * width] = part == 0 ? sign * y[i].imag() : -sign * y[i].real();
        } else {
          to[i * width] = y[i];
        }
      }
    }
  }

  /// Adds the products with a chunk of the slot's strip, and of the strips in the slots after it.
  void run(Index slot, const Tiles& chunks, Index tile, const Ahead& ahead) {
    const auto& table = kernels_.adjoint[static_cast<std::size_t>(chunks.strips - 1)];
    const R* const Y = rows_of_Y_.data() + slot * slot_size();
    const Index steps = place_.tiles_from(tile);
    Ahead step = ahead.part(0, place_.groups() * steps);
    for (Index g = 0; g < place_.groups(); ++g, step.begin += step.size * steps) {
      kernel_for(table, place_.width(g))(chunks, Y + place_.begin(g) * Kernels::rows, slot_size(),
                                         sums_.data() + place_.at(tile, g), step);
    }
  }

  /// X ← α sum + β X.
  void finish(T alpha, T beta, MatrixView<T> X) const {
    for (Index j = 0; j < X.cols; ++j) {
      for (Index t = 0; t < place_.tiles(); ++t) {
        const R* const from = sums_.data() + place_.run(t, parts<T> * j);
        const Index begin = t * kernels_.tile_cols, count = std::min(kernels_.tile_cols, X.rows - begin);
        if constexpr (is_complex<T>) {
          const R* const imaginary = sums_.data() + place_.run(t, 2 * j + 1);
          for (Index k = 0; k < count; ++k)
            add_scaled(alpha, T(from[k], imaginary[k]), beta, X(begin + k, j));
        } else {
          for (Index k = 0; k < count; ++k) add_scaled(alpha, from[k], beta, X(begin + k, j));
        }
      }
    }
  }

 private:
  Index slot_size() const { return Kernels::rows * place_.columns(); }

  const Kernels& kernels_;
  Op op_;
  ChunkedColumns place_;
  Workspace<R> rows_of_Y_, sums_;
};

}  // namespace gridlops
