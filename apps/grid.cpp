// SPDX-License-Identifier: BSD-3-Clause
#include "grid.hpp"

#include <array>
#include <chrono>
#include <thread>

#include "gridlops/gpu.hpp"
#include "gridlops/mpi.hpp"

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

/// As request.wait(), but leaves the processor to others.
void sleep_until_done(Request request) {
  while (!request.test()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace

std::shared_ptr<const ProcessGrid> make_grid(Communicator& world, std::optional<GridShape> shape,
                                             const std::string& device, const std::string& transport) {
  if (!shape) shape = near_square(world.size());
  if (device == "gpu") {
    const auto owner = std::make_shared<GpuGrid>(world, *shape, make_gpu_of_rank(world),
                                                 transport == "auto" ? "nccl" : transport);
    return {owner, &owner->grid};
  }
  return std::make_shared<const ProcessGrid>(*make_host_communicator(world, transport), *shape,
                                             make_host_backend());
}

std::shared_ptr<Backend> make_gpu_of_rank(Communicator& comm) {
  const int devices = gpu_info().devices, rank = rank_on_host(comm);
  return allocate_together(comm, [&] { return make_gpu_backend(devices > 0 ? rank % devices : 0); });
}

std::string transport_of(const ProcessGrid& grid) { return grid.is_member() ? grid.comm().transport() : ""; }

Algorithm resolve(Algorithm asked, const ProductShape& shape, const ProcessGrid& grid) {
  return asked == Algorithm::automatic ? choose_algorithm(shape, grid.shape(), with_shared_memory({}, grid))
                                       : asked;
}

void run_on_grid(Communicator& world, const ProcessGrid& grid, const std::function<void()>& work) {
  ExitStatus status = ExitStatus::done;
  std::string text;
  if (grid.is_member()) {
    try {
      work();
    } catch (const Error& error) {
      if (error.known_to() == KnownTo::one_rank) throw;
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
