// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/numbers.hpp"
#include "local/tiles/tile_kernels.hpp"

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

}  // namespace gridlops
