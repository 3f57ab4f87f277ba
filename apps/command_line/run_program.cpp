// SPDX-License-Identifier: BSD-3-Clause

#include <array>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "command_line/console.hpp"
#include "command_line/option_parser.hpp"
#include "command_line/trace_output.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops::program {

namespace {

using Texts = std::vector<std::string>;

Texts words_of_command;

/// The rank that a common launcher sets in this process's environment, before MPI runs; null without one.
const char* launched_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (const char* rank = std::getenv(variable); rank != nullptr) return rank;
  return nullptr;
}

/// Spares a process without mpirun what Open MPI 4 needs only for jobs. Its daemon takes longer than the rest
/// of the start; it serves MPI_Comm_spawn and names published to other jobs, which our programs do not use.
/// Its session folder is shared by all of a user's jobs on a host, and two jobs that begin or end at once may
/// fail to make it. Debuggers attach to processes and need neither. Open MPI 5 and MPICH do not read these
/// variables. If the user has set the first one, this changes nothing.
void start_without_daemon() {
  if (launched_rank() != nullptr || std::getenv("OMPI_MCA_ess_singleton_isolated") != nullptr) return;
  setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
  setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
}

bool is_launched_as_first() {
  const char* const rank = launched_rank();
  return rank == nullptr || std::string_view(rank) == "0";
}

// Texts travel one after the other. Each ends with a null character, which no text can contain.
void append(std::string& message, std::string_view text) {
  message += text;
  message += '\0';
}

Texts texts_in(const std::string& message) {
  Texts texts;
  for (std::size_t begin = 0; begin < message.size();) {
    const std::size_t end = message.find('\0', begin);
    texts.push_back(message.substr(begin, end - begin));
    begin = end + 1;
  }
  return texts;
}

/// Returns rank 0's arguments on every rank, and replaces every rank's variables GRIDLOPS_… by rank 0's
/// (collective).
Texts share_invocation(Communicator& world, const Texts& arguments) {
  std::string message;
  append(message, std::to_string(arguments.size()));
  for (const std::string& argument : arguments) append(message, argument);
  for (const std::string& name : gridlops_variables()) {
    append(message, name);
    append(message, std::getenv(name.c_str()));
  }
  const Texts texts = texts_in(broadcast_text(world, message, 0));

  const auto environment_begin = static_cast<std::size_t>(std::stoll(texts[0])) + 1;
  for (const std::string& name : gridlops_variables()) unsetenv(name.c_str());
  for (std::size_t k = environment_begin; k + 1 < texts.size(); k += 2)
    setenv(texts[k].c_str(), texts[k + 1].c_str(), 1);
  return {texts.begin() + 1, texts.begin() + static_cast<std::ptrdiff_t>(environment_begin)};
}

/// Runs an action, and prints or writes its trace, also if all ranks end it because a checkpoint was asked
/// for.
ExitStatus run_traced(Communicator& world, const Action& action) {
  TraceOutput trace(world);
  try {
    const ExitStatus status = action(world);
    trace.finish();
    return status;
  } catch (const Error& error) {
    if (error.status() == ExitStatus::try_again && error.known_to() == KnownTo::all_ranks) trace.finish();
    throw;
  }
}

/// The exit status of a run. Rank 0 explains an error that all ranks have met.
ExitStatus run(Communicator& world, const Texts& arguments, CommandLine& command_line) {
  const bool talks = world.rank() == 0;
  try {
    const Action action = command_line.parse(share_invocation(world, arguments));
    for (const std::string& warning : command_line.unknown_variables())
      if (talks) warn(warning);
    return run_traced(world, action);
  } catch (const Error& error) {
    if (error.known_to() == KnownTo::one_rank) throw;  // this ends the job
    if (talks && error.status() == ExitStatus::try_again) warn(error.what());
    if (talks && error.status() != ExitStatus::try_again) complain(error.what());
    return error.status();
  }
}

/// The exit status of rank 0, where the printed text counts as an output, too.
ExitStatus with_lost_output(ExitStatus status) {
  if (!output_is_lost()) return status;
  complain("standard output could not be written");
  return status == ExitStatus::done || status == ExitStatus::not_converged ? ExitStatus::bad_output : status;
}

}  // namespace

const std::vector<std::string>& command_words() { return words_of_command; }

int run_program(int argc, char** argv, CommandLine& command_line) {
  words_of_command.assign(argv, argv + argc);
  // If the system refuses a write, all ranks must learn of an error; the signal would end one rank.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  const Texts arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (const auto text = command_line.requested_text(arguments)) {
    if (is_launched_as_first()) print(*text);
    return static_cast<int>(with_lost_output(ExitStatus::done));
  }
  start_without_daemon();
  MpiSession session(&argc, &argv);
  return session.run([&] {
    Communicator& world = session.world();
    const ExitStatus mine = run(world, arguments, command_line);
    std::array<std::int32_t, 1> status{static_cast<std::int32_t>(with_lost_output(mine))};
    world.broadcast(status, 0);
    return status[0];
  });
}

}  // namespace gridlops::program
