// SPDX-License-Identifier: BSD-3-Clause
#include "use_cases/own_arrays.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "command_line/finite_checks.hpp"
#include "command_line/grid.hpp"

namespace gridlops::program {

namespace {

template <Scalar T>
std::vector<double> read_whole(const std::shared_ptr<const ProcessGrid>& grid, const std::string& path,
                               const MatrixHeader& header) {
  DistMatrix<T> X = allocate_matrix<T>(grid, replicated(header.rows, header.cols));
  read_matrix(path, header, X);
  require_finite<T>(path, X);
  std::vector<T> values(static_cast<std::size_t>(X.local().size()));
  grid->backend()->download(X.local().data, values.data(), X.local().size() * static_cast<Index>(sizeof(T)));
  return {values.begin(), values.end()};
}

void require_real(ScalarType type, const std::string& path) {
  if (type != ScalarType::f32 && type != ScalarType::f64)
    throw InputError(fmt::format("{}: its elements are {}, but must be real", path, name_of(type)));
}

}  // namespace

MatrixHeader read_table_header(Communicator& comm, const std::string& path) {
  const MatrixHeader header = read_matrix_header(comm, path);
  require_real(header.type, path);
  if (header.rows == 0 || header.cols == 0)
    throw InputError(fmt::format("{} has no elements: {} x {}", path, header.rows, header.cols));
  return header;
}

Table read_table(const std::shared_ptr<const ProcessGrid>& grid, const std::string& path) {
  const MatrixHeader header = read_table_header(grid->comm(), path);
  Table table{header.rows, header.cols,
              header.type == ScalarType::f32 ? read_whole<float>(grid, path, header)
                                             : read_whole<double>(grid, path, header)};
  return table;
}

std::vector<double> read_wavelet(const std::shared_ptr<const ProcessGrid>& grid, const std::string& path) {
  Table table = read_table(grid, path);
  if (std::min(table.rows, table.cols) != 1 || table.values.size() % 2 == 0)
    throw InputError(
        fmt::format("{} is {} x {}, but a wavelet is a vector of odd length, whose middle is time 0", path,
                    table.rows, table.cols));
  return std::move(table.values);
}

ArrayHeader read_own_header(Communicator& comm, const std::string& path, const char* option,
                            const std::vector<const char*>& dimensions) {
  const ArrayHeader header = read_array_header(comm, path);
  require_real(header.type, path);
  const bool is_empty = std::find(header.sizes.begin(), header.sizes.end(), 0) != header.sizes.end();
  if (header.sizes.size() != dimensions.size() || is_empty)
    throw InputError(fmt::format("{}: {} must be an array of {}, but is {}", path, option,
                                 fmt::join(dimensions, " x "), fmt::join(header.sizes, " x ")));
  return header;
}

}  // namespace gridlops::program
