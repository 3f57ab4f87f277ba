// SPDX-License-Identifier: BSD-3-Clause
#include "machine/limits.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "gridlops/base/random.hpp"

namespace gridlops::program {

namespace {

/// The number of doubles in a block that is at least twice the last-level cache, where its size is known; the
/// cache of a GPU is smaller than half of the block here.
Index block_size(MemorySpace space, Index mib) {
  if (mib > 0) return (mib << 20) / Index{sizeof(double)};
  if (space == MemorySpace::device) return (Index{512} << 20) / Index{sizeof(double)};
  constexpr long least = 64L << 20;
  const long cache = std::max({sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE), 0L});
  return std::max(2 * cache, least) / static_cast<Index>(sizeof(double));
}

/// Takes enough sums at a time that reading takes longer than adding.
double sum_of(const double* values, Index count) {
  constexpr Index lanes = 32;
  std::array<double, std::size_t{lanes}> sums{};
  for (Index i = 0; i + lanes <= count; i += lanes)
    for (Index lane = 0; lane < lanes; ++lane) sums[static_cast<std::size_t>(lane)] += values[i + lane];
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

LimitMeter::LimitMeter(Index order, Index block_mib) : order_(order), block_mib_(block_mib) {}

template <Scalar T>
MachineLimits LimitMeter::measure(const ProcessGrid& grid) {
  grid.comm().barrier();
  const double gemm = gemm_seconds<T>(grid);
  grid.comm().barrier();
  const bool on_device = grid.backend()->memory_space() == MemorySpace::device;
  const double read = on_device ? copy_seconds(grid) : read_seconds(grid);
  const double n = static_cast<double>(order_);
  std::array<double, 2> rates{(is_complex<T> ? 8 : 2) * n * n * n / gemm,
                              static_cast<double>(block_.size()) * sizeof(double) / read};
  grid.comm().all_reduce(rates, ReduceOp::sum);
  return {rates[0], rates[1]};
}

template <Scalar T>
double LimitMeter::gemm_seconds(const ProcessGrid& grid) {
  auto& operands = std::get<Buffer<T>>(operands_);
  const Index size = order_ * order_;
  if (operands.size() == 0) {
    operands = Buffer<T>(grid.backend(), 3 * size);
    std::vector<T> values;
    for (Index i = 0; i < 2 * size; ++i) values.push_back(counter_random<T>(3, i, 0));
    grid.backend()->upload(values.data(), operands.data(), 2 * size * Index{sizeof(T)});
  }
  const auto operand = [&](Index k) { return MatrixView<T>(operands.data() + k * size, order_, order_); };
  grid.backend()->synchronize();
  const double begin = now();
  // With B as it is, GRIDLOPS_KERNELS could have other kernels than those of BLAS multiply.
  grid.backend()->kernels<T>().gemm(Op::none, Op::transpose, T(1), operand(0), operand(1), T(0), operand(2));
  grid.backend()->synchronize();
  return now() - begin;
}

/// The best of three passes, because a disturbed pass shows no limit.
double LimitMeter::read_seconds(const ProcessGrid& grid) {
  if (block_.size() == 0) {
    block_ = Buffer<double>(grid.backend(), block_size(MemorySpace::host, block_mib_));
    std::fill_n(block_.data(), block_.size(), 1.0);
  }
  const Index parts = threads_per_rank(), size = block_.size() / parts;
  std::vector<double> sums(static_cast<std::size_t>(parts));
  double best = 0;
  for (int pass = 0; pass < 3; ++pass) {
    const double begin = now();
    grid.backend()->for_each(parts, static_cast<double>(block_.size()), [&](Index part) {
      sums[static_cast<std::size_t>(part)] = sum_of(block_.data() + part * size, size);
    });
    const double seconds = now() - begin;
    for (const double sum : sums) sum_ += sum;
    best = pass == 0 ? seconds : std::min(best, seconds);
  }
  block_.data()[0] = sum_ > 0 ? 1.0 : 2.0;
  return best;
}

double LimitMeter::copy_seconds(const ProcessGrid& grid) {
  Backend& backend = *grid.backend();
  const Kernels<double>& kernels = backend.kernels<double>();
  if (block_.size() == 0) {
    block_ = Buffer<double>(grid.backend(), block_size(backend.memory_space(), block_mib_) / 2 * 2);
    kernels.fill(1.0, block_.matrix(block_.size(), 1));
  }
  const Index half = block_.size() / 2;
  const MatrixView<double> all = block_.matrix(half, 2);
  double best = 0;
  for (int pass = 0; pass < 3; ++pass) {
    backend.synchronize();
    const double begin = now();
    kernels.copy(all.col_block({0, 1}), all.col_block({1, 1}));
    backend.synchronize();
    const double seconds = now() - begin;
    best = pass == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

double LimitMeter::copied_bytes_per_second(const ProcessGrid& grid) {
  grid.comm().barrier();
  const double seconds = copy_seconds(grid);
  const Index copied = block_.size() / 2;
  return sum(grid, static_cast<double>(copied) * sizeof(double) / seconds);
}

template MachineLimits LimitMeter::measure<float>(const ProcessGrid&);
template MachineLimits LimitMeter::measure<double>(const ProcessGrid&);
template MachineLimits LimitMeter::measure<std::complex<float>>(const ProcessGrid&);
template MachineLimits LimitMeter::measure<std::complex<double>>(const ProcessGrid&);

}  // namespace gridlops::program
