// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <string>

// Tests ask the emulation for its counts, and control it.

namespace emulation {

/// Counts of what this process has called and moved since it started.
struct Ledger {
  std::map<std::string, long, std::less<>> calls;  ///< by function, kernels by name; of MPI only messages
  long kernels = 0;                                ///< launched by the library itself, cuBLAS not counted
  long allocations = 0;                            ///< of device memory
  long copies_to_host = 0, bytes_to_host = 0;
  long copies_to_device = 0, bytes_to_device = 0;
  long collectives = 0;    ///< NCCL operations, messages included
  long nccl_launches = 0;  ///< of these operations: one for each communicator of a group
  long device_addresses_to_mpi = 0;

  long of(const std::string& function) const {
    const auto found = calls.find(function);
    return found == calls.end() ? 0 : found->second;
  }
};
Ledger ledger();

/// Makes the n-th call from now (n ≥ 1) of a function of CUDA, cuBLAS or NCCL, or of a kernel, fail with an
/// error of its kind. The variable GRIDLOPS_FAULT=RANK:FUNCTION:N:fail does the same on one rank of the
/// job.
void fail_call(const std::string& function, long n);

/// Delays the next kernel of this name by this time.
void slow_kernel(const std::string& name, double seconds);

/// The checks of the emulation. GRIDLOPS_EMULATION_OFF names detectors to turn off, separated by commas: with
/// it tests show that a fault is found by its detector.
enum class Detector {
  races,
  ranges,
  alignment,
  devices,
  host_access,
  pageable,
  copies,
  uninitialised,
  signatures,
  orders,
  hangs,
  leaks
};
bool is_on(Detector detector);

}  // namespace emulation
