// SPDX-License-Identifier: BSD-3-Clause
#include "run_program.hpp"

#include <array>
#include <csignal>
#include <cstdlib>

#include "console.hpp"
#include "gridlops/mpi.hpp"
#include "invocation.hpp"

namespace gridlops::program {

namespace {

ExitStatus explained(bool talks, const std::function<ExitStatus()>& run) {
  try {
    return run();
  } catch (const Error& error) {
    if (error.known_to() == KnownTo::one_rank) throw;  // it ends the job
    if (talks && error.status() == ExitStatus::try_again) warn(error.what());
    if (talks && error.status() != ExitStatus::try_again) complain(error.what());
    return error.status();
  }
}

/// The status that rank 0 ends with; what was printed is an output, too.
ExitStatus with_lost_output(ExitStatus status) {
  if (!output_is_lost()) return status;
  complain("standard output could not be written");
  return status == ExitStatus::done || status == ExitStatus::not_converged ? ExitStatus::bad_output : status;
}

/// Spares a process without mpirun the daemon that Open MPI 4 starts for it, which takes longer than all the
/// rest of its start. The daemon is for MPI_Comm_spawn and for names published to other jobs; these fail
/// without it, and our programs use neither. Debuggers attach to processes, and do not need it either. Under
/// mpirun, in Open MPI 5 and in MPICH nothing reads the variable; what the user has set stays.
void start_without_daemon() { setenv("OMPI_MCA_ess_singleton_isolated", "1", 0); }

}  // namespace

int run_program(
    int argc, char** argv,
    const std::function<std::optional<std::string>(const std::vector<std::string>&)>& requested_text,
    const std::function<ExitStatus(Communicator& world, const std::vector<std::string>& arguments)>& run) {
  // What cannot be written must be an error that all ranks learn of, not the end of one of them.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (const auto text = requested_text(arguments)) {
    if (launched_as_first()) print(*text);
    return static_cast<int>(with_lost_output(ExitStatus::done));
  }
  start_without_daemon();
  MpiSession session(&argc, &argv);
  return session.run([&] {
    Communicator& world = session.world();
    const ExitStatus mine =
        explained(world.rank() == 0, [&] { return run(world, share_invocation(world, arguments)); });
    std::array<std::int32_t, 1> status{static_cast<std::int32_t>(with_lost_output(mine))};
    world.broadcast(status, 0);
    return status[0];
  });
}

}  // namespace gridlops::program
