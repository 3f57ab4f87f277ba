// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda/device_memory.hpp"
#include "gridlops/types.hpp"

namespace gridlops::cuda {

// A call that fails does so on this rank alone, as far as anybody knows: the errors are known to one rank.

/// Throws Error with the call, its size where it has one, and the vendor's text unless the status is success.
/// CUDA keeps the last error until it is asked for, and the next launch would report it again; it is not kept
/// after this.
void check(cudaError_t status, const char* call, Index bytes = -1);
/// The same, but a lack of memory only makes it false.
bool is_enough_memory(cudaError_t status, const char* call, Index bytes);
void check(cublasStatus_t status, const char* call);

/// What all backends and communicators of a device share: its two streams. Products and kernels run in
/// one; in the other, of high priority, all communication of this process, so that every rank's collectives
/// run in the order of its program. Operations of one that need results of the other wait for events, on the
/// device.
class DeviceContext {
 public:
  /// The one of this device: made at the first call, and again when nobody uses it any more. Throws Error if
  /// the device cannot be used.
  static std::shared_ptr<DeviceContext> of(int device);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  int device() const { return device_; }
  /// Makes the device the calling thread's: to be called wherever a thread comes in from outside.
  void make_current() const;

  cudaStream_t compute() const { return compute_.get(); }
  cudaStream_t communication() const { return communication_.get(); }
  PinnedPool& pinned() { return pinned_; }
  DeviceMemory& memory() { return memory_; }

  /// What is begun in the communication stream from now on sees what was begun in the compute stream before.
  void communication_follows_compute();
  /// Its end is the event, once that is recorded, and the work that it follows is what the communication
  /// stream was last made to follow: so that wait() can tell what the device is waiting for.
  void communicates_until(const std::shared_ptr<PooledEvent>& end);
  /// The place in the communication stream that has been reached now.
  PooledEvent communication_so_far();
  /// What is begun in the compute stream from now on comes after the event.
  void compute_follows(cudaEvent_t event);

  /// NCCL's calls up to the end of the group are one operation.
  void open_group();
  void close_group();
  void abandon_group() noexcept;
  bool is_group_open() const { return group_is_open_; }
  /// Which group is open, or was last.
  Index group_number() const { return group_number_; }
  /// For what follows NCCL's calls in the communication stream: does it now, or at the end of the open group.
  void after_group(std::function<void()> step);

  /// Waits for the event on the host. Meanwhile the communicators are asked for errors: if one has failed, or
  /// one communication of the device takes longer than GRIDLOPS_TIMEOUT seconds (600), all are aborted, and
  /// CommunicationError is thrown. The time of the rank's own work does not count.
  void wait(cudaEvent_t event);
  bool is_reached(cudaEvent_t event);
  void synchronize();
  /// Waits for both streams.
  void await_all();

  /// The result of a call of NCCL when it is over: where NCCL_COMM_BLOCKING=0 it goes on in the background,
  /// and nothing may be asked of its communicators, nor follow it in a stream, before.
  ncclResult_t settled(ncclResult_t result);

  EventPool& events() { return events_; }

  /// Communicators whose errors to watch for.
  void watch(ncclComm_t comm) { communicators_.push_back(comm); }
  void forget(ncclComm_t comm);
  /// Aborts all communicators, so that no peer waits for this rank, and throws CommunicationError.
  [[noreturn]] void fail(const std::string& what);
  /// Nothing that was begun is sure to end; what the device may still use stays allocated.
  bool has_failed() const { return has_failed_; }

  /// Of messages that are staged through the host: how many bytes are copied while others travel.
  Index staging_chunk_bytes = Index{4} << 20;

 private:
  struct DestroyStream {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  };
  using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;
  static Stream make_stream(int priority);

  /// Of the device, from the work that it follows to its end.
  struct Communication {
    std::shared_ptr<PooledEvent> begin, end;
  };

  explicit DeviceContext(int device);
  /// Throws if one of them has failed; true while NCCL goes on in the background for one.
  bool check_communicators();
  bool is_over(const Communication& communication);
  /// Which communication, counted from the first, the device is waiting for other ranks in; 0: in none.
  Index communication_under_way();
  [[noreturn]] void fail_for_waiting();

  int device_;
  EventPool events_;
  Stream compute_, communication_;
  PinnedPool pinned_;
  DeviceMemory memory_;
  std::shared_ptr<PooledEvent> followed_;     // in the compute stream, by the communication stream
  std::deque<Communication> communications_;  // that were not seen to be over
  Index communications_over_ = 0;
  std::vector<ncclComm_t> communicators_;
  bool group_is_open_ = false;
  Index group_number_ = 0;
  std::vector<std::function<void()>> after_group_;
  double timeout_seconds_;
  bool has_failed_ = false;
};

}  // namespace gridlops::cuda
