// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "base/numbers.hpp"
#include "gridlops/base/trace.hpp"
#include "ops/stationary/local_block.hpp"

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
/// The bytes that a rank takes at most to visit the rows of a rows × cols matrix, or of its adjoint if it has
/// fewer rows than columns: of exchanges, and of columns that are turned into rows.
constexpr Index visited_rows_bytes(Index rows, Index cols, Index element_bytes, int ranks) {
  const Index n = std::min(rows, cols), turned = rows < cols ? 2 * visited_columns(n, element_bytes) : 0;
  return exchanged_rows_bytes(n, element_bytes, ranks) + turned * n * element_bytes;
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

/// The matrix of an operator whose blocks visit rows of op(A) and read their elements once; null if there is
/// none.
template <Scalar T>
const MatrixInBlocks<T>* matrix_with_rows(const LinearOperator<T>& A, Op op) {
  const MatrixInBlocks<T>* const matrix = matrix_in_blocks(A);
  return matrix != nullptr && (op == Op::none || matrix->block_facts().has_columns) ? matrix : nullptr;
}

/// Calls use() for each row of op(A) once, on one rank of the grid: whole rows, some at a time, with their
/// global numbers, in host memory (collective over the grid; one agreement). op: none or adjoint. Each rank
/// gets about as many rows. allocate() takes the memory of use(). Throws, on all ranks, if a rank lacks
/// memory. If reading a block throws on this rank, `failures` keeps the exception, and some rows are
/// meaningless.
template <Scalar T, class Allocate>
void visit_whole_rows(const MatrixInBlocks<T>& A, Op op, const ProcessGrid& grid, FailureScope& failures,
                      const typename LocalBlock<T>::UseRows& use, Allocate&& allocate) {
  const Layout& of_A = A.layout_of_matrix();
  const Layout layout = op == Op::none ? of_A : Layout{of_A.cols, of_A.rows};
  const Range rows = layout.row_range(grid, grid.my_row(), grid.my_col());
  // Ranks of a grid column that have copies of a block share its rows.
  const auto uses = [&](Axis axis) { return layout.rows.axis == axis || layout.cols.axis == axis; };
  const Range mine =
      uses(Axis::grid_rows) ? Range{0, rows.size} : balanced_part(rows.size, grid.rows(), grid.my_row());
  const auto visit_mine = [&](const auto& use_mine, const auto& allocate_all) {
    const auto use_visited = [&](Range visited, MatrixView<const T> elements) {
      const Range both = intersect(visited, mine);
      if (both.size > 0)
        use_mine({rows.begin + both.begin, both.size},
                 elements.row_block({both.begin - visited.begin, both.size}));
    };
    visit_rows<T>(A, op, grid, mine.size > 0, failures, use_visited, allocate_all);
  };
  if (layout.cols.partition.parts() == 1) return visit_mine(use, allocate);
  RowExchange<T> exchange(layout.cols.axis == Axis::grid_cols ? grid.row_comm() : grid.col_comm(),
                          layout.cols.partition, {rows.begin + mine.begin, mine.size}, use);
  visit_mine([&](Range, MatrixView<const T> elements) { exchange.add(elements); },
             [&] {
               exchange.allocate(grid.backend());
               allocate();
             });
  exchange.finish();
}

}  // namespace gridlops
