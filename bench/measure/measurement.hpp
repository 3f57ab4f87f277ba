// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "gridlops/comm/process_grid.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "machine/limits.hpp"

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

/// The limits while a measurement goes on. They change with the load of the machine, but small work does not
/// pay for measuring them each time.
template <Scalar T>
class RecentLimits {
 public:
  /// Warms up (collective over the grid).
  RecentLimits(const ProcessGrid& grid, LimitMeter& meter) : grid_(grid), meter_(meter) {
    meter_.measure<T>(grid_);
  }

  /// Measures them, unless that takes longer than the work since the last time (collective over the grid).
  const MachineLimits& get() {
    if (working_ < measuring_) return limits_;
    const double begin = now();
    limits_ = meter_.measure<T>(grid_);
    measuring_ = maximum(grid_, now() - begin);
    working_ = 0;
    return limits_;
  }

  /// Says how long all ranks have worked.
  void add_work(double seconds) { working_ += seconds; }

 private:
  const ProcessGrid& grid_;
  LimitMeter& meter_;
  MachineLimits limits_;
  double measuring_ = 0, working_ = 0;  // seconds
};

/// Measures the limits and then times apply(), in each repetition (collective over the grid). apply() must
/// return only when this rank's work is done.
template <Scalar T, class Apply>
std::vector<Sample> samples(const ProcessGrid& grid, LimitMeter& meter, int repetitions, const Apply& apply) {
  RecentLimits<T> recent(grid, meter);
  std::vector<Sample> all;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const MachineLimits limits = recent.get();
    apply();  // refills the caches after the measurement of limits
    grid.comm().barrier();
    const double waited = grid.comm().traffic().seconds_waiting, begin = now();
    apply();
    const double mine = now() - begin, waiting = grid.comm().traffic().seconds_waiting - waited;
    const double seconds = maximum(grid, mine);
    recent.add_work(2 * seconds);
    all.push_back({seconds, limits, sum(grid, waiting) / grid.comm().size() / seconds});
  }
  return all;
}

}  // namespace gridlops::bench
