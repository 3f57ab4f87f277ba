// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"

namespace gridlops::program {

/// The help, or the version, if the arguments (without the program's name) ask for one of them.
std::optional<std::string> requested_text(const std::vector<std::string>& arguments);

struct CommandLine {
  Command command;
  std::vector<std::string> warnings;
};

/// From the arguments and the environment. Throws UsageError.
CommandLine parse_command_line(const std::vector<std::string>& arguments);

}  // namespace gridlops::program
