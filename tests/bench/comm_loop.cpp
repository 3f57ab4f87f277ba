// SPDX-License-Identifier: BSD-3-Clause
// Times operations of MPI by a loop as those of the OSU micro-benchmarks: some calls first, a barrier, many
// calls, their mean on the slowest rank. comm_loop COUNT of doubles, CALLS; prints one line "operation
// seconds" for each operation.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

template <class Call>
void time(const char* name, int calls, const Call& call) {
  for (int k = 0; k < calls; ++k) call();
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int k = 0; k < calls; ++k) call();
  double seconds = (MPI_Wtime() - begin) / calls;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::printf("%s %.9e\n", name, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int count = std::atoi(argv[1]), calls = std::atoi(argv[2]), part = count / ranks;
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  std::vector<double> data(static_cast<std::size_t>(count), 1.0), other(data);
  std::vector<int> parts(static_cast<std::size_t>(ranks), part), offsets;
  for (int k = 0; k < ranks; ++k) offsets.push_back(k * part);
  time("broadcast", calls, [&] { MPI_Bcast(data.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD); });
  time("reduce", calls,
       [&] { MPI_Reduce(data.data(), other.data(), count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); });
  time("all-reduce", calls,
       [&] { MPI_Allreduce(MPI_IN_PLACE, data.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); });
  time("all-gather", calls, [&] {
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DOUBLE, data.data(), parts.data(), offsets.data(), MPI_DOUBLE,
                   MPI_COMM_WORLD);
  });
  time("send-receive", calls, [&] {
    MPI_Sendrecv(data.data(), count, MPI_DOUBLE, next, 0, other.data(), count, MPI_DOUBLE, previous, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  });
  MPI_Finalize();
}
