// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/comm/mpi.hpp"
#include "support/catch.hpp"
#include "support/programs/mpi_main.hpp"

using namespace gridlops;
using gridlops::testing::world;

TEST_CASE("The session's world has all ranks, and communicates apart from MPI_COMM_WORLD") {
  int rank = -1;
  int size = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(world().rank() == rank);
  CHECK(world().size() == size);
  CHECK(world().transport() == "mpi");

  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;
  std::vector<std::int32_t> ours(1);
  std::int32_t theirs = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&theirs, 1, MPI_INT32_T, previous, 3, MPI_COMM_WORLD, &request);
  world().send_receive(std::vector<std::int32_t>{rank}, next, ours, previous, 3);
  const std::int32_t other = rank + 1000;
  MPI_Send(&other, 1, MPI_INT32_T, next, 3, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(ours[0] == previous);
  CHECK(theirs == previous + 1000);
}

TEST_CASE("There is one session per process") { CHECK_THROWS_AS(MpiSession(nullptr, nullptr), UsageError); }

TEST_CASE("A communicator that is lent may be freed by its owner at once") {
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world().rank() % 2, 0, &half);
  int size = 0;
  MPI_Comm_size(half, &size);
  const auto comm = make_mpi_communicator(half);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(half, &handler);
  CHECK(handler == MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&half);
  std::vector<std::int64_t> ones{1};
  comm->all_reduce(ones, ReduceOp::sum);
  CHECK(ones[0] == size);
}
