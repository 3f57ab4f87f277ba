// SPDX-License-Identifier: BSD-3-Clause
// Rank 0 waits for a sum that rank 1 does not take part in, and says after how many seconds it no longer
// does. time_limit.py runs it on two ranks. MPI belongs to the program, so that an error is thrown.
#include <chrono>
#include <cstdio>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/mpi.hpp"

using namespace gridlops;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    MpiSession session(MPI_COMM_WORLD);
    Communicator& world = session.world();
    std::vector<double> number(1);
    world.barrier();
    const auto begin = std::chrono::steady_clock::now();
    try {
      if (world.rank() == 0) world.all_reduce(number, ReduceOp::sum);
      if (world.rank() == 1) world.receive(number, 0);
    } catch (const CommunicationError&) {
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
      std::printf("rank %d waited %.3f s\n", world.rank(), waited.count());
      throw;
    }
  } catch (const CommunicationError& error) {
    std::printf("%s\n", error.what());
  }
  return MPI_Finalize();
}
