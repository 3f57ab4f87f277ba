// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/backend.hpp"
#include "gridlops/communicator.hpp"

namespace gridlops::cuda {

/// Whether MPI moves this backend's memory by its addresses, on all ranks of host (collective over it). An
/// MPI that cannot may crash on such an address, so it is tried only where the library says on all ranks that
/// it can, and the environment of none has GRIDLOPS_DEVICE_MPI=staged. Tried are the operations that
/// DirectCommunicator uses, with short and long messages, which travel in different ways; all bytes must
/// arrive. An error that MPI returns is an answer, too.
bool mpi_takes_device_memory(Communicator& host, Backend& backend);

}  // namespace gridlops::cuda
