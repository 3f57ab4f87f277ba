// SPDX-License-Identifier: BSD-3-Clause
#include "gpu_grid.hpp"

#include "gridlops/gpu.hpp"
#include "members.hpp"

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

}  // namespace

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

}  // namespace gridlops::program
