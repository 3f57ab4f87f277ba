// SPDX-License-Identifier: BSD-3-Clause
#include <variant>

#include "benchmarks.hpp"
#include "console.hpp"
#include "grammar.hpp"
#include "parsing.hpp"
#include "run_program.hpp"

namespace gridlops::bench {

namespace {

ExitStatus run(Communicator& world, const std::vector<std::string>& arguments) {
  Grammar grammar;
  program::parse(grammar.app(), arguments);
  // The program gridlops has variables of its own, for some subcommands of the same name.
  const std::vector<std::string> foreign{"GRIDLOPS_MAKE_PROBLEM_", "GRIDLOPS_MULTIPLY_", "GRIDLOPS_SOLVE_"};
  for (const std::string& warning : program::unknown_variables(grammar.app(), foreign))
    if (world.rank() == 0) program::warn(warning);
  const Command command = grammar.command();
  if (const auto* given = std::get_if<MatmulArguments>(&command)) {
    matmul(world, *given);
  } else if (const auto* exchange = std::get_if<CommArguments>(&command)) {
    comm(world, *exchange);
  } else if (const auto* columns = std::get_if<KernelArguments>(&command)) {
    kernels(world, *columns);
  } else {
    solve(world, std::get<SolveArguments>(command));
  }
  return ExitStatus::done;
}

}  // namespace

}  // namespace gridlops::bench

int main(int argc, char** argv) {
  using namespace gridlops;
  return program::run_program(
      argc, argv,
      [](const auto& arguments) { return program::requested_text(bench::Grammar().app(), arguments); },
      [](Communicator& world, const auto& arguments) { return bench::run(world, arguments); });
}
