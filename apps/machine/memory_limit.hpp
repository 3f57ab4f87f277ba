// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/base/types.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops::program {

/// The memory that this process has now, and the most that it has had, in bytes; negative if the system does
/// not say.
Index resident_bytes();
Index peak_bytes();

/// From now on memory of 128 KiB or more goes back to the system when it is freed, where the C library can do
/// that. It keeps more and more of it otherwise, so that nobody can say what a process will take.
void return_freed_memory();

/// How much each rank may take, what it has now included, so that the ranks of no machine need more than is
/// available there, nor than the control group of any allows, nor than is left of the address space of any
/// rank (ulimit -v); the same on all ranks (collective over comm).
Index available_bytes_per_rank(Communicator& comm);

/// The most address space, in bytes, that the threads which read from disks take on any rank (collective); 0
/// if no rank's address space is limited. Where it is, threads have no heaps of their own from now on.
Index address_space_of_disk_threads(Communicator& comm);

}  // namespace gridlops::program
