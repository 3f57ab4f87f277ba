// SPDX-License-Identifier: BSD-3-Clause
#include "command_line/station_order.hpp"

#include <fmt/format.h>

#include "command_line/finite_checks.hpp"
#include "command_line/grid.hpp"
#include "gridlops/compressed/spatial_order.hpp"
#include "gridlops/io/array_file.hpp"

namespace gridlops::program {

std::vector<Index> station_order(Communicator& world, const std::string& file, const std::string& matrix,
                                 Index count, const char* lines) {
  if (file.empty()) return {};
  const MatrixHeader header = read_matrix_header(world, file);
  if (header.rows != count || header.cols < 1 || header.cols > 3) {
    throw InputError(
        fmt::format("{} is {} x {}, but {} has {} {}, each of which needs one, two or three "
                    "coordinates in a row of their own",
                    file, header.rows, header.cols, matrix, count, lines));
  }
  const auto grid = make_grid(world, GridShape{1, world.size()});
  DistMatrix<double> positions = allocate_matrix<double>(grid, replicated(header.rows, header.cols));
  read_matrix(file, header, positions);
  require_finite(file, ConstDistMatrix<double>(positions));
  std::vector<double> points;
  for (Index point = 0; point < header.rows; ++point)
    for (Index axis = 0; axis < header.cols; ++axis) points.push_back(positions.local()(point, axis));
  return hilbert_order(points.data(), header.rows, static_cast<int>(header.cols));
}

}  // namespace gridlops::program
