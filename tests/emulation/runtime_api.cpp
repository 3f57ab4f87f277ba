// SPDX-License-Identifier: BSD-3-Clause
// Implements the functions of the CUDA runtime and of NVTX.
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "emulation/device.hpp"
#include "emulation/report.hpp"

using emulation::Allocation;
using emulation::Detector;
using emulation::Device;
using emulation::device;
using emulation::failed;
using emulation::Lock;

namespace {

thread_local cudaError_t last_error = cudaSuccess;

std::size_t hash_of(const void* data, std::size_t bytes) {
  return std::hash<std::string_view>()({static_cast<const char*>(data), bytes});
}

/// Ends the allocation. Whatever uses it must be ordered before this point.
cudaError_t free_memory(void* memory, cudaStream_t stream, const char* function) {
  Device& gpu = device();
  const Lock lock(gpu.mutex);
  Allocation* allocation = gpu.memory.find(memory);
  if (allocation == nullptr || allocation->begin != memory || allocation->freed) {
    emulation::violation(Detector::ranges, function, " of ", memory, ", which is ",
                         allocation == nullptr ? "no allocation" : allocation->name());
    return failed(cudaErrorInvalidValue);
  }
  if (allocation->on_device) emulation::require_current(allocation->device, function, ": memory");
  gpu.memory.make_room(*allocation);
  const auto release = [&gpu, allocation] {
    gpu.memory.free(*allocation);
    return true;
  };
  if (stream != nullptr) {
    gpu.enqueue({stream}, function, {emulation::writes(memory, allocation->size)}, release);
    allocation->freed = true;  // for all later operations, however late the stream gets there
  } else {
    for (const emulation::Access& access : allocation->accesses)
      if (!gpu.host.includes(access.stream, access.tick))
        emulation::violation(Detector::races, function, " of ", allocation->name(), ", which '",
                             *access.label, "' may still use");
    release();
  }
  return cudaSuccess;
}

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
  bool to_device, from_device;
};

void count(const Copy& copy) {
  emulation::Ledger& ledger = emulation::running_ledger();
  const auto bytes = static_cast<long>(copy.bytes);
  if (copy.from_device && !copy.to_device) ++ledger.copies_to_host, ledger.bytes_to_host += bytes;
  if (copy.to_device && !copy.from_device) ++ledger.copies_to_device, ledger.bytes_to_device += bytes;
}

/// The source in host memory must not change until the copy is made. A target holds NaN until then.
void enqueue_copy(const Copy& copy, cudaStream_t stream) {
  Device& gpu = device();
  const bool check_source = !copy.from_device && emulation::is_on(Detector::copies);
  const std::size_t hash =
      check_source && gpu.memory.find(copy.from) != nullptr ? hash_of(copy.from, copy.bytes) : 0;
  const char* label = copy.to_device ? (copy.from_device ? "copy on the device" : "copy to the device")
                                     : (copy.from_device ? "copy to the host" : "copy on the host");
  const auto move = [copy, hash, &gpu] {
    const void* from = gpu.memory.alias(copy.from);
    if (hash != 0 && hash_of(from, copy.bytes) != hash)
      emulation::violation(Detector::copies, "the host changed the source of an asynchronous copy of ",
                           copy.bytes, " bytes before it was made");
    std::memmove(gpu.memory.alias(copy.to), from, copy.bytes);
    return true;
  };
  gpu.enqueue({stream}, label,
              {emulation::reads(copy.from, copy.bytes), emulation::writes(copy.to, copy.bytes)}, move);
  if (!copy.to_device && emulation::is_on(Detector::copies) && gpu.memory.find(copy.to) != nullptr)
    emulation::Memory::poison(copy.to, copy.bytes);
}

/// Whether devices have memory pools. Some virtual GPUs have none.
bool has_memory_pools() { return emulation::setting("GRIDLOPS_EMULATION_POOLS", 1) != 0; }

/// Null if there is not enough memory.
void* allocate_on_device(std::size_t bytes) {
  void* memory = device().memory.allocate(bytes, true);
  if (memory != nullptr) ++emulation::running_ledger().allocations;
  return memory;
}

}  // namespace

cudaError_t emulation::failed(cudaError_t error) { return last_error = error; }

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (emulation::enter("cudaGetDeviceCount")) return failed(cudaErrorInsufficientDriver);
  *count = emulation::device_count();
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "emulated");
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int number) {
  if (emulation::enter("cudaSetDevice")) return failed(cudaErrorUnknown);
  if (number < 0 || number >= emulation::device_count()) return failed(cudaErrorInvalidDevice);
  emulation::current_device() = number;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  if (emulation::enter("cudaDeviceGetAttribute")) return failed(cudaErrorUnknown);
  *value = attribute == cudaDevAttrMultiProcessorCount      ? 4
           : attribute == cudaDevAttrComputeCapabilityMajor ? 9
           : attribute == cudaDevAttrMemoryPoolsSupported   ? (has_memory_pools() ? 1 : 0)
                                                            : 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "cudaErrorEmulated";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory"
         : error == cudaSuccess             ? "no error"
                                            : "emulated error";
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  if (emulation::enter("cudaDeviceGetDefaultMemPool")) return failed(cudaErrorUnknown);
  if (!has_memory_pools()) return failed(cudaErrorNotSupported);
  *pool = nullptr;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return emulation::enter("cudaMemPoolSetAttribute") ? failed(cudaErrorUnknown) : cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (emulation::enter("cudaMalloc")) return failed(cudaErrorMemoryAllocation);
  const Lock lock(device().mutex);
  *memory = allocate_on_device(bytes);
  return *memory == nullptr ? failed(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (emulation::enter("cudaFree")) return failed(cudaErrorUnknown);
  return free_memory(memory, nullptr, "cudaFree");
}

cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream) {
  if (emulation::enter("cudaMallocAsync")) return failed(cudaErrorMemoryAllocation);
  if (!has_memory_pools()) return failed(cudaErrorNotSupported);
  Device& gpu = device();
  const Lock lock(gpu.mutex);
  *memory = allocate_on_device(bytes);
  if (*memory == nullptr) return failed(cudaErrorMemoryAllocation);
  // In another stream it is there only after this point.
  gpu.enqueue({stream}, "cudaMallocAsync", {emulation::writes(*memory, bytes)}, [] { return true; });
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  if (emulation::enter("cudaFreeAsync")) return failed(cudaErrorUnknown);
  if (!has_memory_pools()) return failed(cudaErrorNotSupported);
  return free_memory(memory, stream, "cudaFreeAsync");
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  if (emulation::enter("cudaMallocHost")) return failed(cudaErrorMemoryAllocation);
  const Lock lock(device().mutex);
  *memory = device().memory.allocate(bytes, false);
  return *memory == nullptr ? failed(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  if (emulation::enter("cudaFreeHost")) return failed(cudaErrorUnknown);
  return free_memory(memory, nullptr, "cudaFreeHost");
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  if (emulation::enter("cudaPointerGetAttributes")) return failed(cudaErrorUnknown);
  const Lock lock(device().mutex);
  const Allocation* allocation = device().memory.find(memory);
  attributes->type = allocation == nullptr   ? cudaMemoryTypeUnregistered
                     : allocation->on_device ? cudaMemoryTypeDevice
                                             : cudaMemoryTypeHost;
  attributes->device = allocation == nullptr ? 0 : allocation->device;
  attributes->devicePointer = attributes->hostPointer = const_cast<void*>(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (emulation::enter("cudaMemcpyAsync")) return failed(cudaErrorUnknown);
  Device& gpu = device();
  const Lock lock(gpu.mutex);
  const Copy copy{to, from, bytes, gpu.memory.is_device(to), gpu.memory.is_device(from)};
  const bool as_named =
      kind == cudaMemcpyDefault ||
      (copy.to_device == (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) &&
       copy.from_device == (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice));
  if (!as_named) return failed(cudaErrorInvalidValue);
  count(copy);
  enqueue_copy(copy, stream);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  if (emulation::enter("cudaMemsetAsync")) return failed(cudaErrorUnknown);
  Device& gpu = device();
  gpu.enqueue({stream}, "cudaMemsetAsync", {emulation::writes(memory, bytes)}, [=, &gpu] {
    std::memset(gpu.memory.alias(memory), value, bytes);
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (emulation::enter("cudaDeviceGetStreamPriorityRange")) return failed(cudaErrorUnknown);
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  if (emulation::enter("cudaStreamCreateWithPriority")) return failed(cudaErrorUnknown);
  *stream = device().make_stream();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (emulation::enter("cudaStreamDestroy")) return failed(cudaErrorUnknown);
  device().destroy(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (emulation::enter("cudaStreamSynchronize")) return failed(cudaErrorUnknown);
  device().wait_for(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (emulation::enter("cudaStreamWaitEvent")) return failed(cudaErrorUnknown);
  device().make_wait(stream, event);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (emulation::enter("cudaEventCreateWithFlags")) return failed(cudaErrorUnknown);
  const Lock lock(device().mutex);
  *event = new CUevent_st;
  (*event)->device = emulation::current_device();
  (*event)->keeps_time = (flags & cudaEventDisableTiming) == 0;
  device().events.insert(*event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (emulation::enter("cudaEventDestroy")) return failed(cudaErrorUnknown);
  const Lock lock(device().mutex);
  if (device().events.erase(event) == 0) return failed(cudaErrorInvalidValue);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (emulation::enter("cudaEventRecord")) return failed(cudaErrorUnknown);
  device().record(event, stream);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (emulation::enter("cudaEventQuery")) return failed(cudaErrorUnknown);
  return device().is_reached(event) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (emulation::enter("cudaEventSynchronize")) return failed(cudaErrorUnknown);
  device().wait_for(event);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (emulation::enter("cudaEventElapsedTime")) return failed(cudaErrorUnknown);
  const Lock lock(device().mutex);
  for (const cudaEvent_t event : {begin, end}) {
    if (event->time == nullptr) return failed(cudaErrorInvalidResourceHandle);
    if (!event->last->done) return failed(cudaErrorNotReady);
  }
  *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *begin->time).count();
  return cudaSuccess;
}

int nvtxRangePushA(const char*) {
  emulation::enter("nvtxRangePushA");
  const Lock lock(device().mutex);
  return device().profiler_ranges++;
}
int nvtxRangePop() {
  emulation::enter("nvtxRangePop");
  const Lock lock(device().mutex);
  if (device().profiler_ranges == 0) emulation::end_with_report("nvtxRangePop: no range is open");
  return --device().profiler_ranges;
}

}  // extern "C"
