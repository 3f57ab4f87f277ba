// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command_line/option_parser.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/ops/linear_operator.hpp"
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
DistMatrix<T> read_own_array(const std::string& path, const Space& space);

/// The space of arrays with this length along the last dimension, and otherwise cut like those of `space`.
Space with_last_dimension(const Space& space, Index length);

/// Adds the option --weights, which needs --data.
void define_weights(Options& options, std::string& weights);

/// The user's data, and the operator whose range they are in.
template <Scalar T>
struct OwnData {
  OperatorPtr<T> A;
  DistMatrix<T> data;  ///< one column
};
/// Reads data in A's range (collective over the grid). weights: the name of a file, or empty; then A becomes
/// diag(w) A, and data w∘data, which are 0 where w is, whatever stands there. The file has a real number ≥ 0
/// for each element of the data, or one for each trace, and then lacks the last dimension. is_planned: no
/// data are read, and weights take no memory. Throws InputError on all members, also if a weight is negative,
/// if all are 0, or if an element that counts is not finite.
template <Scalar T>
OwnData<T> read_own_data(OperatorPtr<T> A, const std::string& data, const std::string& weights,
                         bool is_planned);

}  // namespace gridlops::program
