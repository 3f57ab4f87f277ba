// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "gridlops/dist/partition.hpp"

namespace gridlops {

/// A part of a block that one rank of a communicator, the owner, holds.
struct PanelPart {
  int owner = 0;
  Range rows, cols;

  Index size() const { return rows.size * cols.size; }
  /// Returns these rows of a block with this many columns, all of which are taken.
  PanelPart all_of(Index columns) const { return {owner, rows, {0, columns}}; }
  friend bool operator==(const PanelPart&, const PanelPart&) = default;
};

/// One step of a panel product C ← op(A) B: rows of C += op(part of A) · rows of B. It takes all columns of B
/// and C.
/// Reasons: docs/decisions/0016-panels-and-passes.md.
struct Panel {
  std::size_t step = 0;
  PanelPart A, B, C;
  bool is_first = true;  ///< the first step that adds to these rows of C
};

/// The number of steps by which panels travel ahead of their use, at most the number of steps.
inline std::size_t steps_ahead(int lookahead, std::size_t steps) {
  return std::clamp<std::size_t>(steps, 1, static_cast<std::size_t>(lookahead));
}

/// The width of the panels that travel: the requested width, or a default that is wide enough for nearly peak
/// speed and narrow enough for many panels to overlap.
inline Index panel_width(Index asked) { return asked > 0 ? asked : 256; }

/// The number of pieces, each at most `width` wide, that a block of this size is cut into.
inline Index panel_count(Index size, Index width) { return size / width + (size % width > 0); }
inline Index panel_count(const std::vector<Range>& blocks, Index width) {
  Index count = 0;
  for (const Range& block : blocks) count += panel_count(block.size, width);
  return count;
}

/// Cuts each block further into pieces at most `width` wide.
inline std::vector<Range> cut_into_panels(const std::vector<Range>& blocks, Index width) {
  std::vector<Range> panels;
  panels.reserve(static_cast<std::size_t>(panel_count(blocks, width)));
  for (const Range& block : blocks)
    for (Index done = 0; done < block.size; done += panels.back().size)
      panels.push_back({block.begin + done, std::min(width, block.size - done)});
  return panels;
}

/// The steps of SUMMA: cuts the inner dimension wherever the owner of A's columns or of X's rows changes, and
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

/// The number of rows summed over a grid row at a time while a normal product passes over A. The blocks of A
/// have at most `cols` columns, and the number is the same on all ranks of the row. It is small enough that
/// rows waiting for their sum stay in a cache, and large enough that reading them takes much longer than the
/// few microseconds needed to start and finish a sum.
inline Index one_pass_chunk(Index cols, Index element_bytes) {
  constexpr Index bytes = Index{1} << 19, unit = 8;
  return std::max<Index>(bytes / (std::max<Index>(cols, 1) * element_bytes * unit), 1) * unit;
}

}  // namespace gridlops
