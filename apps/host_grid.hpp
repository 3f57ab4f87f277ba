// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "gridlops/cost_model.hpp"
#include "gridlops/process_grid.hpp"

namespace gridlops::program {

/// A process grid with matrices in host memory (collective). For the transport see make_host_communicator(),
/// which throws where it cannot be had; UsageError on all ranks if there are too few.
std::shared_ptr<const ProcessGrid> make_host_grid(Communicator& world, GridShape shape,
                                                  const std::string& transport);

/// The grid with the memory that the algorithm wants A in: shared memory where ranks read each other's blocks
/// of A in place, else the grid's own, of which the pages are larger. Local.
std::shared_ptr<const ProcessGrid> with_memory_for(Algorithm algorithm,
                                                   const std::shared_ptr<const ProcessGrid>& grid);

}  // namespace gridlops::program
