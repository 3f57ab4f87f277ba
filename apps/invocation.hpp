// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "gridlops/communicator.hpp"

namespace gridlops::program {

/// Whether this process is the one that talks, before MPI runs: by what common launchers put into the
/// environment.
bool launched_as_first();

/// The names of the variables of this process' environment that begin so.
std::vector<std::string> environment_names(const std::string& begin_with);

/// Rank 0's arguments, on every rank; the GRIDLOPS_ part of every rank's environment becomes rank 0's, too
/// (collective). Launchers hand on neither reliably.
std::vector<std::string> share_invocation(Communicator& world, const std::vector<std::string>& arguments);

}  // namespace gridlops::program
