// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "gridlops/local/backend.hpp"
#include "streamed/disk/part_plan.hpp"

namespace gridlops {

/// How the lines of a block are divided into parts. The columns of tiles come first, with the V, then the
/// rows, with the U and the dense tiles.
struct LinePlan {
  std::vector<Range> cols{}, rows{};  ///< the lines of each part
  PartPlan parts{};

  LinePlan() = default;
  /// For lines of these bytes. memory: of it what is to be in memory, at least; without it all is, and each
  /// side is one part.
  LinePlan(const std::vector<Index>& of_cols, const std::vector<Index>& of_rows,
           std::optional<Index> memory) {
    Index longest = 0, all = 0;
    for (const std::vector<Index>* lines : {&of_cols, &of_rows}) {
      for (const Index bytes : *lines) longest = std::max(longest, bytes);
      all += std::accumulate(lines->begin(), lines->end(), Index{0});
    }
    const Index most =
        memory ? std::max(longest, PartPlan::good_bytes(threads_per_rank() * longest, *memory)) : all;
    std::vector<Index> bytes;
    cols = divide(of_cols, most, bytes);
    rows = divide(of_rows, most, bytes);
    parts = memory ? PartPlan(std::move(bytes), PartPlan::least_slots, *memory) : PartPlan(std::move(bytes));
  }

 private:
  static std::vector<Range> divide(const std::vector<Index>& lines, Index most, std::vector<Index>& bytes) {
    std::vector<Range> ranges;
    for (Index l = 0; l < std::ssize(lines); ++l) {
      if (ranges.empty() || bytes.back() + lines[at(l)] > most) {
        ranges.push_back({l, 0});
        bytes.push_back(0);
      }
      ++ranges.back().size;
      bytes.back() += lines[at(l)];
    }
    return ranges;
  }
};

}  // namespace gridlops
