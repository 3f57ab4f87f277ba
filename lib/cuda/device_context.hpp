// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cufftXt.h>
#include <nccl.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/at_work.hpp"
#include "comm/failure/watched_wait.hpp"
#include "cuda/device_memory.hpp"
#include "cuda/device_timeline.hpp"
#include "gridlops/base/types.hpp"

namespace gridlops::cuda {

// A call may have failed on this rank alone, so only one rank knows these errors.

/// Unless the status is success, throws Error with the call, its size if it has one, and the vendor's text.
/// Also clears CUDA's last error, which the next launch would otherwise report again.
void check(cudaError_t status, const char* call, Index bytes = -1);
/// Checks the status of a call that takes memory, but returns false if there is not enough.
bool is_enough_memory(cudaError_t status, const char* call, Index bytes);
void check(cublasStatus_t status, const char* call);
void check(cufftResult status, const char* call);

/// Makes a call of NCCL, which may block the host until other ranks make theirs, or for ever. Meanwhile a
/// thread waits for the ranks (Watchdog). The library makes such calls in no other way
/// (tests/rules/waits.py).
template <class Call, class... Arguments>
ncclResult_t run_watched(Call&& call, const Arguments&... arguments) {
  const InForeignCall away;
  return call(arguments...);
}

/// The state that all backends and communicators of a device share. Products and kernels run in the compute
/// stream. All communication of this process runs in the communication stream, which has a higher priority,
/// so that every rank's collectives run in program order. If one stream needs results of the other, it waits
/// for an event, on the device. Reasons: docs/decisions/0051-first-gpu.md.
class DeviceContext {
 public:
  /// The context of this device. Made at the first call, and again after its last user has released it.
  /// Throws Error if the device cannot be used.
  static std::shared_ptr<DeviceContext> of(int device);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  int device() const { return device_; }
  /// Makes the device current in the calling thread. Every function that a user of the library may call does
  /// this first.
  void make_current() const;

  cudaStream_t compute() const { return compute_.get(); }
  cudaStream_t communication() const { return communication_.get(); }
  PinnedPool& pinned() { return pinned_; }
  DeviceMemory& memory() { return memory_; }

  /// Makes the communication stream wait, from now on, for the work already given to the compute stream.
  void communication_follows_compute();
  /// Registers a communication, so that wait() can tell what the device waits for. It begins after the work
  /// that the communication stream was last made to follow, and ends at the event, once that is recorded.
  void communicates_until(const std::shared_ptr<PooledEvent>& end);
  /// Records an event after all work given to the communication stream so far.
  PooledEvent communication_so_far();
  /// Makes the compute stream wait for the event from now on.
  void compute_follows(cudaEvent_t event);

  /// All NCCL calls between opening and closing a group go out together.
  void open_group();
  void close_group();
  void abandon_group() noexcept;
  bool is_group_open() const { return group_is_open_; }
  /// The number of the open group, or of the last one.
  Index group_number() const { return group_number_; }
  /// Begins (ends) a group of NCCL's within a single operation, or within the open group.
  ncclResult_t begin_calls();
  ncclResult_t end_calls();
  /// Calls step(), which follows NCCL's calls in the communication stream, now or at the end of the open
  /// group.
  void after_group(std::function<void()> step);

  /// Waits for the event on the host, and meanwhile checks the communicators for errors. If one of them has
  /// failed, or the ranks wait in vain (WatchedWait), it aborts all of them and throws CommunicationError.
  /// The time of the rank's own work does not count as waiting. Returns as soon as arrived() returns true,
  /// even before the event. It is called often, and must not throw.
  void wait(cudaEvent_t event, const std::function<bool()>& arrived = {});
  bool is_reached(cudaEvent_t event);
  void synchronize();
  /// Waits for both streams.
  void await_all();

  /// Waits until an NCCL call completes, and returns its result. With NCCL_COMM_BLOCKING=0 a call goes on in
  /// the background. Until it completes, its communicators accept no other call, and nothing may follow it in
  /// a stream.
  ncclResult_t settled(ncclResult_t result);

  EventPool& events() { return events_; }
  DeviceTimeline& timeline() { return timeline_; }

  /// Adds a communicator that wait() checks for errors, and returns its number: NCCL may give its address to
  /// a later one.
  Index watch(ncclComm_t comm);
  /// Whether that communicator has not ended.
  bool is_watched(Index number) const { return communicators_.contains(number); }
  /// Ends a communicator after its last operation (collective over its ranks). While an exception unwinds
  /// the stack, or the ranks are out of step, the others need not take part. If an operation of any
  /// communicator remains in progress then, all of them end.
  void end(Index number) noexcept;
  /// Aborts all communicators, so that no other rank waits for this one, and throws CommunicationError.
  [[noreturn]] void fail(const std::string& what);
  /// Whether fail() was called. Work in progress may then never end, so memory that the device may use stays
  /// allocated.
  bool has_failed() const { return has_failed_; }

  /// The bytes of a chunk of a message staged through the host: one chunk is copied while another travels.
  Index staging_chunk_bytes = Index{4} << 20;

 private:
  struct DestroyStream {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  };
  using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;
  static Stream make_stream(int priority);

  /// A communication of the device: the end of the work that it follows, and its own end.
  struct Communication {
    std::shared_ptr<PooledEvent> begin, end;
  };

  explicit DeviceContext(int device);
  /// Throws if a communicator has failed. Returns true while NCCL works in the background for one.
  bool check_communicators();
  bool is_over(const Communication& communication);
  /// The number, from 1, of the communication in which the device waits for other ranks; 0 if it does not
  /// wait.
  Index communication_under_way();
  void look(WatchedWait& wait);
  /// Whether the communication stream has nothing to do, now or soon.
  bool comes_to_rest() noexcept;
  void abort_communicators() noexcept;

  int device_;
  EventPool events_;
  Stream compute_, communication_;
  PinnedPool pinned_;
  DeviceMemory memory_;
  std::shared_ptr<PooledEvent> followed_;     // in the compute stream; the communication stream waits for it
  std::deque<Communication> communications_;  // not yet seen to be complete
  Index communications_over_ = 0;
  std::map<Index, ncclComm_t> communicators_;  // by number
  Index communicators_so_far_ = 0;
  int groups_ = 0;  // of NCCL that are open, one within the other
  bool group_is_open_ = false;
  Index group_number_ = 0;
  std::vector<std::function<void()>> after_group_;
  bool has_failed_ = false;
  DeviceTimeline timeline_;
};

}  // namespace gridlops::cuda
