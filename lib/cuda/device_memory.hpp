// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include <map>

#include "gridlops/types.hpp"

namespace gridlops::cuda {

class DeviceContext;

/// The memory of a device, in the order of its streams. What is released stays with the process, so that
/// taking it again costs nothing: in the device's memory pool, or, on devices that have none (some virtual
/// GPUs), here. Such memory is used again in the stream that released it, which orders the two uses, and
/// freed only when memory is short, since cudaFree() waits for the device.
class DeviceMemory {
 public:
  explicit DeviceMemory(DeviceContext& context) : context_(context) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// To be called when the device is current, before the first allocation.
  void look_for_pool(int device);

  /// Null if there is not enough. To be used in this stream, or after waiting for it.
  void* allocate(Index bytes, cudaStream_t stream);
  void release(void* memory, cudaStream_t stream) noexcept;

 private:
  void* allocate_without_pool(Index bytes, cudaStream_t stream);
  void free_all();

  DeviceContext& context_;
  bool has_pool_ = true;
  std::map<void*, Index> sizes_;                                  // of what has no pool, in use or not
  std::map<cudaStream_t, std::multimap<Index, void*>> released_;  // by size
};

}  // namespace gridlops::cuda
