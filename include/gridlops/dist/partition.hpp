// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/base/types.hpp"

namespace gridlops {

/// One dimension, cut into one contiguous block per part; a part may be empty. A value.
///
///   balanced(7, 3)                 0 1 2 | 3 4 | 5 6
///   with_sizes({1, 0, 4})          0 | | 1 2 3 4
///   nested(balanced(6, 2), 2)      0 1 | 2 | 3 4 | 5        (balanced(6, 4) would be 0 1 | 2 3 | 4 | 5)
class GRIDLOPS_EXPORT Partition {
 public:
  /// One part without indices.
  Partition() : begins_{0, 0} {}

  /// Parts whose sizes differ by at most one, larger parts first. total ≥ 0, parts ≥ 1.
  static Partition balanced(Index total, int parts);
  static Partition with_sizes(const std::vector<Index>& sizes);
  /// Cuts each block of outer again, balanced, into inner_parts: part k of the result lies in block k /
  /// inner_parts.
  static Partition nested(const Partition& outer, int inner_parts);

  int parts() const { return static_cast<int>(begins_.size()) - 1; }
  Index total() const { return begins_.back(); }
  Index begin(int part) const { return begins_[static_cast<std::size_t>(part)]; }
  Index size(int part) const { return begin(part + 1) - begin(part); }
  Range range(int part) const { return {begin(part), size(part)}; }
  Index largest() const;

  /// The part that holds this index; 0 ≤ index < total().
  int owner_of(Index index) const;

  /// Whether each block of outer consists of inner_parts consecutive blocks of this, as nested() makes them.
  bool refines(const Partition& outer, int inner_parts) const;

  friend bool operator==(const Partition&, const Partition&) = default;

 private:
  explicit Partition(std::vector<Index> begins) : begins_(std::move(begins)) {}
  std::vector<Index> begins_;  // parts() + 1 entries, not decreasing, from 0 to total()
};

/// The non-empty blocks of the coarsest cut that refines both partitions, whose totals must be equal.
GRIDLOPS_EXPORT std::vector<Range> common_refinement(const Partition& a, const Partition& b);

}  // namespace gridlops
