// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dist/partition.hpp"

#include <set>

#include "gridlops/base/error.hpp"
#include "support/catch.hpp"

using namespace gridlops;

namespace {

std::vector<Index> sizes_of(const Partition& partition) {
  std::vector<Index> sizes;
  for (int part = 0; part < partition.parts(); ++part) sizes.push_back(partition.size(part));
  return sizes;
}

/// Parts follow each other without gaps and end at the total.
bool contiguous(const Partition& partition) {
  Index end = 0;
  for (int part = 0; part < partition.parts(); ++part) {
    if (partition.begin(part) != end || partition.size(part) < 0) return false;
    end = partition.range(part).end();
  }
  return end == partition.total();
}

/// All ways to cut `total` into this many parts.
std::vector<Partition> all_partitions(Index total, int parts) {
  if (parts == 1) return {Partition::with_sizes({total})};
  std::vector<Partition> found;
  for (Index first = 0; first <= total; ++first) {
    for (const Partition& rest : all_partitions(total - first, parts - 1)) {
      std::vector<Index> sizes = sizes_of(rest);
      sizes.insert(sizes.begin(), first);
      found.push_back(Partition::with_sizes(sizes));
    }
  }
  return found;
}

}  // namespace

TEST_CASE("A partition is empty and of one part by default", "[partition]") {
  const Partition partition;
  CHECK(partition.parts() == 1);
  CHECK(partition.total() == 0);
  CHECK(partition.largest() == 0);
  CHECK(partition == Partition::balanced(0, 1));
}

TEST_CASE("Balanced parts differ by one at most, larger ones first", "[partition]") {
  CHECK(sizes_of(Partition::balanced(7, 3)) == std::vector<Index>{3, 2, 2});
  CHECK(sizes_of(Partition::balanced(2, 4)) == std::vector<Index>{1, 1, 0, 0});
  for (Index total = 0; total < 40; ++total) {
    for (int parts = 1; parts < 12; ++parts) {
      CAPTURE(total, parts);
      const Partition partition = Partition::balanced(total, parts);
      CHECK(partition.parts() == parts);
      CHECK(partition.total() == total);
      CHECK(contiguous(partition));
      const std::vector<Index> sizes = sizes_of(partition);
      CHECK(std::is_sorted(sizes.rbegin(), sizes.rend()));
      CHECK(sizes.front() - sizes.back() <= 1);
      CHECK(partition.largest() == sizes.front());
    }
  }
}

TEST_CASE("Balanced cuts of large dimensions do not overflow", "[partition]") {
  const Index total = (Index{1} << 62) + 5;
  const Partition partition = Partition::balanced(total, 1000);
  CHECK(partition.total() == total);
  CHECK(contiguous(partition));
  CHECK(partition.size(0) - partition.size(999) <= 1);
}

TEST_CASE("Parts of given sizes keep them, empty ones included", "[partition]") {
  const Partition partition = Partition::with_sizes({1, 0, 4});
  CHECK(partition.parts() == 3);
  CHECK(partition.total() == 5);
  CHECK(partition.largest() == 4);
  CHECK(partition.range(1) == Range{1, 0});
  CHECK(partition.range(2) == Range{1, 4});
  CHECK_FALSE(partition == Partition::with_sizes({1, 4}));
  CHECK_FALSE(partition == Partition::with_sizes({1, 1, 3}));
  CHECK(Partition::with_sizes({3, 2, 2}) == Partition::balanced(7, 3));
}

TEST_CASE("Nested cuts each block again", "[partition]") {
  const Partition twice = Partition::nested(Partition::balanced(6, 2), 2);
  CHECK(sizes_of(twice) == std::vector<Index>{2, 1, 2, 1});
  CHECK_FALSE(twice == Partition::balanced(6, 4));
  for (const Partition& outer : all_partitions(6, 3)) {
    for (int inner_parts = 1; inner_parts <= 4; ++inner_parts) {
      const Partition nested = Partition::nested(outer, inner_parts);
      CAPTURE(sizes_of(outer), inner_parts);
      CHECK(contiguous(nested));
      CHECK(nested.total() == outer.total());
      CHECK(nested.parts() == outer.parts() * inner_parts);
      CHECK(nested.refines(outer, inner_parts));
      for (int part = 0; part < outer.parts(); ++part) {
        const Partition within = Partition::balanced(outer.size(part), inner_parts);
        for (int inner = 0; inner < inner_parts; ++inner) {
          CHECK(nested.size(part * inner_parts + inner) == within.size(inner));
          CHECK(nested.begin(part * inner_parts + inner) == outer.begin(part) + within.begin(inner));
        }
      }
    }
  }
}

TEST_CASE("Every index has the owner whose range holds it", "[partition]") {
  for (const Partition& partition : all_partitions(5, 4)) {
    CAPTURE(sizes_of(partition));
    for (Index index = 0; index < partition.total(); ++index) {
      const Range owner = partition.range(partition.owner_of(index));
      CHECK((owner.begin <= index && index < owner.end()));
    }
  }
}

TEST_CASE("A refinement consists of whole groups of parts", "[partition]") {
  for (const Partition& outer : all_partitions(4, 2)) {
    for (const Partition& inner : all_partitions(4, 4)) {
      CAPTURE(sizes_of(outer), sizes_of(inner));
      CHECK(inner.refines(outer, 2) == (inner.size(0) + inner.size(1) == outer.size(0)));
      CHECK_FALSE(inner.refines(outer, 1));
      CHECK_FALSE(inner.refines(outer, 4));
      CHECK(inner.refines(inner, 1));
    }
  }
  CHECK_FALSE(Partition::balanced(5, 4).refines(Partition::balanced(4, 2), 2));
}

TEST_CASE("The common refinement has the cuts of both and no empty blocks", "[partition]") {
  std::vector<Partition> candidates = all_partitions(5, 3);
  const std::vector<Partition> more = all_partitions(5, 2);
  candidates.insert(candidates.end(), more.begin(), more.end());
  for (const Partition& a : candidates) {
    for (const Partition& b : candidates) {
      std::set<Index> cuts{0, 5};
      for (int part = 0; part < a.parts(); ++part) cuts.insert(a.begin(part));
      for (int part = 0; part < b.parts(); ++part) cuts.insert(b.begin(part));
      std::vector<Range> expected;
      for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut)
        expected.push_back({*cut, *std::next(cut) - *cut});
      CAPTURE(sizes_of(a), sizes_of(b));
      CHECK(common_refinement(a, b) == expected);
    }
  }
  CHECK(common_refinement(Partition::balanced(0, 3), Partition::balanced(0, 2)).empty());
}

TEST_CASE("Impossible partitions are refused", "[partition]") {
  CHECK_THROWS_AS(Partition::balanced(-1, 2), UsageError);
  CHECK_THROWS_AS(Partition::balanced(3, 0), UsageError);
  CHECK_THROWS_AS(Partition::balanced(3, -2), UsageError);
  CHECK_THROWS_AS(Partition::with_sizes({}), UsageError);
  CHECK_THROWS_AS(Partition::with_sizes({2, -1, 3}), UsageError);
  CHECK_THROWS_AS(Partition::nested(Partition::balanced(3, 2), 0), UsageError);
}
