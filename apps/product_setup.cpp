// SPDX-License-Identifier: BSD-3-Clause
#include "product_setup.hpp"

#include <fmt/format.h>

#include "gridlops/error.hpp"

namespace gridlops::program {

std::shared_ptr<const ProcessGrid> make_grid(Communicator& world, const ProductArguments& arguments) {
  if (arguments.transport != "auto" && arguments.transport != world.transport()) {
    throw UsageError(fmt::format("transport '{}' is not part of this build; it has {}", arguments.transport,
                                 world.transport()));
  }
  const std::shared_ptr<Backend> backend =
      arguments.device == "gpu" ? make_gpu_backend(0) : make_host_backend();
  return std::make_shared<const ProcessGrid>(world, arguments.grid.value_or(near_square(world.size())),
                                             backend);
}

Algorithm resolve(Algorithm asked, const ProductShape& shape, GridShape grid) {
  return asked == Algorithm::automatic ? choose_algorithm(shape, grid) : asked;
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
}

}  // namespace gridlops::program
