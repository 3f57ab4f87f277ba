// SPDX-License-Identifier: BSD-3-Clause
// The waits that ranks choose by numbers alone.
#include <algorithm>
#include <cmath>
#include <queue>
#include <vector>

#include "comm/failure/watchdog.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "support/catch.hpp"

using namespace gridlops;

TEST_CASE("Ranks ask few neighbours, who ask them, and hear of all others in few steps") {
  for (const int size : {1, 2, 3, 4, 5, 8, 12, 31, 32, 33, 1000, 10'000}) {
    const auto most_steps = static_cast<int>(std::ceil(std::log2(size)));
    std::vector<int> steps(static_cast<std::size_t>(size), -1);
    std::queue<int> reached;
    steps[0] = 0;
    for (reached.push(0); !reached.empty(); reached.pop()) {
      const int rank = reached.front();
      const std::vector<int> neighbours = neighbours_of(rank, size);
      REQUIRE(neighbours.size() <= static_cast<std::size_t>(2 * most_steps));
      for (const int other : neighbours) {
        REQUIRE((other >= 0 && other < size && other != rank));
        const std::vector<int> back = neighbours_of(other, size);
        REQUIRE(std::count(back.begin(), back.end(), rank) == 1);
        int& step = steps[static_cast<std::size_t>(other)];
        if (step >= 0) continue;
        step = steps[static_cast<std::size_t>(rank)] + 1;
        reached.push(other);
      }
    }
    CHECK(*std::min_element(steps.begin(), steps.end()) == 0);
    CHECK(*std::max_element(steps.begin(), steps.end()) <= most_steps);
  }
}

TEST_CASE("A small sum takes the fast path on any number of ranks, a long one MPI's blocking call") {
  const auto carrier_of_sum = [](int ranks, Index bytes) {
    return carrier_of_watched(ranks, bytes, bytes * ranks);
  };
  constexpr Index small = 24;  // of an agreement
  for (const int ranks : {2, 4, 8}) CHECK(carrier_of_sum(ranks, small) == Carrier::messages);
  for (const int ranks : {9, 85, 86, 10'000})
    CHECK(carrier_of_sum(ranks, small) == Carrier::non_blocking_call);
  for (const int ranks : {2, 4, 8, 9, 85, 86, 10'000}) {
    CHECK(carrier_of_sum(ranks, Index{1} << 20) == Carrier::blocking_call);
    CHECK(carrier_of_watched(ranks, 0, 0) == Carrier::non_blocking_call);
  }
}
