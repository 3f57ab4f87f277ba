// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "gridlops/types.hpp"

namespace gridlops::cuda {

/// Throws Error with the call, its size where it has one, and the vendor's text unless the status is success.
void check(cudaError_t status, const char* call, Index bytes = -1);
void check(cublasStatus_t status, const char* call);

}  // namespace gridlops::cuda
