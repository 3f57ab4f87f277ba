// SPDX-License-Identifier: BSD-3-Clause
// Wraps the functions of MPI that may get device memory. On request they act as an MPI that takes it.
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "emulation/device.hpp"
#include "emulation/report.hpp"

using emulation::device;
using emulation::Lock;

namespace {

/// GRIDLOPS_EMULATION_MPI. `plain` takes no device memory. `aware` takes it and says so. `boastful` says so
/// and loses it. `refusing` says so and returns errors.
enum class Ability { plain, aware, boastful, refusing };

Ability ability() {
  const char* text = std::getenv("GRIDLOPS_EMULATION_MPI");
  const std::string name = text == nullptr ? "plain" : text;
  return name == "aware"      ? Ability::aware
         : name == "boastful" ? Ability::boastful
         : name == "refusing" ? Ability::refusing
                              : Ability::plain;
}

bool is_device(const void* address) {
  if (!emulation::device_exists()) return false;
  const Lock lock(device().mutex);
  return device().memory.is_device(address);
}
bool refuses(const void* address) { return ability() == Ability::refusing && is_device(address); }

/// Counts messages that the program's own thread begins. The library's watchdog has another.
void note_message(const char* function) {
  int is_main = 0;
  PMPI_Is_thread_main(&is_main);
  if (is_main == 0 || !emulation::device_exists()) return;
  const Lock lock(device().mutex);
  ++emulation::running_ledger().calls[function];
}

/// Memory that receives what `boastful` loses.
void* nowhere(std::size_t bytes) {
  static std::vector<std::unique_ptr<char[]>> lost;
  lost.push_back(std::make_unique<char[]>(bytes));
  return lost.back().get();
}

/// The address that the real MPI gets in place of the program's.
void* reached(const char* function, const void* address, std::size_t bytes, bool written) {
  void* const own = const_cast<void*>(address);
  if (bytes == 0 || !is_device(address)) return own;
  emulation::Device& gpu = device();
  const Lock lock(gpu.mutex);
  ++emulation::running_ledger().device_addresses_to_mpi;
  if (ability() == Ability::plain) {
    const emulation::Allocation* allocation = gpu.memory.find(address);
    emulation::violation(emulation::Detector::host_access, function, " was given ",
                         allocation == nullptr ? "device memory" : allocation->name(),
                         ", and this MPI takes none");
    return own;
  }
  gpu.memory.check_host_use(written ? emulation::writes(address, bytes) : emulation::reads(address, bytes),
                            gpu.host, function);
  if (written && ability() == Ability::boastful) return nowhere(bytes);
  return gpu.memory.alias(own);
}

std::size_t bytes_of(int count, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return static_cast<std::size_t>(count) * static_cast<std::size_t>(size);
}

void* broadcast_address(const char* function, void* data, int count, MPI_Datatype type, int root,
                        MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return reached(function, data, bytes_of(count, type), rank != root);
}

/// The whole target of a gather, whose parts may lie in any order.
void* gather_address(const char* function, void* all, const int counts[], const int offsets[],
                     MPI_Datatype type, MPI_Comm comm) {
  int size = 0, end = 0;
  PMPI_Comm_size(comm, &size);
  for (int rank = 0; rank < size; ++rank) end = std::max(end, offsets[rank] + counts[rank]);
  return reached(function, all, bytes_of(end, type), true);
}

}  // namespace

int emulation::rank_in_job() {
  static std::atomic<int> rank = -1;
  int runs = 0, is_over = 0, found = 0;
  if (rank >= 0 || PMPI_Initialized(&runs) != MPI_SUCCESS || runs == 0) return rank;
  if (PMPI_Finalized(&is_over) != MPI_SUCCESS || is_over != 0) return rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &found);
  return rank = found;
}

extern "C" {

// A name to ask a linker for that would be content with the MPI library's functions.
extern const int emulation_stands_before_mpi;
const int emulation_stands_before_mpi = 1;

int MPIX_Query_cuda_support() { return ability() == Ability::plain ? 0 : 1; }

int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  if (refuses(data)) return MPI_ERR_BUFFER;
  return PMPI_Bcast(broadcast_address("MPI_Bcast", data, count, type, root, comm), count, type, root, comm);
}
int MPI_Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  if (refuses(data)) return MPI_ERR_BUFFER;
  return PMPI_Ibcast(broadcast_address("MPI_Ibcast", data, count, type, root, comm), count, type, root, comm,
                     request);
}
int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  note_message("MPI_Isend");
  if (refuses(data)) return MPI_ERR_BUFFER;
  return PMPI_Isend(reached("MPI_Isend", data, bytes_of(count, type), false), count, type, to, tag, comm,
                    request);
}
int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  note_message("MPI_Irecv");
  if (refuses(data)) return MPI_ERR_BUFFER;
  return PMPI_Irecv(reached("MPI_Irecv", data, bytes_of(count, type), true), count, type, from, tag, comm,
                    request);
}
int MPI_Allgatherv(const void* mine, int count, MPI_Datatype type, void* all, const int counts[],
                   const int offsets[], MPI_Datatype all_type, MPI_Comm comm) {
  if (refuses(all)) return MPI_ERR_BUFFER;
  return PMPI_Allgatherv(mine, count, type,
                         gather_address("MPI_Allgatherv", all, counts, offsets, all_type, comm), counts,
                         offsets, all_type, comm);
}
int MPI_Iallgatherv(const void* mine, int count, MPI_Datatype type, void* all, const int counts[],
                    const int offsets[], MPI_Datatype all_type, MPI_Comm comm, MPI_Request* request) {
  if (refuses(all)) return MPI_ERR_BUFFER;
  return PMPI_Iallgatherv(mine, count, type,
                          gather_address("MPI_Iallgatherv", all, counts, offsets, all_type, comm), counts,
                          offsets, all_type, comm, request);
}

}  // extern "C"
