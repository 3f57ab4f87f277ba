// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dist/partition.hpp"

#include <algorithm>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

namespace {

/// Appends the ends of `parts` balanced blocks of [begin, begin + total).
void append_balanced(std::vector<Index>& begins, Index begin, Index total, int parts) {
  for (int part = 0; part < parts; ++part) begins.push_back(begin + balanced_part(total, parts, part).end());
}

}  // namespace

Partition Partition::balanced(Index total, int parts) {
  require<UsageError>(total >= 0 && parts >= 1, "a dimension of ", total, " cannot be cut into ", parts,
                      " parts; it takes a size ≥ 0 and at least one part");
  std::vector<Index> begins{0};
  begins.reserve(static_cast<std::size_t>(parts) + 1);
  append_balanced(begins, 0, total, parts);
  return Partition(std::move(begins));
}

Partition Partition::with_sizes(const std::vector<Index>& sizes) {
  require<UsageError>(!sizes.empty(), "a partition needs at least one part");
  std::vector<Index> begins{0};
  begins.reserve(sizes.size() + 1);
  for (const Index size : sizes) {
    require<UsageError>(size >= 0, "part ", begins.size() - 1, " of a partition has the size ", size,
                        "; sizes are ≥ 0");
    begins.push_back(begins.back() + size);
  }
  return Partition(std::move(begins));
}

Partition Partition::nested(const Partition& outer, int inner_parts) {
  require<UsageError>(inner_parts >= 1, "a block cannot be cut into ", inner_parts, " parts");
  std::vector<Index> begins{0};
  begins.reserve(static_cast<std::size_t>(outer.parts()) * static_cast<std::size_t>(inner_parts) + 1);
  for (int part = 0; part < outer.parts(); ++part)
    append_balanced(begins, outer.begin(part), outer.size(part), inner_parts);
  return Partition(std::move(begins));
}

Index Partition::largest() const {
  Index size_of_largest = 0;
  for (int part = 0; part < parts(); ++part) size_of_largest = std::max(size_of_largest, size(part));
  return size_of_largest;
}

int Partition::owner_of(Index index) const {
  return static_cast<int>(std::upper_bound(begins_.begin(), begins_.end(), index) - begins_.begin()) - 1;
}

bool Partition::refines(const Partition& outer, int inner_parts) const {
  if (parts() != outer.parts() * inner_parts || total() != outer.total()) return false;
  for (int part = 0; part < outer.parts(); ++part)
    if (begin(part * inner_parts) != outer.begin(part)) return false;
  return true;
}

std::vector<Range> common_refinement(const Partition& a, const Partition& b) {
  std::vector<Range> blocks;
  int in_a = 0;
  int in_b = 0;
  while (in_a < a.parts() && in_b < b.parts()) {
    const Range block = intersect(a.range(in_a), b.range(in_b));
    if (block.size > 0) blocks.push_back(block);
    const Index end_a = a.range(in_a).end();
    const Index end_b = b.range(in_b).end();
    if (end_a <= end_b) ++in_a;
    if (end_b <= end_a) ++in_b;
  }
  return blocks;
}

}  // namespace gridlops
