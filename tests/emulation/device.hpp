// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include "emulation/memory.hpp"
#include "emulation/report.hpp"

namespace emulation {

using Lock = std::unique_lock<std::recursive_mutex>;

/// Work in one or more streams. It begins when it is at the front of all of them and all that it waits for is
/// done. It is over when step() says so.
struct Operation {
  Label label;
  std::vector<cudaStream_t> streams;
  std::vector<std::shared_ptr<Operation>> after;
  std::function<bool()> step;
  std::function<std::string()> state = [] { return std::string(); };
  std::function<bool()> may_hang = [] { return true; };  ///< whether waiting for ever is a fault
  bool exclusive = false;  ///< for NCCL: in one mode of the emulation no two of these run at a time
  bool running = false, done = false;
  std::chrono::steady_clock::time_point begin;
};
using OperationPtr = std::shared_ptr<Operation>;

}  // namespace emulation

struct CUstream_st {
  int number = 0;
  int device = 0;
  std::deque<emulation::OperationPtr> queue;
  emulation::Moment moment;  ///< what is ordered before the next operation
  long tick = 0;
  bool destroyed = false;
};

struct CUevent_st {
  int device = 0;
  emulation::Moment moment;
  emulation::OperationPtr last;  ///< null where nothing was left to wait for
  bool keeps_time = false;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;  ///< when the stream came to it
};

namespace emulation {

/// The devices of this process, which share a scheduler. Streams are queues. Operations run one at a time, in
/// an order that the seed chooses among those that streams and events allow. They run late: a thread waits a
/// little before each, unless the host waits for the device and so drives it. `mutex` guards all members.
class Device {
 public:
  Device();

  std::recursive_mutex mutex;
  Memory memory;
  Moment host;  ///< what the host has waited for
  std::set<cudaStream_t> streams;
  std::set<cudaEvent_t> events;
  int profiler_ranges = 0;                                     ///< that are open
  int blas_handles = 0, fourier_plans = 0, communicators = 0;  ///< that live

  /// Checks the regions against everything that is not ordered before, and queues the operation.
  OperationPtr enqueue(const std::vector<cudaStream_t>& on, const std::string& label,
                       const std::vector<Region>& regions, std::function<bool()> step,
                       std::vector<OperationPtr> after = {});
  /// Wakes the worker, and a host that waits: something has changed.
  void wake();

  cudaStream_t make_stream();
  void destroy(cudaStream_t stream);
  void record(cudaEvent_t event, cudaStream_t stream);
  void make_wait(cudaStream_t stream, cudaEvent_t event);
  bool is_reached(cudaEvent_t event);
  void wait_for(cudaEvent_t event);
  void wait_for(cudaStream_t stream);
  /// Waits for all work of one device, as the host does within `function`. The program cannot rely on that.
  /// Ends the process if it takes too long.
  void wait_for_all(int number, const char* function);
  /// Runs operations until there are none or `done` returns true; the host waits meanwhile.
  void drive_until(const std::function<bool()>& done);

  /// One line per stream that has something to do.
  std::string state() const;

 private:
  void check(cudaStream_t stream, const std::string& label) const;
  bool advance();
  void run(const OperationPtr& operation, bool& progress);
  void work_late();

  std::condition_variable_any changed_;
  std::mt19937 random_;
  double latest_start_us_, hang_seconds_;
  bool exclusive_;
  int waiting_hosts_ = 0;
  int streams_made_ = 0;
  bool stepping_ = false;
  std::thread worker_;
};

/// How many devices there are, and which one is the calling thread's.
int device_count();
int& current_device();
/// Ends the process unless this device is the current one.
template <class... Parts>
void require_current(int number, const Parts&... what) {
  if (number != current_device())
    violation(Detector::devices, what..., " of device ", number, " is used while device ", current_device(),
              " is current");
}
/// Keeps the error as CUDA's last one of this thread, and returns it.
cudaError_t failed(cudaError_t error);

/// Whether the device of this process has been made.
bool device_exists();
/// The device of this process, made at the first call. What is not released when the process ends is
/// reported.
Device& device();

/// Queues a kernel: counts it, checks what it reads and writes, runs it when its turn comes.
cudaError_t launch(cudaStream_t stream, const char* name, const std::vector<Region>& regions,
                   std::function<void()> body);

/// The address at which the emulation can access device memory that the program knows by this address.
template <class T>
T* alias(T* address) {
  return device().memory.alias(address);
}

}  // namespace emulation
