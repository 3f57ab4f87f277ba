// SPDX-License-Identifier: BSD-3-Clause
// Exceptions leave communication that is under way. session_faults.cpp has what ends the job.
#include <vector>

#include "gridlops/base/error.hpp"
#include "support/catch.hpp"
#include "support/programs/mpi_main.hpp"

using namespace gridlops;
using gridlops::testing::world;

namespace {

bool all_are(const std::vector<double>& values, double value) {
  for (const double each : values)
    if (each != value) return false;
  return true;
}

}  // namespace

TEST_CASE("A receive that an exception drops takes nothing more, and another gets the message") {
  if (world().size() == 1) return;
  for (const std::size_t count : {std::size_t{100}, std::size_t{1} << 20}) {
    std::vector<double> memory(count, -1), later(count, -1);
    if (world().rank() == 1) {
      try {
        const Request dropped = world().start_receive(memory, 0);
        throw InputError("lost");
      } catch (const InputError&) {
      }
    }
    world().barrier();
    Request sent;
    const std::vector<double> data(count, 5);
    if (world().rank() == 0) sent = world().start_send(data, 1);
    world().barrier();
    CHECK(all_are(memory, -1));
    if (world().rank() == 1) world().receive(later, 0);
    CHECK(all_are(later, world().rank() == 1 ? 5 : -1));
    sent.wait();
  }
}

TEST_CASE("What all ranks drop alike is complete before its operands go") {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1} << 18}) {
    std::vector<double> broadcast(count, world().rank() == 0 ? 5 : -1), sum(count, 1);
    CHECK_THROWS_AS(([&] {
                      const Request first = world().start_broadcast(broadcast, 0);
                      const Request second = world().start_all_reduce(sum, ReduceOp::sum);
                      throw InputError("lost");
                    }()),
                    InputError);
    CHECK(all_are(broadcast, 5));
    CHECK(all_are(sum, world().size()));
  }
}
