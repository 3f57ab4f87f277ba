// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gridlops/backend.hpp"
#include "gridlops/communicator.hpp"
#include "gridlops/export.hpp"

namespace gridlops {

/// What of GPUs was built, and what was found on this machine. Not collective; never throws.
struct GpuInfo {
  bool is_built = false;
  int devices = 0;                      ///< that this process can use
  std::string problem;                  ///< why there is none, and what to do about it; else empty
  std::vector<std::string> transports;  ///< for make_gpu_communicator()
  std::string versions;                 ///< of the vendor's libraries
};
GRIDLOPS_EXPORT GpuInfo gpu_info();

/// How many ranks of comm with lower numbers run on this rank's host (collective over comm): modulo the
/// number of devices, the GPU that this rank should take, so that each rank has its own as far as there are
/// enough.
GRIDLOPS_EXPORT int rank_on_host(Communicator& comm);

/// Whether the MPI library says that it takes addresses of a GPU's memory. Not collective. It may be wrong.
GRIDLOPS_EXPORT bool mpi_claims_device_memory();

/// A communicator with the ranks of `host` for operands in the memory of a GPU's backend, of which each rank
/// has its own, and in host memory: an operation takes the way of its operands, which must be of one kind on
/// all ranks (collective over host, which is duplicated and not otherwise touched).
///
/// transport "nccl": device operands by NCCL, but for send and receive, which have tags and go through the
/// host. "mpi": MPI gets the device addresses themselves (transport() is then "mpi-direct") if the library
/// says that it takes them, a test on memory of the backend shows it on all ranks, and the environment has no
/// GRIDLOPS_DEVICE_MPI=staged; otherwise ("mpi-staged"), and for reductions and all_to_all in either case,
/// they travel through page-locked host memory, copies and messages overlapping. Host operands take the
/// transport of `host` in all. Operations on device operands are ordered after all that the backend was
/// given before, and what it is given after the operation, or after its request's wait(), comes after it; the
/// host need not wait.
///
/// Throws UsageError on all ranks if this build lacks the transport, or the backend is no GPU's.
GRIDLOPS_EXPORT std::unique_ptr<Communicator> make_gpu_communicator(Communicator& host,
                                                                    const std::shared_ptr<Backend>& backend,
                                                                    const std::string& transport);

}  // namespace gridlops
