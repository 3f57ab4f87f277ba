// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace gridlops {

/// Why MPI cannot begin in this process: it has the environment of a rank whose own process runs Open MPI
/// already, and has started this one. Empty if it is not so, or cannot be seen (on other systems than Linux,
/// and where Open MPI's components are no files). To be called before MPI_Init, which would end the process.
std::string launched_within_a_rank();

/// Why MPI's world is not the one that the launcher of this process has made.
struct ForeignLaunch {
  std::string why;        ///< empty if it is
  bool is_first = false;  ///< whether that launcher calls this process the first
};
/// world_size: of MPI's world. Where the launcher is that of another MPI, each process has a world of its
/// own.
ForeignLaunch launched_by_another_mpi(int world_size);

}  // namespace gridlops
