// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gridlops/process_grid.hpp"

namespace gridlops::program {

/// The transports that this build has for matrices in host memory.
const std::vector<std::string>& host_transports();

/// A process grid with matrices in host memory (collective). Transport: one of those, or auto, which is mpi.
/// Throws UsageError on all ranks if there is no such transport, or not where the ranks are, or too few
/// ranks.
std::shared_ptr<const ProcessGrid> make_host_grid(Communicator& world, GridShape shape,
                                                  const std::string& transport);

}  // namespace gridlops::program
