// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "command_line/limits.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/ops/cost_model.hpp"

namespace gridlops::bench {

using program::LimitMeter;
using program::MachineLimits;
using program::maximum;
using program::median;
using program::now;
using program::sum;

/// The work to compare with the limits. It takes at least as long as the slower of its two parts.
struct Work {
  double flops = 0;
  double bytes = 0;  ///< of A that must be read

  double roofline_seconds(const MachineLimits& limits) const {
    return std::max(flops / limits.flops_per_second, bytes / limits.bytes_per_second);
  }
};

/// The work of one product, in real additions and multiplications.
template <Scalar T>
Work product_work(const ProductShape& shape) {
  const double elements = static_cast<double>(shape.rows) * static_cast<double>(shape.cols);
  return {(is_complex<T> ? 8.0 : 2.0) * elements * static_cast<double>(shape.nrhs), elements * sizeof(T)};
}

/// One repetition, and the limits measured before it.
struct Sample {
  double seconds = 0;  ///< of the slowest rank
  MachineLimits limits;
  double waiting = 0;  ///< for data and for other ranks: the share of the time, mean over the ranks
};

/// Times apply() in each repetition (collective over the grid). Measures the limits before it, except while a
/// measurement takes longer than the repetitions since the last one. apply() must return only when this rank's
/// work is done.
template <Scalar T, class Apply>
std::vector<Sample> samples(const ProcessGrid& grid, LimitMeter& meter, int repetitions, const Apply& apply) {
  meter.measure<T>(grid);
  MachineLimits limits;
  double measuring = 0, applying = 0;  // seconds of the last measurement, and of what came after it
  std::vector<Sample> all;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    if (applying >= measuring) {
      const double begin = now();
      limits = meter.measure<T>(grid);
      measuring = maximum(grid, now() - begin);
      applying = 0;
    }
    apply();  // refills the caches after the measurement of limits
    grid.comm().barrier();
    const double waited = grid.comm().traffic().seconds_waiting, begin = now();
    apply();
    const double mine = now() - begin, waiting = grid.comm().traffic().seconds_waiting - waited;
    const double seconds = maximum(grid, mine);
    applying += 2 * seconds;
    all.push_back({seconds, limits, sum(grid, waiting) / grid.comm().size() / seconds});
  }
  return all;
}

}  // namespace gridlops::bench
