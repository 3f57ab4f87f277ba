// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include "conformance/contract_reductions.hpp"
#include "gridlops/communicator.hpp"

// What every Communicator must do, part 3: operations of several communicators started together.

namespace gridlops::testing {

/// Operations of a communicator and of two that were split off from it, started as a group.
inline void check_groups(const Subject& subject) {
  Communicator& comm = *subject.comm;
  const int me = comm.rank(), size = comm.size();
  const auto every_second = comm.split(me % 2, 0), neighbours = comm.split(me / 2, 0);
  for (int pattern = 0; pattern <= count_patterns; ++pattern) {
    CAPTURE(pattern);
    std::vector<Index> counts = uneven_counts(every_second->size(), pattern);
    // Parts that differ little, which may travel in another way.
    if (pattern == count_patterns)
      for (int rank = 0; rank < every_second->size(); ++rank)
        counts[static_cast<std::size_t>(rank)] = rank == 0 ? 21 : 20;
    const Index own = count_of(counts, every_second->rank()), n = pattern * 5;
    Operand<double> gathered(subject, untouched<double>(sum(counts)));
    Operand<double> part(subject, values<double>(every_second->rank(), own));
    Operand<std::complex<float>> sent(
        subject, me % 2 == 0 ? values<std::complex<float>>(me, n) : untouched<std::complex<float>>(n));
    const auto order = ReductionOrder::by_rank;
    Operand<double> summed(subject, contributions<double>(ReduceOp::sum, order, me, n));
    std::vector<Request> requests;
    {
      CommunicationGroup group(comm);
      requests.push_back(every_second->start_all_gather_v(part, gathered, counts));
      requests.push_back(neighbours->start_broadcast(sent, 0));
      requests.push_back(comm.start_all_reduce(summed, ReduceOp::sum, order));
      if (pattern % 2 == 0) group.close();
    }
    if (me % 2 == 1) std::reverse(requests.begin(), requests.end());
    for (Request& request : requests) request.wait();
    CHECK(gathered.values() == concatenate<double>(every_second->size(), [&](int rank) {
            return values<double>(rank, count_of(counts, rank));
          }));
    CHECK(sent.values() == values<std::complex<float>>(me / 2 * 2, n));
    CHECK(same_bits(summed.values(), reduced<double>(ReduceOp::sum, order, size, n)));
  }
}

}  // namespace gridlops::testing
