// SPDX-License-Identifier: BSD-3-Clause
#include <numeric>

#include "gridlops/solve/solver.hpp"
#include "solve/batches.hpp"
#include "support/catch.hpp"

using namespace gridlops;

namespace {

std::vector<Partition> partitions() {
  return {Partition::balanced(0, 1),       Partition::balanced(0, 3),  Partition::balanced(1, 1),
          Partition::balanced(17, 1),      Partition::balanced(17, 3), Partition::balanced(2, 4),
          Partition::with_sizes({0, 9, 1})};
}

}  // namespace

TEST_CASE("Every column is in one batch, in the part that has it") {
  for (const Partition& whole : partitions()) {
    for (const Index batch : {0, 1, 2, 3, 7, 16, 17, 1000}) {
      CAPTURE(whole.total(), whole.parts(), batch);
      std::vector<int> seen(static_cast<std::size_t>(whole.total()), 0);
      for (const ColumnBatch& columns : column_batches(whole, batch)) {
        REQUIRE(columns.sizes.parts() == whole.parts());
        const std::vector<Index> numbers = columns.numbers_in(whole);
        CHECK(static_cast<Index>(numbers.size()) == columns.sizes.total());
        for (Index k = 0; k < columns.sizes.total(); ++k) {
          const Index number = numbers[static_cast<std::size_t>(k)];
          ++seen.at(static_cast<std::size_t>(number));
          CHECK(whole.owner_of(number) == columns.sizes.owner_of(k));
        }
      }
      CHECK(seen == std::vector<int>(seen.size(), 1));
    }
  }
}

TEST_CASE("A batch has no more columns than allowed, but one per part") {
  for (const Partition& whole : partitions()) {
    CHECK(column_batches(whole, 0).size() == 1);
    CHECK(column_batches(whole, 1000000).size() == 1);
    for (const Index batch : {1, 2, 3, 7, 16, 17}) {
      const std::vector<ColumnBatch> batches = column_batches(whole, batch);
      CHECK(!batches.empty());
      CHECK(static_cast<Index>(batches.size()) == batch_count(whole, batch));
      CHECK(batches.front().sizes.total() == largest_batch(whole, batch));
      for (const ColumnBatch& columns : batches) {
        CHECK(columns.sizes.total() <= std::max<Index>(batch, whole.parts()));
        CHECK(columns.sizes.largest() <= batch_width(whole, batch));
        CHECK(columns.sizes.total() <= largest_batch(whole, batch));
        CHECK((columns.sizes.total() > 0 || whole.total() == 0));
      }
    }
  }
}
