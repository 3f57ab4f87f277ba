// SPDX-License-Identifier: BSD-3-Clause
// With GRIDLOPS_CHECK=all, which these tests run with, ranks compare the arguments of each blocking
// collective operation.
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/mpi.hpp"
#include "support/catch.hpp"
#include "support/disagreements.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

using Doubles = std::vector<double>;

/// The call of all ranks but one, the call of that one, and the words for it.
struct Case {
  std::string name, value, odd_value;
  std::function<void(Communicator&)> usual, odd;
};

std::vector<Index> counts_of(const Communicator& comm, Index first) {
  std::vector<Index> counts(static_cast<std::size_t>(comm.size()), 2);
  counts[0] = first;
  return counts;
}

void broadcast(Communicator& comm, Index count, int root) {
  Doubles data(static_cast<std::size_t>(count), 1.0);
  comm.broadcast(data, root);
}

void all_reduce(Communicator& comm, ReduceOp op, ReductionOrder order) {
  Doubles data(3, 1.0);
  comm.all_reduce(data, op, order);
}

void all_gather(Communicator& comm, Index first) {
  const std::vector<Index> counts = counts_of(comm, first);
  const Doubles mine(static_cast<std::size_t>(counts[static_cast<std::size_t>(comm.rank())]));
  Doubles all(static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), Index{0})));
  comm.all_gather_v(mine, all, counts);
}

/// One operation of each kind that takes a root.
void with_root(Communicator& comm, int kind, int root) {
  const auto size = static_cast<std::size_t>(comm.size());
  Doubles one(1, 1.0), all(size, 1.0);
  if (kind == 0) comm.reduce(one, all.empty() ? Elements() : Elements(all.data(), 1), ReduceOp::sum, root);
  if (kind == 1) comm.gather(one, all, root);
  if (kind == 2) comm.scatter(all, one, root);
}

std::vector<Case> cases() {
  constexpr ReductionOrder any = ReductionOrder::any, by_rank = ReductionOrder::by_rank;
  std::vector<Case> all{
      {"the root", "0", "1", [](auto& comm) { broadcast(comm, 3, 0); },
       [](auto& comm) { broadcast(comm, 3, 1); }},
      {"the count", "3", "4", [](auto& comm) { broadcast(comm, 3, 0); },
       [](auto& comm) { broadcast(comm, 4, 0); }},
      {"the count", "3", "0", [](auto& comm) { broadcast(comm, 3, 0); },
       [](auto& comm) { broadcast(comm, 0, 0); }},
      {"the element type", "f64", "c64", [](auto& comm) { broadcast(comm, 3, 0); },
       [](auto& comm) {
         std::vector<std::complex<float>> data(3);
         comm.broadcast(data, 0);
       }},
      {"the reduction", "sum", "max", [](auto& comm) { all_reduce(comm, ReduceOp::sum, any); },
       [](auto& comm) { all_reduce(comm, ReduceOp::max, any); }},
      {"the reduction", "sum", "sum by rank", [](auto& comm) { all_reduce(comm, ReduceOp::sum, any); },
       [](auto& comm) { all_reduce(comm, ReduceOp::sum, by_rank); }},
      {"the ranks are not in the same operation", "barrier", "broadcast", [](auto& comm) { comm.barrier(); },
       [](auto& comm) { broadcast(comm, 3, 0); }},
      {"the ranks are not in the same operation", "all_reduce", "split",
       [](auto& comm) { all_reduce(comm, ReduceOp::sum, any); }, [](auto& comm) { comm.split(0, 0); }},
  };
  for (int kind = 0; kind < 3; ++kind)
    all.push_back({"the root", "0", "1", [kind](auto& comm) { with_root(comm, kind, 0); },
                   [kind](auto& comm) { with_root(comm, kind, 1); }});
  return all;
}

}  // namespace

TEST_CASE("Ranks that call a collective operation otherwise all throw the same, before data move",
          "[compared_collectives]") {
  for (const std::string& transport : host_transports()) {
    if (world().size() == 1) break;
    const auto whole = make_host_communicator(world(), transport);
    const auto backwards = whole->split(0, -whole->rank());
    for (Communicator* comm : {whole.get(), backwards.get()}) {
      for (const Case& each : cases()) {
        for (int odd = 0; odd < comm->size(); ++odd) {
          INFO(transport << ", " << each.name << ": " << each.odd_value << " on rank " << odd);
          check_disagreement(*comm, {difference(each.name, each.value, each.odd_value, odd, comm->size())},
                             [&] { (comm->rank() == odd ? each.odd : each.usual)(*comm); });
        }
        each.usual(*comm);
      }
      check_disagreement(*comm, {"all_gather: the ranks disagree. the counts: 3 2", "on rank 0, 2 2"},
                         [&] { all_gather(*comm, comm->rank() == 0 ? 3 : 2); });
    }
  }
}

TEST_CASE("What is wrong in itself on one rank all ranks throw", "[compared_collectives]") {
  Communicator& comm = world();
  for (int odd = 0; odd < comm.size() && comm.size() > 1; ++odd) {
    const TrafficSince traffic(comm);
    Doubles data(3);
    const Index count = comm.rank() == odd ? -1 : 3;
    const Ending mine = ending_of([&] { comm.all_reduce(Elements(data.data(), count), ReduceOp::sum); });
    CHECK(traffic.nothing());
    CHECK(mine.text.find("-1") != std::string::npos);
    CHECK(all_ended_alike(comm, mine));
    const Ending in_itself = ending_of(
        [&] { comm.all_reduce(Elements(comm.rank() == odd ? nullptr : data.data(), 3), ReduceOp::sum); });
    CHECK(in_itself.text.find("rank " + std::to_string(odd) +
                              ": all_reduce: 'data' has 3 elements but its "
                              "address is null") == 0);
    CHECK(all_ended_alike(comm, in_itself));
    CHECK(rank_of(in_itself) == odd);
  }
}

TEST_CASE("Operations that agree are counted as ever, and each is one agreement", "[compared_collectives]") {
  Communicator& comm = world();
  const Traffic before = comm.traffic();
  Doubles data(3, comm.rank() + 1.0);
  comm.all_reduce(data, ReduceOp::sum);
  CHECK(data == Doubles(3, comm.size() * (comm.size() + 1) / 2.0));
  const Traffic after = comm.traffic();
  CHECK(after.agreements == before.agreements + 1);
  CHECK(after.calls_of(CommOperation::all_reduce) == before.calls_of(CommOperation::all_reduce) + 1);
  if (comm.size() > 1) CHECK((after.bytes_sent - before.bytes_sent < 64));
  Request request = comm.start_broadcast(data, 0);
  request.wait();
  CHECK(comm.traffic().agreements == after.agreements);
}
