// SPDX-License-Identifier: BSD-3-Clause
#include "host_grid.hpp"

#include "gridlops/mpi.hpp"

namespace gridlops::program {

std::shared_ptr<const ProcessGrid> make_host_grid(Communicator& world, GridShape shape,
                                                  const std::string& transport) {
  const std::unique_ptr<Communicator> ranks = make_host_communicator(world, transport);
  return std::make_shared<const ProcessGrid>(
      *ranks, shape, ranks->transport() == "shared" ? make_shared_host_backend() : make_host_backend());
}

}  // namespace gridlops::program
