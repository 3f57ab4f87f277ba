// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace gridlops::program {

/// This program, MPI and BLAS, a line each. MPI need not run.
std::string version_text();
/// "Open MPI v4.1.4": the start of what the MPI library says of itself.
std::string mpi_library_text();

}  // namespace gridlops::program
