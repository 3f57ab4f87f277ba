// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>

// What tests may ask of the double, and what they may make it do.

namespace emulation {

/// What was called and moved on this process since it started.
struct Ledger {
  std::map<std::string, long> calls;  ///< by function; kernels by their names as well
  long kernels = 0;                   ///< launched by the library itself, cuBLAS not counted
  long allocations = 0;               ///< of device memory
  long copies_to_host = 0, bytes_to_host = 0;
  long copies_to_device = 0, bytes_to_device = 0;
  long collectives = 0;    ///< NCCL operations, messages included
  long nccl_launches = 0;  ///< in which they went out: groups, and operations of their own
  long device_addresses_to_mpi = 0;

  long of(const std::string& function) const {
    const auto found = calls.find(function);
    return found == calls.end() ? 0 : found->second;
  }
};
Ledger ledger();

/// The n-th next call (from 1) of a function of CUDA, cuBLAS or NCCL, or of a kernel, fails with an error of
/// its kind. The environment's GRIDLOPS_EMULATION_FAIL=RANK:FUNCTION:N does the same on one rank of the job.
void fail_call(const std::string& function, long n);

/// The next kernel of this name takes so long.
void slow_kernel(const std::string& name, double seconds);

/// What the double checks. All are on, but for those that GRIDLOPS_EMULATION_OFF names, separated by commas:
/// so tests show that it is the detector that finds the fault.
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
