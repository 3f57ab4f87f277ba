// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <vector>

#include "base/square_sum.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops {

/// The norm of numbers that are spread over ranks, from the norm of each rank's; the same on all
/// (collective).
inline double norm_of_ranks(Communicator& comm, double mine) {
  std::vector<double> norms(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::array{mine}, norms);
  return norm_of(norms);
}

}  // namespace gridlops
