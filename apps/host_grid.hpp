// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "gridlops/process_grid.hpp"

namespace gridlops::program {

/// A process grid with matrices in host memory (collective). For the transport see make_host_communicator(),
/// which throws where it cannot be had; UsageError on all ranks if there are too few.
std::shared_ptr<const ProcessGrid> make_host_grid(Communicator& world, GridShape shape,
                                                  const std::string& transport);

}  // namespace gridlops::program
