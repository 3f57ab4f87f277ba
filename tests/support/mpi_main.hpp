// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/backend.hpp"
#include "gridlops/communicator.hpp"

namespace gridlops::testing {

/// All ranks of the test program. Its main (mpi_main.cpp) runs the same test cases in the same order on each.
Communicator& world();

/// A new backend of the kind that the tests run on, which GRIDLOPS_TEST_TRANSPORT in the environment chooses
/// as it chooses what world() is: mpi, unless it says otherwise, or shared.
std::shared_ptr<Backend> make_backend();

}  // namespace gridlops::testing
