// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <complex>
#include <tuple>
#include <vector>

#include "gridlops/comm/process_grid.hpp"
#include "gridlops/local/buffer.hpp"
#include "gridlops/ops/cost_model.hpp"

namespace gridlops::bench {

/// Seconds on a clock that never goes back.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The median of at least one value; the mean of the middle two if their number is even.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// The largest value of any rank (collective over the grid).
inline double maximum(const ProcessGrid& grid, double value) {
  std::array<double, 1> all{value};
  grid.comm().all_reduce(all, ReduceOp::max);
  return all[0];
}

/// The sum of the values of all ranks (collective over the grid).
template <class Number>
Number sum(const ProcessGrid& grid, Number value) {
  std::array<Number, 1> all{value};
  grid.comm().all_reduce(all, ReduceOp::sum);
  return all[0];
}

/// What all ranks of a grid together can do at one moment.
struct MachineLimits {
  double flops_per_second = 0;
  double bytes_per_second = 0;
};

/// The work that is compared with the limits: no machine does it faster than the slower of its two parts.
struct Work {
  double flops = 0;
  double bytes = 0;  ///< of A that must be read

  double roofline_seconds(const MachineLimits& limits) const;
};

/// The work of one product; the additions and multiplications are real ones.
template <Scalar T>
Work product_work(const ProductShape& shape) {
  const double elements = static_cast<double>(shape.rows) * static_cast<double>(shape.cols);
  return {(is_complex<T> ? 8.0 : 2.0) * elements * static_cast<double>(shape.nrhs), elements * sizeof(T)};
}

/// Measures what bounds any product on a grid: every rank, all at once, multiplies square matrices of its own
/// with BLAS, and reads a block larger than the last-level cache; on a GPU it copies one half of the block to
/// the other, which reads and writes, and both count. Measure just before what is compared with it, because
/// the limits of a shared machine change from one second to the next.
class LimitMeter {
 public:
  /// Takes memory for three matrices of this order for every element type that is measured, and for a block
  /// of so many MiB; 0: at least twice the last-level cache.
  LimitMeter(Index order, Index block_mib);

  /// Collective over the grid; the same on all its ranks.
  template <Scalar T>
  MachineLimits measure(const ProcessGrid& grid);

  /// What all ranks together copy in a second, of blocks larger than caches (collective over the grid).
  double copied_bytes_per_second(const ProcessGrid& grid);

 private:
  template <Scalar T>
  double gemm_seconds(const ProcessGrid& grid);
  double read_seconds(const ProcessGrid& grid);
  double copy_seconds(const ProcessGrid& grid);

  Index order_, block_mib_;
  std::tuple<Buffer<float>, Buffer<double>, Buffer<std::complex<float>>, Buffer<std::complex<double>>>
      operands_;
  Buffer<double> block_;
  double sum_ = 0;  // keeps the compiler from leaving the reads out
};

/// One repetition, and the limits just before it.
struct Sample {
  double seconds = 0;  ///< of the slowest rank
  MachineLimits limits;
  double waiting = 0;  ///< for data and for other ranks: the share of the time, mean over the ranks
};

/// Measures the limits and then times apply, again and again (collective over the grid). apply must be
/// finished on this rank when it returns.
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
