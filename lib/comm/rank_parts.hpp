// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/numbers.hpp"
#include "gridlops/base/elements.hpp"

namespace gridlops {

/// Returns the array with each complex number as two reals. The functions below take such arrays.
inline Elements as_reals(const Elements& a) { return {a.data, a.count * a.reals_per_element, a.type}; }
inline ConstElements as_reals(const ConstElements& a) {
  return {a.data, a.count * a.reals_per_element, a.type};
}

/// The `count` elements of an array of reals that begin at `begin`.
inline Elements slice(const Elements& a, Index begin, Index count) {
  return {static_cast<std::byte*>(a.data) + begin * size_of(a.type), count, a.type};
}
inline ConstElements slice(const ConstElements& a, Index begin, Index count) {
  return {static_cast<const std::byte*>(a.data) + begin * size_of(a.type), count, a.type};
}

/// An array of one part per rank, in rank order. Counts and offsets are in reals.
class RankParts {
 public:
  RankParts(std::span<const Index> counts, int reals_per_element) {
    offsets_.reserve(counts.size() + 1);
    for (const Index count : counts) offsets_.push_back(offsets_.back() + count * reals_per_element);
  }
  /// Parts as balanced_part() cuts `total` elements.
  static RankParts balanced(Index total, int ranks) {
    RankParts parts;
    for (int rank = 0; rank < ranks; ++rank)
      parts.offsets_.push_back(balanced_part(total, ranks, rank).end());
    return parts;
  }

  int ranks() const { return static_cast<int>(offsets_.size()) - 1; }
  Index total() const { return offsets_.back(); }
  Index count(int rank) const { return offset(rank + 1) - offset(rank); }
  Index offset(int rank) const { return offsets_[at(rank)]; }

  template <class Array>
  Array of(const Array& all, int rank) const {
    return slice(all, offset(rank), count(rank));
  }

  /// Write counts and offsets for MPI calls. The total must fit into an int.
  void write_counts(int* counts) const {
    for (int rank = 0; rank < ranks(); ++rank) counts[rank] = static_cast<int>(count(rank));
  }
  void write_offsets(int* offsets) const {
    for (int rank = 0; rank < ranks(); ++rank) offsets[rank] = static_cast<int>(offset(rank));
  }

 private:
  RankParts() = default;
  std::vector<Index> offsets_{0};
};

}  // namespace gridlops
