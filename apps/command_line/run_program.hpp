// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace gridlops::program {

class CommandLine;

/// What main() does. A text that the arguments ask for is printed without starting MPI. Otherwise the action
/// of the command line runs on all ranks, with rank 0's arguments and environment, because launchers hand on
/// neither reliably. Rank 0 explains errors; all ranks return the same exit status.
int run_program(int argc, char** argv, CommandLine& command_line);

/// The words of this process' command line, the program first.
const std::vector<std::string>& command_words();

}  // namespace gridlops::program
