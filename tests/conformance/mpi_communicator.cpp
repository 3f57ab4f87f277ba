// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include "conformance/communicator_contract.hpp"
#include "gridlops/error.hpp"
#include "gridlops/mpi.hpp"

using namespace gridlops;

TEST_CASE("The MPI communicator keeps the contract") {
  testing::check_communicator_contract([] {
    return testing::Subject{make_mpi_communicator(MPI_COMM_WORLD), make_host_backend()};
  });
}

TEST_CASE("A group that was split off keeps the contract, its ranks in another order") {
  const auto world = make_mpi_communicator(MPI_COMM_WORLD);
  testing::check_communicator_contract([&] {
    return testing::Subject{world->split(world->rank() % 2, -world->rank()), make_host_backend()};
  });
}

TEST_CASE("The communicator of ranks that share memory keeps the contract") {
  const auto world = make_mpi_communicator(MPI_COMM_WORLD);
  testing::check_communicator_contract([&] {
    return testing::Subject{make_shared_communicator(*world), make_shared_host_backend()};
  });
}

TEST_CASE("A receiver that expects another length gets an error, and the communicator goes on") {
  const auto comm = make_mpi_communicator(MPI_COMM_WORLD);
  std::vector<double> data(7);
  for (const Index expected : {2, 4}) {
    if (comm->size() == 1) break;
    if (comm->rank() == 1) comm->send(Elements(data.data(), 3), 0);
    if (comm->rank() == 0)
      CHECK_THROWS_AS(comm->receive(Elements(data.data(), expected), 1), CommunicationError);
    comm->barrier();
  }
}
