// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include "gridlops/gpu.hpp"

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

namespace gridlops {

// This asks MPI about GPUs, so it belongs to comm. The function is an extension of Open MPI that other
// libraries have adopted. The macro tells of the header only; the library at run time may differ.
bool mpi_claims_device_memory() {
#ifdef MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

}  // namespace gridlops
