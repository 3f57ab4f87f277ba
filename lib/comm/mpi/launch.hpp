// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace gridlops {

/// Why MPI cannot begin in this process: it has the environment of a rank whose own process runs MPI already,
/// and has started this one. Empty if it is not so, or cannot be seen (on other systems than Linux, and where
/// Open MPI's components are no files). To be called before MPI_Init, which would end the process.
std::string launched_within_a_rank();

/// Why MPI's world of this size is not the one that the launcher of this process has made: the launcher is
/// that of another MPI, so that each process has a world of its own. Empty if it is not so.
std::string launched_by_another_mpi(int world_size);

/// Whether the launcher of this process, if there is one, calls it the first.
bool is_launched_as_first();

}  // namespace gridlops
