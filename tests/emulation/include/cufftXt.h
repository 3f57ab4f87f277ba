// SPDX-License-Identifier: BSD-3-Clause
// Declares what lib/cuda calls of cuFFT, for machines without the toolkit.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

enum cudaDataType { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_C_32F = 4, CUDA_C_64F = 5 };

using cufftHandle = int;
enum cufftResult {
  CUFFT_SUCCESS = 0,
  CUFFT_INVALID_PLAN = 1,
  CUFFT_ALLOC_FAILED = 2,
  CUFFT_INVALID_TYPE = 3,
  CUFFT_INVALID_VALUE = 4,
  CUFFT_INTERNAL_ERROR = 5,
  CUFFT_EXEC_FAILED = 6,
  CUFFT_SETUP_FAILED = 7,
  CUFFT_INVALID_SIZE = 8,
  CUFFT_NO_WORKSPACE = 13
};
#define CUFFT_FORWARD (-1)
#define CUFFT_INVERSE 1

extern "C" {
cufftResult cufftCreate(cufftHandle* plan);
cufftResult cufftDestroy(cufftHandle plan);
cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream);
cufftResult cufftSetAutoAllocation(cufftHandle plan, int allocates);
cufftResult cufftSetWorkArea(cufftHandle plan, void* memory);
cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long* n, long long* in_embed,
                                long long in_stride, long long in_distance, cudaDataType in_type,
                                long long* out_embed, long long out_stride, long long out_distance,
                                cudaDataType out_type, long long batch, std::size_t* work_bytes,
                                cudaDataType computes_in);
cufftResult cufftXtExec(cufftHandle plan, void* in, void* out, int direction);
}
