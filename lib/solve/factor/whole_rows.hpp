// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "base/numbers.hpp"
#include "gridlops/base/trace.hpp"
#include "ops/matrix/local_block.hpp"

namespace gridlops {

/// The rows that a rank gets in an exchange of rows, at most: as many as make a product fast, and not more
/// than 64 MiB.
constexpr Index exchanged_rows(Index cols, Index element_bytes) {
  constexpr Index least = 32, most = 512, bytes = Index{64} << 20;
  return std::clamp(bytes / (cols * element_bytes + 1), least, most);
}

/// The bytes that a rank takes for what it sends and receives in such exchanges, at most.
constexpr Index exchanged_rows_bytes(Index cols, Index element_bytes, int ranks) {
  return ranks == 1 ? 0 : 2 * exchanged_rows(cols, element_bytes) * cols * element_bytes;
}

/// Gives each row of a matrix whole to one of the ranks that have a part of it, some rows at a time. Blocks
/// of a few rows are exchanged among these ranks, each of which gets an equal share of them.
template <Scalar T>
class RowExchange {
 public:
  using UseRows = typename LocalBlock<T>::UseRows;

  /// rows: the global rows of this rank's block, which all ranks of `group` have, too. cols: the columns of
  /// the blocks of the group's ranks.
  RowExchange(Communicator& group, const Partition& cols, Range rows, const UseRows& use)
      : group_(group), cols_(cols), rows_(rows), use_(use) {}

  void allocate(const std::shared_ptr<Backend>& backend) {
    outgoing_ = Buffer<T>(backend, most_rows() * my_cols());
    incoming_ = Buffer<T>(backend, share(most_rows(), 0).size * cols_.total());
    sent_.resize(at(group_.size()));
    received_.resize(at(group_.size()));
  }
  /// Takes the next rows of this rank's block.
  void add(MatrixView<const T> rows) {
    for (Index taken = 0; taken < rows.rows;) {
      const Index before = filled_ - exchanged_, count = std::min(rows.rows - taken, height() - before);
      put(before, rows.row_block({taken, count}));
      taken += count;
      filled_ += count;
      if (before + count == height()) exchange();
    }
  }
  /// Joins the exchanges that are left, with meaningless elements.
  void finish() {
    while (exchanged_ < rows_.size) exchange();
  }

 private:
  Index my_cols() const { return cols_.size(group_.rank()); }
  /// The rows that are exchanged together.
  Index most_rows() const {
    return std::min(exchanged_rows(cols_.total(), Index{sizeof(T)}) * group_.size(),
                    std::max<Index>(rows_.size, 1));
  }
  /// The rows of the next exchange.
  Index height() const { return std::min(most_rows(), rows_.size - exchanged_); }
  Range share(Index height, int rank) const { return balanced_part(height, group_.size(), rank); }

  /// Puts rows of a block into what each rank is sent, which is contiguous.
  void put(Index first, MatrixView<const T> rows) {
    for (int rank = 0; rank < group_.size(); ++rank) {
      const Range theirs = share(height(), rank), both = intersect(theirs, {first, rows.rows});
      if (both.size == 0) continue;
      T* const to = outgoing_.data() + theirs.begin * my_cols();
      for (Index j = 0; j < rows.cols; ++j)
        std::copy_n(rows.column(j) + both.begin - first, both.size,
                    to + j * theirs.size + both.begin - theirs.begin);
    }
  }
  void exchange() {
    const TraceRegion region("exchange rows");
    const Range mine = share(height(), group_.rank());
    for (int rank = 0; rank < group_.size(); ++rank) {
      sent_[at(rank)] = share(height(), rank).size * my_cols();
      received_[at(rank)] = mine.size * cols_.size(rank);
    }
    group_.all_to_all_v({outgoing_.data(), height() * my_cols()}, sent_,
                        {incoming_.data(), mine.size * cols_.total()}, received_);
    if (mine.size > 0)
      use_({rows_.begin + exchanged_ + mine.begin, mine.size}, incoming_.matrix(mine.size, cols_.total()));
    exchanged_ += height();
    filled_ = exchanged_;
  }

  Communicator& group_;
  const Partition cols_;
  const Range rows_;
  const UseRows& use_;
  Buffer<T> outgoing_, incoming_;
  std::vector<Index> sent_, received_;  // elements, of and from each rank
  Index filled_ = 0, exchanged_ = 0;    // rows of the block
};

/// Calls use() for each row of A once, on one rank of the grid: whole rows, some at a time, with their global
/// numbers, in host memory (collective over the grid; one agreement). Each rank gets about as many rows.
/// Blocks are read once. allocate() takes the memory of use(). Throws, on all ranks, if a rank lacks memory.
/// If reading a block throws on this rank, `failures` keeps the exception, and some rows are meaningless.
template <Scalar T, class Allocate>
void visit_whole_rows(const MatrixInBlocks<T>& A, const ProcessGrid& grid, FailureScope& failures,
                      const typename LocalBlock<T>::UseRows& use, Allocate&& allocate) {
  const Layout& layout = A.layout_of_matrix();
  const Range rows = layout.row_range(grid, grid.my_row(), grid.my_col());
  if (layout.cols.partition.parts() == 1) {
    const bool copied_along_rows = layout.rows.axis == Axis::grid_rows;
    const Range mine = copied_along_rows ? balanced_part(rows.size, grid.cols(), grid.my_col())
                                         : balanced_part(rows.size, grid.rows(), grid.my_row());
    const auto use_mine = [&](Range visited, MatrixView<const T> elements) {
      const Range both = intersect(visited, mine);
      if (both.size > 0)
        use({rows.begin + both.begin, both.size},
            elements.row_block({both.begin - visited.begin, both.size}));
    };
    return visit_rows<T>(A, grid, mine.size > 0, failures, use_mine, allocate);
  }
  RowExchange<T> exchange(grid.row_comm(), layout.cols.partition, rows, use);
  visit_rows<T>(
      A, grid, true, failures, [&](Range, MatrixView<const T> elements) { exchange.add(elements); },
      [&] {
        exchange.allocate(grid.backend());
        allocate();
      });
  exchange.finish();
}

}  // namespace gridlops
