// SPDX-License-Identifier: BSD-3-Clause
#include "host_grid.hpp"

#include "gridlops/mpi.hpp"

namespace gridlops::program {

std::shared_ptr<const ProcessGrid> make_host_grid(Communicator& world, GridShape shape,
                                                  const std::string& transport) {
  return std::make_shared<const ProcessGrid>(*make_host_communicator(world, transport), shape,
                                             make_host_backend());
}

std::shared_ptr<const ProcessGrid> with_memory_for(Algorithm algorithm,
                                                   const std::shared_ptr<const ProcessGrid>& grid) {
  if (algorithm != Algorithm::summa || !grid->is_member()) return grid;
  const Communicator& readers_of_A = grid->cols() > 1 ? grid->row_comm() : grid->comm();
  if (readers_of_A.transport() != "shared") return grid;
  return std::make_shared<const ProcessGrid>(*grid, make_shared_host_backend());
}

}  // namespace gridlops::program
