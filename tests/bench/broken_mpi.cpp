// SPDX-License-Identifier: BSD-3-Clause
// Functions of MPI that lose the last number of long operands, for programs that must notice: preloaded, this
// library stands before MPI. GRIDLOPS_TEST_BROKEN names the function; short operands, which programs steer
// by, arrive. MPI_Win_attach refuses memory on rank 1. "NaN on R" makes the first number that MPI_Allgatherv
// brings to rank R no number.
#include <mpi.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// The count that is carried out.
int carried(const char* function, int count, MPI_Datatype type) {
  const char* const broken = std::getenv("GRIDLOPS_TEST_BROKEN");
  const bool is_number = type == MPI_DOUBLE || type == MPI_FLOAT;
  return broken != nullptr && std::string_view(broken) == function && is_number && count >= 64 ? count - 1
                                                                                               : count;
}

}  // namespace

extern "C" {

int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return PMPI_Bcast(data, carried("MPI_Bcast", count, type), type, root, comm);
}

int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return PMPI_Allreduce(in, out, carried("MPI_Allreduce", count, type), type, op, comm);
}

int MPI_Allgatherv(const void* in, int count, MPI_Datatype in_type, void* out, const int* counts,
                   const int* offsets, MPI_Datatype type, MPI_Comm comm) {
  int ranks = 1;
  MPI_Comm_size(comm, &ranks);
  std::vector<int> fewer(counts, counts + ranks);
  fewer.back() = carried("MPI_Allgatherv", fewer.back(), type);
  const int code = PMPI_Allgatherv(in, count, in_type, out, fewer.data(), offsets, type, comm);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* const broken = std::getenv("GRIDLOPS_TEST_BROKEN");
  if (broken != nullptr && type == MPI_DOUBLE && "NaN on " + std::to_string(rank) == broken)
    *static_cast<double*>(out) = std::numeric_limits<double>::quiet_NaN();
  return code;
}

int MPI_Win_attach(MPI_Win window, void* memory, MPI_Aint size) {
  const char* const broken = std::getenv("GRIDLOPS_TEST_BROKEN");
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const bool refuses = broken != nullptr && std::string_view(broken) == "MPI_Win_attach" && rank == 1;
  return refuses ? MPI_ERR_NO_MEM : PMPI_Win_attach(window, memory, size);
}

int MPI_Get(void* mine, int count, MPI_Datatype type, int rank, MPI_Aint there, int, MPI_Datatype,
            MPI_Win window) {
  const int fewer = carried("MPI_Get", count, type);
  return PMPI_Get(mine, fewer, type, rank, there, fewer, type, window);
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
              MPI_Request* request) {
  if (carried("MPI_Isend", count, type) == count)
    return PMPI_Isend(data, count, type, rank, tag, comm, request);
  // The receiver counts what it gets, so the number is there, but another; MPI reads it later.
  int bytes = 0;
  MPI_Type_size(type, &bytes);
  const auto size = static_cast<std::size_t>(bytes) * static_cast<std::size_t>(count);
  const auto* const from = static_cast<const char*>(data);
  auto* const kept = new std::vector<char>(from, from + size);
  kept->back() = static_cast<char>(kept->back() ^ 1);
  return PMPI_Isend(kept->data(), count, type, rank, tag, comm, request);
}
}
