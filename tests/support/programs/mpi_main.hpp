// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops::testing {

/// All ranks of the test program. Its main (mpi_main.cpp) runs the same test cases in the same order on each.
Communicator& world();

/// A new backend of the kind under test. Two variables of the environment choose it and the transport of
/// world(): GRIDLOPS_TEST_DEVICE=gpu with GRIDLOPS_TEST_TRANSPORT nccl or mpi; otherwise the host, with one
/// of host_transports().
std::shared_ptr<Backend> make_backend();

/// The MPI handles that this process has not freed: "1 communicators, 0 windows, 2 types". Empty if there are
/// none. Sanitizers miss them, because lsan.supp excludes memory of MPI.
std::string left_handles();

}  // namespace gridlops::testing
