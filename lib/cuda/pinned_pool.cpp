// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/pinned_pool.hpp"

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "cuda/check.hpp"
#include "cuda/device_context.hpp"
#include "gridlops/error.hpp"

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

// The device is idle by now, or has failed; then what it may still write to stays.
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

}  // namespace gridlops::cuda
