// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "gridlops/types.hpp"

namespace gridlops::cuda {

// A call that fails does so on this rank alone, as far as anybody knows: the errors are known to one rank.

/// Throws Error with the call, its size where it has one, and the vendor's text unless the status is success.
/// CUDA keeps the last error until it is asked for, and the next launch would report it again; it is not kept
/// after this.
void check(cudaError_t status, const char* call, Index bytes = -1);
/// The same, but a lack of memory only makes it false.
bool is_enough_memory(cudaError_t status, const char* call, Index bytes);
void check(cublasStatus_t status, const char* call);

}  // namespace gridlops::cuda
