// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops {

/// What GPU support was built, and which GPUs were found on this machine. Not collective; never throws.
struct GpuInfo {
  bool is_built = false;
  int devices = 0;                      ///< that this process can use
  std::string problem;                  ///< why there is none, and what to do about it; else empty
  std::vector<std::string> transports;  ///< for make_gpu_communicator()
  std::string versions;                 ///< of the vendor's libraries
  std::string model;                    ///< of the first device; "emulated" in tests without one
};
GRIDLOPS_EXPORT GpuInfo gpu_info();

/// How many ranks of comm with lower numbers run on this rank's host (collective over comm). This number
/// modulo the number of devices is the GPU that this rank should take: each rank then has its own if there
/// are enough.
GRIDLOPS_EXPORT int rank_on_host(Communicator& comm);

/// Whether the MPI library says, perhaps wrongly, that it takes addresses of a GPU's memory. Not collective.
GRIDLOPS_EXPORT bool mpi_claims_device_memory();

/// A communicator with the ranks of `host` for operands in the memory of a GPU's backend, which each rank
/// gives for itself, and in host memory (collective over host, which is duplicated and not otherwise
/// touched). The operands of an operation must lie in the same kind of memory on all ranks.
///
/// With the transport "nccl" device operands travel by NCCL, except in send and receive, whose tags NCCL
/// lacks: these go through the host. With "mpi" MPI gets the device addresses themselves, and transport()
/// says "mpi-direct", if the library says that it takes them, a test on memory of the backend confirms it on
/// all ranks, and the environment has no GRIDLOPS_DEVICE_MPI=staged. Otherwise transport() says "mpi-staged",
/// and operands travel through page-locked host memory, where copies and messages overlap; reductions and
/// all_to_all always do. Host operands always take the transport of `host`. An operation on device operands
/// follows all that the backend was given before, and what the backend is given after the operation, or after
/// its request's wait(), follows the operation; the host need not wait.
///
/// Throws UsageError on all ranks if this build lacks the transport, or the backend is no GPU's.
GRIDLOPS_EXPORT std::unique_ptr<Communicator> make_gpu_communicator(Communicator& host,
                                                                    const std::shared_ptr<Backend>& backend,
                                                                    const std::string& transport);

}  // namespace gridlops
