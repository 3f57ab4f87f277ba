// SPDX-License-Identifier: BSD-3-Clause
// One machine as several: with GRIDLOPS_TEST_MACHINES=0011, say, the first two ranks of a communicator seem
// to be on one machine and the next two on another. MPI lets a program replace its functions in this way.
#include <mpi.h>

#include <cstdlib>
#include <cstring>

extern "C" int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* part) {
  const char* const machines = std::getenv("GRIDLOPS_TEST_MACHINES");
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  if (type != MPI_COMM_TYPE_SHARED || machines == nullptr ||
      std::strlen(machines) <= static_cast<std::size_t>(rank))
    return PMPI_Comm_split_type(comm, type, key, info, part);
  return PMPI_Comm_split(comm, machines[rank], key, part);
}
