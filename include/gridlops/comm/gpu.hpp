// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops {

/// Describes the GPU support that was built, and the GPUs found on this machine. Not collective; never
/// throws.
/// Reasons: docs/decisions/0009-gpus.md.
struct GpuInfo {
  bool is_built = false;
  int devices = 0;      ///< number that this process can use
  std::string problem;  ///< why there is no device, and what to do about it; empty if there is one
  std::vector<std::string> transports;  ///< that make_gpu_communicator() takes
  std::string versions;                 ///< of the vendor's libraries
  std::string model;                    ///< of the first device; "emulated" in tests without one
};
GRIDLOPS_EXPORT GpuInfo gpu_info();

/// Counts the ranks of comm with lower numbers on this rank's host (collective over comm). A rank should take
/// the GPU with this number, modulo the number of devices: each rank then has its own if there are enough.
GRIDLOPS_EXPORT int rank_on_host(Communicator& comm);

/// The number of the GPU that this rank should take (collective over comm); 0 where there is none.
inline int gpu_of_rank(Communicator& comm) {
  const int devices = gpu_info().devices, rank = rank_on_host(comm);
  return devices > 0 ? rank % devices : 0;
}

/// The GPU that this rank should take (collective over comm). Throws UsageError on all ranks if any rank has
/// none.
inline std::shared_ptr<Backend> make_gpu_of_rank(Communicator& comm) {
  const int device = gpu_of_rank(comm);
  return attempt(comm, [&] { return make_gpu_backend(device); });
}

/// Whether the MPI library says, rightly or wrongly, that it accepts addresses of GPU memory. Not collective.
GRIDLOPS_EXPORT bool mpi_claims_device_memory();

/// Makes a communicator with the ranks of `host`, for operands in host memory and in the memory of a GPU
/// backend (collective over host, which is duplicated and not otherwise touched). Each rank passes its own
/// backend. The operands of one operation must be in the same kind of memory on all ranks.
///
/// With the transport "nccl", or "auto", device operands travel by NCCL, except in send and receive: NCCL has
/// no tags, so these go through the host. With "mpi", MPI gets the device addresses themselves, and
/// transport() says "mpi-direct", under three conditions: the library says that it accepts them, a test on
/// memory of the backend confirms it on all ranks, and the environment does not set
/// GRIDLOPS_DEVICE_MPI=staged. Otherwise transport() says "mpi-staged", and operands travel through
/// page-locked host memory, where copies and messages overlap; reductions and all_to_all always travel that
/// way. Host operands always use the transport of `host`. An operation on device operands runs after all work
/// given to the backend before it. Work given to the backend after the operation, or after its request's
/// wait(), runs after the operation. The host need not wait.
///
/// Throws UsageError on all ranks if this build lacks the transport, or if the backend is not a GPU's.
GRIDLOPS_EXPORT std::unique_ptr<Communicator> make_gpu_communicator(Communicator& host,
                                                                    const std::shared_ptr<Backend>& backend,
                                                                    const std::string& transport);

}  // namespace gridlops
