// SPDX-License-Identifier: BSD-3-Clause
#include "product_setup.hpp"

#include <fmt/format.h>

#include "gridlops/error.hpp"

#include "gridlops/gpu.hpp"
#include "host_grid.hpp"

namespace gridlops::program {

namespace {

/// A grid on GPUs, with the communicator that its own were split off from.
struct GpuGrid {
  GpuGrid(Communicator& world, GridShape shape, const std::shared_ptr<Backend>& backend,
          const std::string& transport)
      : comm(make_gpu_communicator(world, backend, transport)), grid(*comm, shape, backend) {}

  std::unique_ptr<Communicator> comm;
  ProcessGrid grid;
};

std::shared_ptr<const ProcessGrid> make_gpu_grid(Communicator& world, GridShape shape,
                                                 const std::string& transport) {
  const GpuInfo gpus = gpu_info();
  const int rank = rank_on_host(world);
  const std::shared_ptr<Backend> backend =
      allocate_together(world, [&] { return make_gpu_backend(gpus.devices > 0 ? rank % gpus.devices : 0); });
  const auto owner =
      std::make_shared<GpuGrid>(world, shape, backend, transport == "auto" ? "nccl" : transport);
  return {owner, &owner->grid};
}

}  // namespace

std::shared_ptr<const ProcessGrid> make_grid(Communicator& world, const ProductArguments& arguments) {
  const GridShape shape = arguments.grid.value_or(near_square(world.size()));
  if (arguments.device == "gpu") return make_gpu_grid(world, shape, arguments.transport);
  return make_host_grid(world, shape, arguments.transport);
}

std::string transport_of(const ProcessGrid& grid) { return grid.is_member() ? grid.comm().transport() : ""; }

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
