// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/device_memory.hpp"

#include <cstdint>

#include "cuda/check.hpp"
#include "cuda/device_context.hpp"

namespace gridlops::cuda {

// The device is idle by now, or has failed; then what it may still use stays.
DeviceMemory::~DeviceMemory() {
  if (!context_.has_failed()) free_all();
}

void DeviceMemory::look_for_pool(int device) {
  int is_supported = 0;
  check(cudaDeviceGetAttribute(&is_supported, cudaDevAttrMemoryPoolsSupported, device),
        "cudaDeviceGetAttribute");
  has_pool_ = is_supported != 0;
  if (!has_pool_) return;
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, device), "cudaDeviceGetDefaultMemPool");
  std::uint64_t everything = ~std::uint64_t{0};
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &everything),
        "cudaMemPoolSetAttribute");
}

void* DeviceMemory::allocate(Index bytes, cudaStream_t stream) {
  context_.make_current();
  if (!has_pool_) return allocate_without_pool(bytes, stream);
  void* memory = nullptr;
  const cudaError_t status = cudaMallocAsync(&memory, static_cast<std::size_t>(bytes), stream);
  return is_enough_memory(status, "cudaMallocAsync", bytes) ? memory : nullptr;
}

// What is more than twice as large as needed is left for others.
void* DeviceMemory::allocate_without_pool(Index bytes, cudaStream_t stream) {
  std::multimap<Index, void*>& released = released_[stream];
  if (const auto found = released.lower_bound(bytes); found != released.end() && found->first / 2 <= bytes) {
    void* const memory = found->second;
    released.erase(found);
    return memory;
  }
  void* memory = nullptr;
  const auto is_allocated = [&] {
    return is_enough_memory(cudaMalloc(&memory, static_cast<std::size_t>(bytes)), "cudaMalloc", bytes);
  };
  if (!is_allocated()) {
    context_.await_all();
    free_all();
    if (!is_allocated()) return nullptr;
  }
  sizes_[memory] = bytes;
  return memory;
}

void DeviceMemory::release(void* memory, cudaStream_t stream) noexcept {
  if (memory == nullptr || context_.has_failed()) return;
  if (const auto found = sizes_.find(memory); found != sizes_.end()) {
    released_[stream].emplace(found->second, memory);
  } else if (cudaSetDevice(context_.device()) == cudaSuccess) {
    cudaFreeAsync(memory, stream);
  }
}

void DeviceMemory::free_all() {
  for (auto& [stream, released] : released_) {
    for (const auto& [size, memory] : released) {
      cudaFree(memory);
      sizes_.erase(memory);
    }
    released.clear();
  }
}

}  // namespace gridlops::cuda
