// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <tuple>

#include "gridlops/buffer.hpp"
#include "gridlops/process_grid.hpp"

namespace gridlops::bench {

/// What all ranks of a grid together can do at one moment.
struct MachineLimits {
  double flops_per_second = 0;
  double bytes_per_second = 0;
};

/// Measures what bounds any product on a grid: every rank, all at once, multiplies square matrices of its own
/// with BLAS, and reads a block larger than the last-level cache; on a GPU it copies one half of the block to
/// the other, which reads and writes, and both count. Take it just before what it is compared
/// with: on a shared machine limits change from one second to the next.
class LimitMeter {
 public:
  /// Takes three matrices of this order for every element type that is measured, and the block, of so many
  /// MiB; 0: as many as the cache asks for.
  LimitMeter(Index order, Index block_mib);

  /// Collective over the grid; the same on all its ranks.
  template <Scalar T>
  MachineLimits measure(const ProcessGrid& grid);

 private:
  template <Scalar T>
  double gemm_seconds(const ProcessGrid& grid);
  double read_seconds(const ProcessGrid& grid);
  double copy_seconds(const ProcessGrid& grid);

  Index order_, block_mib_;
  std::tuple<Buffer<float>, Buffer<double>, Buffer<std::complex<float>>, Buffer<std::complex<double>>>
      operands_;
  Buffer<double> block_;
  double sum_ = 0;  // keeps reads from being left out
};

}  // namespace gridlops::bench
