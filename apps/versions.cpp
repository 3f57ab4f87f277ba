// SPDX-License-Identifier: BSD-3-Clause
#include "versions.hpp"

#include <fmt/format.h>

#include <array>

#include "gridlops/backend.hpp"
#include "gridlops/mpi.hpp"
#include "gridlops/version.hpp"

namespace gridlops::program {

std::string version_text() {
  const BlasInfo blas = blas_info();
  const std::string kernel = blas.kernel.empty() ? "" : fmt::format(" ({})", blas.kernel);
  return fmt::format("gridlops {}\n{}\n{}{}", version, mpi_library_text(), blas.library, kernel);
}

std::string mpi_library_text() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);  // may be called at any time
  const std::string whole(text.data());
  // Open MPI puts its builder's name, MPICH its configuration behind this.
  return whole.substr(0, whole.find_first_of(",\n"));
}

}  // namespace gridlops::program
