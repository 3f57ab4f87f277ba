// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include <list>
#include <map>
#include <utility>
#include <vector>

#include "gridlops/base/types.hpp"

namespace gridlops::cuda {

class DeviceContext;
class EventPool;

/// An event that returns to its pool when it is destroyed. Move-only.
class PooledEvent {
 public:
  PooledEvent() = default;
  PooledEvent(EventPool& pool, cudaEvent_t event) : pool_(&pool), event_(event) {}
  PooledEvent(PooledEvent&& other) noexcept
      : pool_(other.pool_), event_(std::exchange(other.event_, nullptr)) {}
  PooledEvent& operator=(PooledEvent&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(event_, other.event_);
    return *this;
  }
  ~PooledEvent();

  cudaEvent_t get() const { return event_; }

 private:
  EventPool* pool_ = nullptr;
  cudaEvent_t event_ = nullptr;
};

/// Events that are made once and recorded many times.
class EventPool {
 public:
  EventPool() = default;
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  /// Records an event after all work given to the stream so far.
  PooledEvent record(cudaStream_t stream);
  void put_back(cudaEvent_t event) { free_.push_back(event); }

 private:
  std::vector<cudaEvent_t> free_;
};

class PinnedPool;

/// Page-locked host memory, through which data pass between host and device. When destroyed it returns to its
/// pool, which hands it out again once the device is done with it. Move-only.
class PinnedBlock {
 public:
  PinnedBlock() = default;
  PinnedBlock(PinnedBlock&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)),
        data_(other.data_),
        size_class_(other.size_class_),
        last_use_(std::move(other.last_use_)) {}
  PinnedBlock& operator=(PinnedBlock&& other) noexcept {
    PinnedBlock moved(std::move(other));
    std::swap(pool_, moved.pool_);
    std::swap(data_, moved.data_);
    std::swap(size_class_, moved.size_class_);
    std::swap(last_use_, moved.last_use_);
    return *this;
  }
  ~PinnedBlock();

  char* data() const { return data_; }
  /// Says that the device uses the memory until the event.
  void used_until(PooledEvent event) { last_use_ = std::move(event); }

 private:
  friend PinnedPool;
  PinnedPool* pool_ = nullptr;
  char* data_ = nullptr;
  int size_class_ = 0;
  PooledEvent last_use_;
};

/// Page-locked blocks whose sizes are powers of two. For each size the pool has as many as were ever needed
/// at once, and up to four more, which save waiting for the device.
class PinnedPool {
 public:
  explicit PinnedPool(DeviceContext& context) : context_(context) {}
  ~PinnedPool();
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  /// Returns a block of at least this many bytes. Throws OutOfMemory on this rank alone.
  PinnedBlock take(Index bytes);

 private:
  friend PinnedBlock;
  struct Free {
    char* data;
    PooledEvent last_use;
  };
  static constexpr std::size_t spare_blocks = 4;

  DeviceContext& context_;
  std::vector<std::list<Free>> free_ =
      std::vector<std::list<Free>>(64);  // by size class; least recently used first
};

/// The memory of a device, in the order of its streams. The process keeps released memory, so that allocating
/// it again costs nothing: in the device's memory pool or, on devices without one (some virtual GPUs), in
/// this object. This object gives memory only to the stream that released it, which orders the two uses. It
/// frees memory only when it runs short, since cudaFree() waits for the device.
class DeviceMemory {
 public:
  explicit DeviceMemory(DeviceContext& context) : context_(context) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Finds out whether the device has a pool. The device must be current. Call this before the first
  /// allocation.
  void look_for_pool(int device);

  /// Allocates memory for use in this stream, or after waiting for it. Returns null if there is not enough.
  void* allocate(Index bytes, cudaStream_t stream);
  void release(void* memory, cudaStream_t stream) noexcept;

 private:
  void* allocate_without_pool(Index bytes, cudaStream_t stream);
  void free_all();

  DeviceContext& context_;
  bool has_pool_ = true;
  std::map<void*, Index> sizes_;                                  // of memory without a pool, in use or not
  std::map<cudaStream_t, std::multimap<Index, void*>> released_;  // by size
};

}  // namespace gridlops::cuda
