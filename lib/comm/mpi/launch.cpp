// SPDX-License-Identifier: BSD-3-Clause
#include "comm/mpi/launch.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/message.hpp"

namespace gridlops {

namespace {

struct Launcher {
  const char *rank, *size, *name;
};
constexpr Launcher launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"},
                                  {"PMI_RANK", "PMI_SIZE", "MPICH's mpiexec, or one like it"}};

/// A file of /proc about a process; empty if this user may not read it.
std::string about(pid_t process, const char* file) {
  std::ifstream in(message("/proc/", process, "/", file), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

pid_t parent_of(pid_t process) {
  const std::string text = about(process, "stat");
  // "PID (COMMAND) STATE PARENT": a command may have any characters.
  const std::size_t end = text.rfind(')');
  pid_t parent = 0;
  if (end != std::string::npos && end + 4 < text.size())
    std::from_chars(text.data() + end + 4, text.data() + text.size(), parent);
  return parent;
}

}  // namespace

std::string launched_within_a_rank() {
  for (const Launcher& launcher : launchers) {
    const char* const rank = std::getenv(launcher.rank);
    if (rank == nullptr) continue;
    using namespace std::string_literals;
    const std::string variable = "\0"s + launcher.rank + "=" + rank + "\0"s;
    for (pid_t process = ::getppid(); process > 1; process = parent_of(process)) {
      if (("\0"s + about(process, "environ")).find(variable) == std::string::npos) break;
      if (about(process, "maps").find("/mca_pml_") == std::string::npos) continue;  // loaded by MPI_Init
      return message(
          "process ", process, ", which has started this one, is rank ", rank,
          " of a program that uses MPI, and this process would be the same rank once more, which MPI "
          "refuses; start it outside of that program, or without its variables: env -u ",
          launcher.rank, " and all others that begin with OMPI_, PMIX_ and PMI_");
    }
  }
  return {};
}

std::string launched_by_another_mpi(int world_size) {
  if (world_size != 1) return {};
  for (const Launcher& launcher : launchers) {
    const char* const text = std::getenv(launcher.size);
    const std::string_view size = text == nullptr ? "" : text;
    int count = 0;
    std::from_chars(size.data(), size.data() + size.size(), count);
    if (count > 1)
      return message(
          "was started as one of ", count, " ranks by ", launcher.name, " (", launcher.size, "=", count,
          "), but its own MPI knows of one rank only: each process would do all the work, and write all "
          "outputs. Start it by the launcher of the MPI that it was built with, which gridlops info "
          "names; for one process unset ",
          launcher.size);
  }
  return {};
}

bool is_launched_as_first() {
  for (const Launcher& launcher : launchers)
    if (const char* const rank = std::getenv(launcher.rank)) return std::string_view(rank) == "0";
  return true;
}

}  // namespace gridlops
