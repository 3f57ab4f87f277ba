// SPDX-License-Identifier: BSD-3-Clause
#include "host_grid.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gridlops/error.hpp"
#include "gridlops/mpi.hpp"
#include "text_checks.hpp"

namespace gridlops::program {

const std::vector<std::string>& host_transports() {
  static const std::vector<std::string> names{"mpi", "shared"};
  return names;
}

std::shared_ptr<const ProcessGrid> make_host_grid(Communicator& world, GridShape shape,
                                                  const std::string& transport) {
  if (transport == "auto" || transport == "mpi")
    return std::make_shared<const ProcessGrid>(world, shape, make_host_backend());
  if (transport == "shared") {
    const std::unique_ptr<Communicator> neighbours = make_shared_communicator(world);
    return std::make_shared<const ProcessGrid>(*neighbours, shape, make_shared_host_backend());
  }
  throw UsageError(fmt::format("transport '{}' is not part of this build; it has {}", transport,
                               joined(host_transports(), ", ")));
}

}  // namespace gridlops::program
