// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/communicator.hpp"
#include "gridlops/error.hpp"

namespace gridlops::program {

/// What main() does: prints what requested_text() returns, without starting MPI, or else calls run() on all
/// ranks with rank 0's arguments and environment. Its errors are explained on rank 0; all ranks return the
/// same exit status.
int run_program(
    int argc, char** argv,
    const std::function<std::optional<std::string>(const std::vector<std::string>&)>& requested_text,
    const std::function<ExitStatus(Communicator& world, const std::vector<std::string>& arguments)>& run);

}  // namespace gridlops::program
