// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/device_memory.hpp"

#include <cstdint>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "cuda/device_context.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops::cuda {

PooledEvent::~PooledEvent() {
  if (event_ != nullptr) pool_->put_back(event_);
}

EventPool::~EventPool() {
  for (const cudaEvent_t event : free_) cudaEventDestroy(event);
}

PooledEvent EventPool::record(cudaStream_t stream) {
  if (free_.empty()) {
    cudaEvent_t made = nullptr;
    check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    free_.push_back(made);
  }
  PooledEvent event(*this, free_.back());
  free_.pop_back();
  check(cudaEventRecord(event.get(), stream), "cudaEventRecord");
  return event;
}

PinnedBlock::~PinnedBlock() {
  if (pool_ == nullptr) return;
  pool_->free_[at(size_class_)].push_back({data_, std::move(last_use_)});
}

// By now the device is idle, or has failed. After a failure it may still write to the memory, which is then
// leaked.
PinnedPool::~PinnedPool() {
  if (context_.has_failed()) return;
  for (const auto& blocks : free_)
    for (const Free& block : blocks) cudaFreeHost(block.data);
}

PinnedBlock PinnedPool::take(Index bytes) {
  constexpr int smallest = 12;  // 4 KiB
  int size_class = smallest;
  while ((Index{1} << size_class) < bytes) ++size_class;
  std::list<Free>& free = free_[at(size_class)];
  PinnedBlock block;
  const auto is_ready = [&] {
    return free.front().last_use.get() == nullptr || context_.is_reached(free.front().last_use.get());
  };
  if (!free.empty() && (is_ready() || free.size() >= spare_blocks)) {
    if (const cudaEvent_t last_use = free.front().last_use.get(); last_use != nullptr)
      context_.wait(last_use);
    block.data_ = free.front().data;
    free.pop_front();
  } else {
    void* memory = nullptr;
    const Index size = Index{1} << size_class;
    require<OutOfMemory>(
        is_enough_memory(cudaMallocHost(&memory, static_cast<std::size_t>(size)), "cudaMallocHost", size),
        "no ", size,
        " bytes of page-locked host memory are left, through which data reach the GPU; use fewer ranks on "
        "this node");
    block.data_ = static_cast<char*>(memory);
  }
  block.pool_ = this;
  block.size_class_ = size_class;
  return block;
}

// By now the device is idle, or has failed. After a failure it may still use the memory, which is then
// leaked.
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

// Leaves memory more than twice as large as needed for larger requests.
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
