// SPDX-License-Identifier: BSD-3-Clause
// MPI lets a program replace its functions. These replacements count handles.
#include "support/programs/mpi_main.hpp"

#include <mpi.h>

#include <cstdlib>
#include <cstring>

namespace {

struct {
  int communicators = 0, windows = 0, types = 0;
} open_now;

/// Counts a new handle.
template <class Handle>
int made(int code, const Handle* handle, Handle none, int& count) {
  if (code == MPI_SUCCESS && *handle != none) ++count;
  return code;
}

int freed(int code, int& count) {
  if (code == MPI_SUCCESS) --count;
  return code;
}

int made_comm(int code, const MPI_Comm* comm) {
  return made(code, comm, MPI_COMM_NULL, open_now.communicators);
}
int made_window(int code, const MPI_Win* window) {
  return made(code, window, MPI_WIN_NULL, open_now.windows);
}

}  // namespace

std::string gridlops::testing::left_handles() {
  const auto& [communicators, windows, types] = open_now;
  if (communicators == 0 && windows == 0 && types == 0) return {};
  return std::to_string(communicators) + " communicators, " + std::to_string(windows) + " windows, " +
         std::to_string(types) + " types";
}

extern "C" {

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) { return made_comm(PMPI_Comm_dup(comm, copy), copy); }
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* part) {
  return made_comm(PMPI_Comm_split(comm, color, key, part), part);
}
/// GRIDLOPS_TEST_MACHINES=0011 makes the first two ranks of a communicator seem to be on one machine, and the
/// next two on another.
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* part) {
  const char* const machines = std::getenv("GRIDLOPS_TEST_MACHINES");
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  if (type != MPI_COMM_TYPE_SHARED || machines == nullptr ||
      std::strlen(machines) <= static_cast<std::size_t>(rank))
    return made_comm(PMPI_Comm_split_type(comm, type, key, info, part), part);
  return made_comm(PMPI_Comm_split(comm, machines[rank], key, part), part);
}
int MPI_Comm_free(MPI_Comm* comm) { return freed(PMPI_Comm_free(comm), open_now.communicators); }

int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* window) {
  return made_window(PMPI_Win_create_dynamic(info, comm, window), window);
}
int MPI_Win_free(MPI_Win* window) { return freed(PMPI_Win_free(window), open_now.windows); }

int MPI_Type_vector(int count, int length, int stride, MPI_Datatype of, MPI_Datatype* type) {
  return made(PMPI_Type_vector(count, length, stride, of, type), type, MPI_DATATYPE_NULL, open_now.types);
}
int MPI_Type_free(MPI_Datatype* type) { return freed(PMPI_Type_free(type), open_now.types); }

}  // extern "C"
