// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>

#include "gridlops/communicator.hpp"

namespace gridlops::bench {

/// What figures depend on besides the work: machine, libraries, and who else is busy. Rank 0's.
nlohmann::ordered_json environment(const Communicator& world);

/// Of the last minute; negative if unknown.
double load_average();

}  // namespace gridlops::bench
