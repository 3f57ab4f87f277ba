// SPDX-License-Identifier: BSD-3-Clause
#include "product_setup.hpp"

#include <fmt/format.h>

#include "gpu_grid.hpp"
#include "gridlops/error.hpp"
#include "host_grid.hpp"

namespace gridlops::program {

std::shared_ptr<const ProcessGrid> make_grid(Communicator& world, const ProductArguments& arguments) {
  const GridShape shape = arguments.grid.value_or(near_square(world.size()));
  if (arguments.device == "gpu") return make_gpu_grid(world, shape, arguments.transport);
  return make_host_grid(world, shape, arguments.transport);
}

std::string transport_of(const ProcessGrid& grid) { return grid.is_member() ? grid.comm().transport() : ""; }

Algorithm resolve(Algorithm asked, const ProductShape& shape, const ProcessGrid& grid) {
  return asked == Algorithm::automatic ? choose_algorithm(shape, grid.shape(), machine_model(grid)) : asked;
}

void check_operand(const std::string& matrix_path, const NpyHeader& matrix, const std::string& path,
                   const NpyHeader& header, Fit fit) {
  if (header.type != matrix.type) {
    throw InputError(
        fmt::format("{} has elements of type {}, but {} of {}; convert one of them, with NumPy say", path,
                    name_of(header.type), matrix_path, name_of(matrix.type)));
  }
  if (header.rows != fit.rows) {
    throw InputError(fmt::format("{} is {} x {}, but {} is {} x {}: it needs one row for each of the {} {}",
                                 path, header.rows, header.cols, matrix_path, matrix.rows, matrix.cols,
                                 fit.rows, fit.dimension));
  }
  for (const Index rows : {matrix.rows, matrix.cols}) {
    if (fits_npy(rows, header.cols, header.type)) continue;
    throw InputError(fmt::format(
        "{} is {} x {} and {} {} x {}: the result, {} x {}, is larger than any file can be", matrix_path,
        matrix.rows, matrix.cols, path, header.rows, header.cols, rows, header.cols));
  }
}

}  // namespace gridlops::program
