// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "gridlops/partition.hpp"

namespace gridlops {

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

/// One step of SUMMA in its all-gather form.
struct GatherStep {
  std::vector<Range> slices;  ///< of the inner dimension, in order; one lies with one owner of A and one of X
  Partition A_parts,
      X_parts;  ///< how many columns of A and rows of X each rank of a grid row or column gives

  Index width() const { return A_parts.total(); }
};

/// As many steps as keep them at the panel width, or as the largest block has indices.
inline Index gather_step_count(const std::vector<Range>& blocks, Index width) {
  Index largest = 0, total = 0;
  for (const Range& block : blocks) {
    largest = std::max(largest, block.size);
    total += block.size;
  }
  return std::min(panel_count(total, width), largest);
}

/// The steps of SUMMA in its all-gather form: every block of the common refinement cut, balanced, in as many
/// slices as there are steps, larger ones first, so that all ranks give about as much to each.
inline std::vector<GatherStep> gather_steps(const Partition& columns_of_A, const Partition& rows_of_X,
                                            Index width) {
  const std::vector<Range> blocks = common_refinement(columns_of_A, rows_of_X);
  const Index count = gather_step_count(blocks, width);
  std::vector<GatherStep> steps(static_cast<std::size_t>(count));
  std::vector<std::vector<Index>> A_sizes(steps.size(),
                                          std::vector<Index>(static_cast<std::size_t>(columns_of_A.parts())));
  std::vector<std::vector<Index>> X_sizes(steps.size(),
                                          std::vector<Index>(static_cast<std::size_t>(rows_of_X.parts())));
  for (const Range& block : blocks) {
    const Partition cut = Partition::balanced(block.size, static_cast<int>(count));
    const auto A_owner = static_cast<std::size_t>(columns_of_A.owner_of(block.begin));
    const auto X_owner = static_cast<std::size_t>(rows_of_X.owner_of(block.begin));
    for (std::size_t step = 0; step < steps.size(); ++step) {
      const Range slice = cut.range(static_cast<int>(step));
      if (slice.size == 0) continue;
      steps[step].slices.push_back({block.begin + slice.begin, slice.size});
      A_sizes[step][A_owner] += slice.size;
      X_sizes[step][X_owner] += slice.size;
    }
  }
  for (std::size_t step = 0; step < steps.size(); ++step) {
    steps[step].A_parts = Partition::with_sizes(A_sizes[step]);
    steps[step].X_parts = Partition::with_sizes(X_sizes[step]);
  }
  return steps;
}

/// The blocks of a partition. stationary-b cuts those of A's rows into its steps.
inline std::vector<Range> blocks_of(const Partition& partition) {
  std::vector<Range> blocks;
  for (int part = 0; part < partition.parts(); ++part) blocks.push_back(partition.range(part));
  return blocks;
}

/// The rows that are summed over a grid row at a time while the normal product passes over A, whose blocks
/// have at most `cols` columns of elements of so many bytes; the same on all ranks of the row. Few enough
/// that what waits for its sum is still in a cache, and so many that starting and ending a sum, a few
/// microseconds, is little beside reading them.
inline Index one_pass_chunk(Index cols, Index element_bytes) {
  constexpr Index bytes = Index{1} << 19, unit = 8;
  return std::max<Index>(bytes / (std::max<Index>(cols, 1) * element_bytes * unit), 1) * unit;
}

}  // namespace gridlops
