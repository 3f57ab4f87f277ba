// SPDX-License-Identifier: BSD-3-Clause
#include "product_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>

#include "gridlops/gpu.hpp"

namespace gridlops::program {

namespace {

/// As request.wait(), but leaves the processor to others.
void sleep_until_done(Request request) {
  while (!request.test()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

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
  if (arguments.transport != "auto" && arguments.transport != world.transport()) {
    throw UsageError(fmt::format("transport '{}' is not part of this build; it has {}", arguments.transport,
                                 world.transport()));
  }
  return std::make_shared<const ProcessGrid>(world, shape, make_host_backend());
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

void run_on_members(Communicator& world, const ProcessGrid& grid, const std::function<void()>& work) {
  ExitStatus status = ExitStatus::done;
  std::string text;
  if (grid.is_member()) {
    try {
      work();
    } catch (const CommunicationError&) {
      throw;
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& error) {
      status = error.status();
      text = error.what();
    }
  }
  std::array<std::int32_t, 1> outcome{static_cast<std::int32_t>(status)};
  sleep_until_done(world.start_broadcast(outcome, 0));
  status = static_cast<ExitStatus>(outcome[0]);
  if (status != ExitStatus::done) throw Error(status, broadcast_text(world, text, 0));
}

}  // namespace gridlops::program
