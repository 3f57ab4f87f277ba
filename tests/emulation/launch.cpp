// SPDX-License-Identifier: BSD-3-Clause
#include "emulation/device.hpp"

#include <chrono>
#include <utility>

#include "emulation/report.hpp"

namespace emulation {

namespace {

using Clock = std::chrono::steady_clock;

struct SlowKernel {
  std::string name;
  std::chrono::duration<double> time;
};
SlowKernel slow;

/// The time that this kernel takes beyond its work.
std::chrono::duration<double> time_of(const std::string& name) {
  return name == slow.name ? std::exchange(slow, {}).time : std::chrono::duration<double>(0);
}

}  // namespace

void slow_kernel(const std::string& name, double seconds) {
  const Lock lock(device().mutex);
  slow = {name, std::chrono::duration<double>(seconds)};
}

// As with CUDA, this returns the last error, whichever call has left it.
cudaError_t launch(cudaStream_t stream, const char* name, const std::vector<Region>& regions,
                   std::function<void()> body) {
  if (enter(name)) {
    failed(cudaErrorUnknown);
    return cudaGetLastError();
  }
  Device& gpu = device();
  const Lock lock(gpu.mutex);
  ++running_ledger().kernels;
  for (const Region& region : regions)
    if (region.written && !gpu.memory.is_device(region.begin))
      running_ledger().bytes_to_host += static_cast<long>(region.width * region.count);
  gpu.enqueue({stream}, std::string("kernel ") + name, regions,
              [body = std::move(body), time = time_of(name), begin = Clock::time_point()]() mutable {
                if (begin == Clock::time_point()) begin = Clock::now();
                if (Clock::now() - begin < time) return false;
                body();
                return true;
              });
  return cudaGetLastError();
}

}  // namespace emulation
