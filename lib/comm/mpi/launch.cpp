// SPDX-License-Identifier: BSD-3-Clause
#include "comm/mpi/launch.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <mpi.h>

#include <algorithm>
#include <array>
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
#ifdef OPEN_MPI
  // The job and the rank; another mpirun names another job.
  std::array<std::string, 2> variables;
  for (std::size_t k = 0; k < 2; ++k) {
    using namespace std::string_literals;
    const char* const name = k == 0 ? "PMIX_NAMESPACE" : "PMIX_RANK";
    const char* const value = std::getenv(name);
    if (value == nullptr) return {};
    variables[k] = "\0"s + name + "=" + value + "\0"s;
  }
  for (pid_t process = ::getppid(); process > 1; process = parent_of(process)) {
    const std::string environment = "\0" + about(process, "environ");
    const auto has = [&](const std::string& one) { return environment.find(one) != std::string::npos; };
    if (!std::all_of(variables.begin(), variables.end(), has)) break;
    if (about(process, "maps").find("/mca_pml_") == std::string::npos) continue;  // loaded by MPI_Init
    return message(
        "process ", process, ", which has started this one, is rank ", std::getenv("PMIX_RANK"),
        " of a program that uses MPI, and this process would be the same rank once more, which MPI "
        "refuses; start it outside of that program, or without its variables: all that begin with "
        "OMPI_ and PMIX_");
  }
#endif
  return {};
}

ForeignLaunch launched_by_another_mpi(int world_size) {
  ForeignLaunch found;
  for (const Launcher& launcher : launchers) {
    const char *const text = std::getenv(launcher.size), *const rank = std::getenv(launcher.rank);
    const std::string_view size = text == nullptr ? "" : text;
    int count = 0;
    std::from_chars(size.data(), size.data() + size.size(), count);
    if (count == world_size) return {};  // this one has launched it, whatever others have left behind
    if (world_size == 1 && count > 1)
      found = {message("was started as one of ", count, " ranks by ", launcher.name, " (", launcher.size, "=",
                       count,
                       "), but its own MPI knows of one rank only: each process would do all the work, and "
                       "write all outputs. Start it by the launcher of the MPI that it was built with, which "
                       "gridlops info names; for one process unset ",
                       launcher.size),
               rank == nullptr || std::string_view(rank) == "0"};
  }
  return found;
}

}  // namespace gridlops
