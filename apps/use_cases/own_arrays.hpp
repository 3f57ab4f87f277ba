// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command_line/finite_checks.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/ops/space.hpp"

namespace gridlops::program {

// Files of the user's own data.

/// A real matrix, whole and in host memory on every rank.
struct Table {
  Index rows = 0, cols = 0;
  std::vector<double> values;  ///< column after column

  double operator()(Index i, Index j) const { return values[static_cast<std::size_t>(i + j * rows)]; }
};
/// The header of a table (collective over comm). Throws InputError on all ranks if its elements are complex,
/// or if it has none.
MatrixHeader read_table_header(Communicator& comm, const std::string& path);
/// Reads the table in a file of real numbers (collective over the grid). Throws InputError on all members,
/// also if an element is not finite.
Table read_table(const std::shared_ptr<const ProcessGrid>& grid, const std::string& path);

/// A wavelet in a file, a vector of odd length, whose middle is time 0. Otherwise as read_table().
std::vector<double> read_wavelet(const std::shared_ptr<const ProcessGrid>& grid, const std::string& path);

/// The header of a real array with as many dimensions as their names (collective over comm). Throws
/// InputError on all ranks.
ArrayHeader read_own_header(Communicator& comm, const std::string& path, const char* option,
                            const std::vector<const char*>& dimensions);

/// Reads an array of this type in a space, each rank its part (collective over the grid). Throws InputError
/// on all members, also if an element is not finite.
template <Scalar T>
DistMatrix<T> read_own_array(const std::string& path, const Space& space) {
  DistMatrix<T> X = allocate_matrix<T>(space.grid, space.layout(1));
  read_array(path, read_array_header(space.grid->comm(), path), space.dims, X);
  require_finite<T>(path, X, {space.dims});
  return X;
}

}  // namespace gridlops::program
