// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "gridlops/dist/partition.hpp"

namespace gridlops {

/// A part of a block. One rank of a communicator, the owner, has that block.
struct Part {
  int owner = 0;
  Range rows, cols;

  Index size() const { return rows.size * cols.size; }
  /// The same rows of a block with so many columns, all of which are taken.
  Part all_of(Index columns) const { return {owner, rows, {0, columns}}; }
  friend bool operator==(const Part&, const Part&) = default;
};

/// One step of a product C ← op(A) B in panels: rows of C += op(part of A) · rows of B. It takes all columns
/// of B and C.
struct Panel {
  std::size_t step = 0;
  Part A, B, C;
  bool is_first = true;  ///< of the steps that add to these rows of C
};

/// How many steps before its use a panel begins to travel: no more than there are steps.
inline std::size_t steps_ahead(int lookahead, std::size_t steps) {
  return std::clamp<std::size_t>(steps, 1, static_cast<std::size_t>(lookahead));
}

/// The width of the panels that travel: the one asked for, or one that is wide enough for a product near peak
/// speed and narrow enough that many of them overlap.
inline Index panel_width(Index asked) { return asked > 0 ? asked : 256; }

/// How many pieces of at most `width` a block of this size is cut into.
inline Index panel_count(Index size, Index width) { return size / width + (size % width > 0); }
inline Index panel_count(const std::vector<Range>& blocks, Index width) {
  Index count = 0;
  for (const Range& block : blocks) count += panel_count(block.size, width);
  return count;
}

/// Each block cut again into pieces of at most `width`.
inline std::vector<Range> cut_into_panels(const std::vector<Range>& blocks, Index width) {
  std::vector<Range> panels;
  panels.reserve(static_cast<std::size_t>(panel_count(blocks, width)));
  for (const Range& block : blocks)
    for (Index done = 0; done < block.size; done += panels.back().size)
      panels.push_back({block.begin + done, std::min(width, block.size - done)});
  return panels;
}

/// The steps of SUMMA: the inner dimension cut wherever the owner of A's columns or of X's rows changes, and
/// at the panel width.
inline std::vector<Range> summa_panels(const Partition& columns_of_A, const Partition& rows_of_X,
                                       Index width) {
  return cut_into_panels(common_refinement(columns_of_A, rows_of_X), width);
}

/// The blocks of a partition. stationary-b cuts those of A's rows into its steps.
inline std::vector<Range> blocks_of(const Partition& partition) {
  std::vector<Range> blocks;
  for (int part = 0; part < partition.parts(); ++part) blocks.push_back(partition.range(part));
  return blocks;
}

/// How many rows are summed over a grid row at a time while a normal product passes over A. The blocks of A
/// have at most `cols` columns, and the number is the same on all ranks of the row. It is so small that what
/// waits for its sum is still in a cache, and so large that reading the rows takes much longer than the few
/// microseconds in which a sum starts and ends.
inline Index one_pass_chunk(Index cols, Index element_bytes) {
  constexpr Index bytes = Index{1} << 19, unit = 8;
  return std::max<Index>(bytes / (std::max<Index>(cols, 1) * element_bytes * unit), 1) * unit;
}

}  // namespace gridlops
