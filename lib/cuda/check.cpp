// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/check.hpp"

#include "base/message.hpp"
#include "gridlops/error.hpp"

namespace gridlops::cuda {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Error(ExitStatus::internal,
              message(what,
                      "; work on the GPU before it may have failed too, so the job must end: "
                      "compute-sanitizer finds faults of kernels"),
              KnownTo::one_rank);
}

}  // namespace

void check(cudaError_t status, const char* call, Index bytes) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  fail(message(call, bytes < 0 ? "" : message(" of ", bytes, " bytes"), " failed: ", cudaGetErrorName(status),
               ", ", cudaGetErrorString(status)));
}

bool is_enough_memory(cudaError_t status, const char* call, Index bytes) {
  if (status != cudaErrorMemoryAllocation) {
    check(status, call, bytes);
    return true;
  }
  cudaGetLastError();
  return false;
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(message(call, " failed: ", cublasGetStatusName(status), ", ", cublasGetStatusString(status)));
}

}  // namespace gridlops::cuda
