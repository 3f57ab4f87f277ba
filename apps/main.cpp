// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <csignal>
#include <string>
#include <variant>
#include <vector>

#include "command_line.hpp"
#include "console.hpp"
#include "gridlops/mpi.hpp"
#include "invocation.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

ExitStatus run(Communicator& world, const Command& command) {
  if (const auto* arguments = std::get_if<MakeProblemArguments>(&command))
    return make_problem(world, *arguments);
  if (const auto* arguments = std::get_if<MultiplyArguments>(&command)) return multiply(world, *arguments);
  if (const auto* arguments = std::get_if<SolveArguments>(&command)) return solve(world, *arguments);
  return info(world);
}

ExitStatus run_and_explain(Communicator& world, const std::vector<std::string>& arguments) {
  const bool talks = world.rank() == 0;
  try {
    const CommandLine line = parse_command_line(share_invocation(world, arguments));
    for (const std::string& warning : line.warnings)
      if (talks) warn(warning);
    return run(world, line.command);
  } catch (const CommunicationError&) {
    throw;  // these two may be one rank's alone, and must end the job
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
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

}  // namespace

}  // namespace gridlops::program

int main(int argc, char** argv) {
  using namespace gridlops;
  using namespace gridlops::program;
  // What cannot be written must be an error that all ranks learn of, not the end of one of them.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (const auto text = requested_text(arguments)) {
    if (launched_as_first()) print(*text);
    return static_cast<int>(with_lost_output(ExitStatus::done));
  }
  MpiSession session(&argc, &argv);
  return session.run([&] {
    Communicator& world = session.world();
    std::array<std::int32_t, 1> status{
        static_cast<std::int32_t>(with_lost_output(run_and_explain(world, arguments)))};
    world.broadcast(status, 0);
    return status[0];
  });
}
