// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.hpp"

namespace gridlops {

/// Whether MPI gets addresses of device memory, if it can take them: not with GRIDLOPS_DEVICE_MPI=staged.
/// Throws UsageError for a value that the variable cannot have. It is read in builds without GPUs, too.
inline bool may_give_mpi_device_memory() {
  return word_in<bool>("GRIDLOPS_DEVICE_MPI", {{"auto", true}, {"staged", false}});
}

}  // namespace gridlops
