// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops::testing {

/// All ranks of the test program. Its main (mpi_main.cpp) runs the same test cases in the same order on each.
Communicator& world();

/// A new backend of the kind that the tests run on, which two variables of the environment choose, as they
/// choose what world() is: GRIDLOPS_TEST_DEVICE=gpu, with GRIDLOPS_TEST_TRANSPORT nccl or mpi; otherwise the
/// host, with one of host_transports().
std::shared_ptr<Backend> make_backend();

/// The handles that this process has got from MPI and not freed: "1 communicators, 0 windows, 2 types". Empty
/// if there are none. Sanitizers do not see them, since their rules leave out what MPI allocates.
std::string left_handles();

}  // namespace gridlops::testing
