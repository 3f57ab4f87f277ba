// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/communicator.hpp"

namespace gridlops::testing {

/// All ranks of the test program. Its main (mpi_main.cpp) runs the same test cases in the same order on each.
Communicator& world();

}  // namespace gridlops::testing
