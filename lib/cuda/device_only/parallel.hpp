// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "gridlops/local/matrix_view.hpp"

// Spreads the work of a kernel's body over the threads of a GPU. Only the CUDA compiler reads this file.

namespace gridlops::cuda {

inline constexpr int threads_per_block = 256;

template <class Body>
__global__ void run_elements(Body body, Index rows, Index cols) {
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

template <class Term>
__global__ void run_sums(Term term, Index rows, Index cols, MatrixView<typename Term::Sum> partial) {
  using Sum = typename Term::Sum;
  __shared__ Sum sums[threads_per_block];
  const Index first = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index j = blockIdx.y; j < cols; j += gridDim.y) {
    Sum sum{};
    for (Index i = first; i < rows; i += step) sum = sum + term(i, j);
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = threads_per_block / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) sums[threadIdx.x] = sums[threadIdx.x] + sums[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) partial(blockIdx.x, j) = sums[0];
    __syncthreads();
  }
}

/// partial(b, j) ← the sum of term(i, j) over the rows of thread block b, in one launch. The order of the sum
/// depends on rows and partial.rows only.
template <class Term>
cudaError_t sum_columns(cudaStream_t stream, const char*, Index rows, const Term& term,
                        MatrixView<typename Term::Sum> partial) {
  if (partial.cols == 0) return cudaSuccess;
  const dim3 grid(static_cast<unsigned>(partial.rows),
                  static_cast<unsigned>(std::min<Index>(partial.cols, 65535)));
  run_sums<<<grid, threads_per_block, 0, stream>>>(term, rows, partial.cols, partial);
  return cudaGetLastError();
}

}  // namespace gridlops::cuda
