// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "gridlops/communicator.hpp"

namespace gridlops::bench {

/// Which ranks share a host and the cores that they may run on: [{"host", "cores", "ranks"}, …] (collective;
/// the result is rank 0's).
nlohmann::ordered_json placement(Communicator& world);

/// The variables of this process that set how MPI and NCCL carry data: {name: value}.
nlohmann::ordered_json settings();

}  // namespace gridlops::bench
