// SPDX-License-Identifier: BSD-3-Clause
#include "emulation/launch.hpp"

#include <utility>

#include "emulation/report.hpp"

namespace emulation {

cudaError_t launch(cudaStream_t stream, const char* name, const std::vector<Region>& regions,
                   std::function<void()> body) {
  if (enter(name)) return cudaErrorUnknown;
  Device& gpu = device();
  const Lock lock(gpu.mutex);
  ++running_ledger().kernels;
  gpu.enqueue({stream}, text_of("kernel ", name), regions, [body = std::move(body)] {
    body();
    return true;
  });
  return cudaSuccess;
}

}  // namespace emulation
