// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include "gridlops/gpu.hpp"

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

namespace gridlops {

// It is MPI's word about GPUs, so it stands where MPI does. Open MPI's extension, which others have taken
// over. The macro is what the header was built with; the library may be another one.
bool mpi_claims_device_memory() {
#ifdef MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

}  // namespace gridlops
