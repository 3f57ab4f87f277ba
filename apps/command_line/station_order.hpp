// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "gridlops/comm/communicator.hpp"

namespace gridlops::program {

/// The order in space of stations, one for each of the `count` lines ("rows") of `matrix`, whose positions
/// are in a file; empty without a file (collective over world). Throws InputError on all ranks.
std::vector<Index> station_order(Communicator& world, const std::string& file, const std::string& matrix,
                                 Index count, const char* lines);

}  // namespace gridlops::program
