// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <variant>
#include <vector>

#include "command_line.hpp"
#include "console.hpp"
#include "run_program.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

ExitStatus run(Communicator& world, const std::vector<std::string>& arguments) {
  const CommandLine line = parse_command_line(arguments);
  for (const std::string& warning : line.warnings)
    if (world.rank() == 0) warn(warning);
  const Command& command = line.command;
  if (const auto* given = std::get_if<MakeProblemArguments>(&command)) return make_problem(world, *given);
  if (const auto* given = std::get_if<MultiplyArguments>(&command)) return multiply(world, *given);
  if (const auto* given = std::get_if<SolveArguments>(&command)) return solve(world, *given);
  return info(world);
}

}  // namespace

}  // namespace gridlops::program

int main(int argc, char** argv) {
  using namespace gridlops::program;
  return run_program(
      argc, argv, [](const auto& arguments) { return requested_text(arguments); },
      [](gridlops::Communicator& world, const auto& arguments) { return run(world, arguments); });
}
