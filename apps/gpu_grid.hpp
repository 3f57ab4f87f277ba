// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "gridlops/process_grid.hpp"

namespace gridlops::program {

/// A process grid with matrices on GPUs, the ranks of a host taking its GPUs in turn (collective). Transport:
/// of make_gpu_communicator(), or auto, which is nccl. Throws UsageError on all ranks if there is no such
/// transport, or no GPU.
std::shared_ptr<const ProcessGrid> make_gpu_grid(Communicator& world, GridShape shape,
                                                 const std::string& transport);

}  // namespace gridlops::program
