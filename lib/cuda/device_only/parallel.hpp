// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "gridlops/local/matrix_view.hpp"

// Spreads the work of a kernel's body over the threads of a GPU. Only the CUDA compiler reads this file.

namespace gridlops::cuda {

inline constexpr int threads_per_block = 256;

template <class Body>
__global__ void run_elements(const __grid_constant__ Body body, Index rows, Index cols) {
  const Index first = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index j = blockIdx.y; j < cols; j += gridDim.y)
    for (Index i = first; i < rows; i += step) body(i, j);
}

/// Calls body(i, j) for all i < rows, j < cols, in one launch.
template <class Body>
cudaError_t for_each_element(cudaStream_t stream, const char*, Index rows, Index cols, const Body& body) {
  if (rows == 0 || cols == 0) return cudaSuccess;
  const Index blocks = std::min<Index>((rows + threads_per_block - 1) / threads_per_block, 65535);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(std::min<Index>(cols, 65535)));
  run_elements<<<grid, threads_per_block, 0, stream>>>(body, rows, cols);
  return cudaGetLastError();
}

/// The sum over the threads of a block, for its first thread. All threads of the block call it.
template <class Sum>
__device__ Sum sum_of_threads(Sum mine) {
  __shared__ Sum sums[threads_per_block];
  sums[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = threads_per_block / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] = sums[threadIdx.x] + sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}

/// Reads a value that another block of the same launch has written, which is not in this multiprocessor's
/// cache.
template <class Sum>
__device__ Sum written_elsewhere(const Sum& there) {
  union {
    Sum sum;
    double parts[sizeof(Sum) / sizeof(double)];
  } here;
  for (std::size_t k = 0; k < sizeof(Sum) / sizeof(double); ++k)
    here.parts[k] = __ldcg(reinterpret_cast<const double*>(&there) + k);
  return here.sum;
}

/// One block's part of a sum: block number `block` of those that the sum has.
struct ShareOfSum {
  Index block;

  template <class Term, class Output>
  __device__ void operator()(const Term& term, const Output& output) const {
    using Sum = typename Term::Sum;
    const Index shares = output.partial.rows, j = block / shares, share = block % shares;
    Sum mine{};
    for (Index i = share * threads_per_block + threadIdx.x; i < output.rows; i += shares * threads_per_block)
      mine = mine + term(i, j);
    const Sum of_share = sum_of_threads(mine);
    if (shares == 1) {
      if (threadIdx.x == 0) output.sums(j, 0) = of_share;
      return;
    }
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
      output.partial(share, j) = of_share;
      __threadfence();
      is_last = atomicAdd(&output.tickets[j], 1U) == shares - 1;
      __threadfence();
    }
    __syncthreads();
    if (!is_last) return;
    mine = Sum{};
    for (Index k = threadIdx.x; k < shares; k += threads_per_block)
      mine = mine + written_elsewhere(output.partial(k, j));
    const Sum of_column = sum_of_threads(mine);
    if (threadIdx.x == 0) {
      output.sums(j, 0) = of_column;
      output.tickets[j] = 0;
    }
  }
};

template <class Sums>
__global__ void run_sums(const __grid_constant__ Sums sums) {
  Index block = blockIdx.x;
  int t = 0;
  for (; block >= sums.blocks(t); ++t) block -= sums.blocks(t);
  sums.with(t, ShareOfSum{block});
}

/// Computes all sums in one launch. The order of a sum depends on its rows and shares only.
template <class Sums>
cudaError_t sum_columns(cudaStream_t stream, const char*, const Sums& sums) {
  Index blocks = 0;
  for (int t = 0; t < sums.count; ++t) blocks += sums.blocks(t);
  if (blocks == 0) return cudaSuccess;
  run_sums<<<static_cast<unsigned>(blocks), threads_per_block, 0, stream>>>(sums);
  return cudaGetLastError();
}

}  // namespace gridlops::cuda
