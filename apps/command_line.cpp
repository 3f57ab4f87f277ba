// SPDX-License-Identifier: BSD-3-Clause
#include "command_line.hpp"

#include "grammar.hpp"
#include "parsing.hpp"

namespace gridlops::program {

std::optional<std::string> requested_text(const std::vector<std::string>& arguments) {
  return requested_text(Grammar().app(), arguments);
}

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  Grammar grammar;
  parse(grammar.app(), arguments);
  return {grammar.command(), unknown_variables(grammar.app(), {"GRIDLOPS_BENCH_"})};
}

}  // namespace gridlops::program
