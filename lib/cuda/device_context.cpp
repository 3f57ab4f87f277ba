// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/device_context.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/message.hpp"
#include "comm/failure/failure.hpp"
#include "cuda/device_timeline.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops::cuda {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Error(ExitStatus::internal,
              message(what,
                      "; work on the GPU before it may have failed too, so the job must end: "
                      "compute-sanitizer finds faults of kernels"),
              KnownTo::one_rank);
}

/// cuFFT has no error texts of its own.
std::string name_of(cufftResult status) {
  switch (status) {
    case CUFFT_INVALID_PLAN:
      return "CUFFT_INVALID_PLAN, there is no such plan";
    case CUFFT_ALLOC_FAILED:
      return "CUFFT_ALLOC_FAILED, there is not enough memory";
    case CUFFT_INVALID_TYPE:
      return "CUFFT_INVALID_TYPE, the element types do not fit";
    case CUFFT_INVALID_VALUE:
      return "CUFFT_INVALID_VALUE, an argument cannot be right";
    case CUFFT_INTERNAL_ERROR:
      return "CUFFT_INTERNAL_ERROR, in the driver or in cuFFT";
    case CUFFT_EXEC_FAILED:
      return "CUFFT_EXEC_FAILED, the GPU did not take the transform";
    case CUFFT_SETUP_FAILED:
      return "CUFFT_SETUP_FAILED, cuFFT could not be started";
    case CUFFT_INVALID_SIZE:
      return "CUFFT_INVALID_SIZE, it does not transform this many samples";
    default:
      return message("cufftResult ", static_cast<int>(status), " of cufft.h");
  }
}

}  // namespace

void check(cudaError_t status, const char* call, Index bytes) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  fail(message(call, bytes < 0 ? "" : message(" of ", bytes, " bytes"), " failed: ", cudaGetErrorName(status),
               ", ", cudaGetErrorString(status)));
}

bool is_enough_memory(cudaError_t status, const char* call, Index bytes) {
  if (status != cudaErrorMemoryAllocation) {
    check(status, call, bytes);
    return true;
  }
  cudaGetLastError();
  return false;
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(message(call, " failed: ", cublasGetStatusName(status), ", ", cublasGetStatusString(status)));
}

void check(cufftResult status, const char* call) {
  if (status == CUFFT_SUCCESS) return;
  cudaGetLastError();
  fail(message(call, " failed: ", name_of(status)));
}

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

std::shared_ptr<DeviceContext> DeviceContext::of(int device) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<DeviceContext>> contexts;
  const std::lock_guard lock(mutex);
  std::shared_ptr<DeviceContext> context = contexts[device].lock();
  if (context == nullptr) {
    context.reset(new DeviceContext(device));
    contexts[device] = context;
  }
  return context;
}

DeviceContext::DeviceContext(int device) : device_(device), pinned_(*this), memory_(*this), timeline_(*this) {
  tell_profilers_of_regions();
  make_current();
  memory_.look_for_pool(device);
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  compute_ = make_stream(least);
  communication_ = make_stream(greatest);
}

DeviceContext::~DeviceContext() {
  cudaSetDevice(device_);
  // In these cases the work in progress never ends.
  if (has_failed_ || ranks_are_out_of_step()) return;
  cudaStreamSynchronize(communication());
  cudaStreamSynchronize(compute());
  try {
    timeline_.bring_in();
  } catch (const Error&) {
    // The trace then lacks the end of its timeline.
  }
}

DeviceContext::Stream DeviceContext::make_stream(int priority) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority),
        "cudaStreamCreateWithPriority");
  return Stream(stream);
}

void DeviceContext::make_current() const { check(cudaSetDevice(device_), "cudaSetDevice"); }

void DeviceContext::communication_follows_compute() {
  followed_ = std::make_shared<PooledEvent>(events_.record(compute()));
  check(cudaStreamWaitEvent(communication(), followed_->get(), 0), "cudaStreamWaitEvent");
}

void DeviceContext::communicates_until(const std::shared_ptr<PooledEvent>& end) {
  constexpr std::size_t many = 64;  // with more than this, checks the oldest, even if the host never waits
  while (communications_.size() > many && is_over(communications_.front())) {
    communications_.pop_front();
    ++communications_over_;
  }
  communications_.push_back({followed_, end});
}

PooledEvent DeviceContext::communication_so_far() { return events_.record(communication()); }

void DeviceContext::compute_follows(cudaEvent_t event) {
  check(cudaStreamWaitEvent(compute(), event, 0), "cudaStreamWaitEvent");
}

bool DeviceContext::is_reached(cudaEvent_t event) {
  const cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) return false;
  check(status, "cudaEventQuery");
  return true;
}

void DeviceContext::open_group() {
  require<UsageError>(!group_is_open_, "a group of operations was opened within another; close that first");
  make_current();
  if (const ncclResult_t result = begin_calls(); result != ncclSuccess)
    fail(message("ncclGroupStart failed: ", ncclGetErrorString(result)));
  group_is_open_ = true;
  ++group_number_;
}

void DeviceContext::close_group() {
  make_current();
  group_is_open_ = false;
  const std::vector<std::function<void()>> steps = std::exchange(after_group_, {});
  if (const ncclResult_t result = settled(end_calls()); result != ncclSuccess)
    fail(message("ncclGroupEnd failed: ", ncclGetErrorString(result),
                 "; NCCL_DEBUG=WARN shows what NCCL knows of the cause"));
  for (const std::function<void()>& step : steps) step();
}

// Ends NCCL's group; otherwise NCCL would add later calls to it.
void DeviceContext::abandon_group() noexcept {
  if (!group_is_open_) return;  // abort_communicators() has closed it
  group_is_open_ = false;
  after_group_.clear();
  // Operations begun in the group have no end to wait for.
  std::erase_if(communications_, [](const Communication& one) { return one.end->get() == nullptr; });
  static_cast<void>(end_calls());
}

ncclResult_t DeviceContext::begin_calls() {
  const ncclResult_t result = ncclGroupStart();
  if (result == ncclSuccess) ++groups_;
  return result;
}

ncclResult_t DeviceContext::end_calls() {
  --groups_;
  return run_watched(ncclGroupEnd);
}

void DeviceContext::after_group(std::function<void()> step) {
  if (group_is_open_) {
    after_group_.push_back(std::move(step));
  } else {
    step();
  }
}

void DeviceContext::wait(cudaEvent_t event, const std::function<bool()>& arrived) {
  if (communicators_.empty() && !arrived) {
    check(cudaEventSynchronize(event), "cudaEventSynchronize");
    return;
  }
  const auto begin = Clock::now();
  WatchedWait wait;
  Index communication = 0;
  for (Index polls = 0; arrived ? !arrived() : !is_reached(event); ++polls) {
    if (polls % 64 != 63) continue;
    if (arrived && is_reached(event)) return;
    check_communicators();
    const Index now = communication_under_way();
    if (now == 0 || now != communication) wait.is_own_work();
    communication = now;
    look(wait);
    if (communicators_.empty()) {
      std::this_thread::yield();  // nobody else is waited for, so it ends soon
    } else if (seconds_since(begin) > 0.001) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

void DeviceContext::look(WatchedWait& wait) {
  try {
    wait.look();
  } catch (const Error&) {
    abort_communicators();
    throw;
  }
}

bool DeviceContext::is_over(const Communication& communication) {
  return communication.end->get() != nullptr && is_reached(communication.end->get());
}

Index DeviceContext::communication_under_way() {
  while (!communications_.empty() && is_over(communications_.front())) {
    communications_.pop_front();
    ++communications_over_;
  }
  const bool is_begun = !communications_.empty() && is_reached(communications_.front().begin->get());
  return is_begun ? communications_over_ + 1 : 0;
}

bool DeviceContext::check_communicators() {
  bool goes_on = false;
  for (const auto& [number, comm] : communicators_) {
    ncclResult_t error = ncclSuccess;
    const ncclResult_t status = ncclCommGetAsyncError(comm, &error);
    if (status != ncclSuccess || (error != ncclSuccess && error != ncclInProgress)) {
      // Meanwhile the rank that knows the cause reports it, or tells the others.
      const auto end = Clock::now() + std::chrono::milliseconds(500);
      for (WatchedWait wait; Clock::now() < end; std::this_thread::sleep_for(std::chrono::milliseconds(5)))
        look(wait);
      fail(message("NCCL reports: ", ncclGetErrorString(status == ncclSuccess ? error : status),
                   "; another rank has failed, whose message tells why"));
    }
    goes_on = goes_on || error == ncclInProgress;
  }
  return goes_on;
}

ncclResult_t DeviceContext::settled(ncclResult_t result) {
  if (result != ncclInProgress) return result;
  for (WatchedWait wait; check_communicators();) {
    look(wait);
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return ncclSuccess;
}

void DeviceContext::synchronize() {
  make_current();
  const PooledEvent now = events_.record(compute());
  wait(now.get());
}

void DeviceContext::await_all() {
  for (const cudaStream_t stream : {communication(), compute()}) {
    const PooledEvent now = events_.record(stream);
    wait(now.get());
  }
}

Index DeviceContext::watch(ncclComm_t comm) {
  communicators_.emplace(++communicators_so_far_, comm);
  return communicators_so_far_;
}

void DeviceContext::end(Index number) noexcept {
  if (!is_watched(number)) return;
  cudaSetDevice(device_);
  const bool is_alone = std::uncaught_exceptions() > 0 || ranks_are_out_of_step();
  if (is_alone && !comes_to_rest()) return abort_communicators();
  if (!is_alone) {
    try {
      wait(communication_so_far().get());
    } catch (const Error&) {
      // The next operation throws it again, or has no communicator.
      return abort_communicators();
    }
  }
  const ncclComm_t comm = communicators_.extract(number).mapped();
  static_cast<void>(run_watched(is_alone ? ncclCommAbort : ncclCommDestroy, comm));
}

bool DeviceContext::comes_to_rest() noexcept {
  const auto end = Clock::now() + std::chrono::seconds(1);
  try {
    for (const PooledEvent now = communication_so_far(); !is_reached(now.get());
         std::this_thread::sleep_for(std::chrono::microseconds(20)))
      if (Clock::now() > end) return false;
  } catch (const Error&) {
    return false;
  }
  return true;
}

// The end of a communicator waits until the device is done with its work, and operations of the others may
// have peers that never come. NCCL tells a communicator's operations to end when it is aborted, and within a
// group waits only after all have been told. It takes aborts in groups from version 2.22 on. Before, they go
// one after another, and where one waits for ever, the watchdog's thread ends the job.
void DeviceContext::abort_communicators() noexcept {
  has_failed_ = true;
  if (group_is_open_) abandon_group();
  while (groups_ > 0) static_cast<void>(end_calls());
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 22, 0)
  static_cast<void>(begin_calls());
#endif
  for (const auto& [number, comm] : communicators_) static_cast<void>(run_watched(ncclCommAbort, comm));
  while (groups_ > 0) static_cast<void>(end_calls());
  communicators_.clear();
}

void DeviceContext::fail(const std::string& what) {
  abort_communicators();
  throw CommunicationError(what);
}

}  // namespace gridlops::cuda
