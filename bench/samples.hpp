// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "clock.hpp"
#include "limits.hpp"
#include "operands.hpp"

namespace gridlops::bench {

/// Times apply, which is finished on this rank when it returns, after one run for nothing; each time the
/// limits first (collective over the grid).
template <Scalar T, class Apply>
std::vector<Sample> samples(const ProcessGrid& grid, LimitMeter& meter, int repetitions, const Apply& apply) {
  meter.measure<T>(grid);
  std::vector<Sample> all;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const MachineLimits limits = meter.measure<T>(grid);
    apply();  // brings back to the caches what the limits have driven out
    grid.comm().barrier();
    const double waited = grid.comm().traffic().seconds_waiting, begin = now();
    apply();
    const double mine = now() - begin, waiting = grid.comm().traffic().seconds_waiting - waited;
    const double seconds = maximum(grid, mine);
    all.push_back({seconds, limits, sum(grid, waiting) / grid.comm().size() / seconds});
  }
  return all;
}

}  // namespace gridlops::bench
