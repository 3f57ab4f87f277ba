// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/comm/gpu.hpp"

#include <nccl.h>

#include "base/message.hpp"
#include "cuda/communicators/nccl_communicator.hpp"
#include "cuda/communicators/staged_communicator.hpp"
#include "cuda/gpu_backend.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

namespace {

GpuInfo ask_for_gpus() {
  GpuInfo info;
  info.is_built = true;
  info.transports = {"nccl", "mpi"};
  int runtime = 0, driver = 0, nccl = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  ncclGetVersion(&nccl);
  info.versions = message("CUDA ", runtime / 1000, ".", runtime % 1000 / 10, ", NCCL ", nccl / 10000, ".",
                          nccl / 100 % 100, ".", nccl % 100);
  // Without a driver the function does not write the count.
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) {
    info.devices = count;
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, 0) == cudaSuccess) info.model = properties.name;
  } else {
    info.problem =
        message(driver == 0 ? "there is no driver (" : "the driver finds none (", cudaGetErrorName(error),
                ": ", cudaGetErrorString(error), "); nvidia-smi tells more");
  }
  return info;
}

}  // namespace

GpuInfo gpu_info() {
  static const GpuInfo info = ask_for_gpus();
  return info;
}

std::unique_ptr<Communicator> make_gpu_communicator(Communicator& host,
                                                    const std::shared_ptr<Backend>& backend,
                                                    const std::string& transport) {
  const auto* gpu = dynamic_cast<const cuda::CudaBackend*>(backend.get());
  require<UsageError>(gpu != nullptr, "a communicator for GPUs needs the backend of one, not '",
                      backend->name(), "'; make_gpu_backend() makes it");
  const bool by_nccl = transport == "nccl" || transport == "auto";
  require<UsageError>(by_nccl || transport == "mpi", "transport '", transport,
                      "' does not carry data of GPUs; nccl and mpi do");
  std::unique_ptr<Communicator> own = host.split(0, host.rank());
  if (by_nccl)
    return std::make_unique<cuda::NcclCommunicator>(std::move(own), gpu->context(), cuda::usual_formation());
  if (cuda::mpi_takes_device_memory(*own, *backend))
    return std::make_unique<cuda::DirectCommunicator>(std::move(own), gpu->context(),
                                                      std::make_shared<Traffic>());
  return std::make_unique<cuda::StagedCommunicator>(std::move(own), gpu->context(),
                                                    std::make_shared<Traffic>());
}

}  // namespace gridlops
