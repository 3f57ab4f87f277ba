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

namespace gridlops::program {

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

/// The combined rates of all ranks of a grid at one moment.
struct MachineLimits {
  double flops_per_second = 0;
  double bytes_per_second = 0;
};

/// Measures what bounds any product on a grid: every rank, all at once, multiplies square matrices of its own
/// with BLAS, and reads a block larger than the last-level cache; on a GPU it copies one half of the block to
/// the other, which reads and writes, and both count. Measure just before what is compared with it, because
/// the limits of a shared machine change from one second to the next.
class LimitMeter {
 public:
  /// Takes memory for three matrices of this order for every element type that is measured, and for a block
  /// of this many MiB; 0: at least twice the last-level cache.
  LimitMeter(Index order, Index block_mib);

  /// Collective over the grid; the same on all its ranks.
  template <Scalar T>
  MachineLimits measure(const ProcessGrid& grid);

  /// Returns the combined rate at which all ranks copy blocks larger than caches (collective over the grid).
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

}  // namespace gridlops::program
