// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/device_context.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/message.hpp"
#include "cuda/check.hpp"
#include "gridlops/error.hpp"

namespace gridlops::cuda {

namespace {

double timeout_from_environment() {
  const char* text = std::getenv("GRIDLOPS_TIMEOUT");
  return text == nullptr || *text == '\0' ? 600 : std::strtod(text, nullptr);
}

cudaStream_t make_stream(int priority) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority),
        "cudaStreamCreateWithPriority");
  return stream;
}

/// Memory that is released stays with the process: taking it again costs nothing.
void keep_released_memory(int device) {
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, device), "cudaDeviceGetDefaultMemPool");
  std::uint64_t everything = ~std::uint64_t{0};
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &everything),
        "cudaMemPoolSetAttribute");
}

}  // namespace

std::shared_ptr<DeviceContext> DeviceContext::of(int device) {
  static std::map<int, std::weak_ptr<DeviceContext>> contexts;
  std::shared_ptr<DeviceContext> context = contexts[device].lock();
  if (context == nullptr) {
    context.reset(new DeviceContext(device));
    contexts[device] = context;
  }
  return context;
}

DeviceContext::DeviceContext(int device) : pinned_(*this), timeout_seconds_(timeout_from_environment()) {
  check(cudaSetDevice(device), "cudaSetDevice");
  keep_released_memory(device);
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  compute_ = make_stream(least);
  communication_ = make_stream(greatest);
}

DeviceContext::~DeviceContext() {
  if (!has_failed_) {
    cudaStreamSynchronize(communication_);
    cudaStreamSynchronize(compute_);
  }
  cudaStreamDestroy(communication_);
  cudaStreamDestroy(compute_);
}

void DeviceContext::communication_follows_compute() {
  const PooledEvent now = events_.record(compute_);
  check(cudaStreamWaitEvent(communication_, now.get(), 0), "cudaStreamWaitEvent");
}

PooledEvent DeviceContext::communication_so_far() { return events_.record(communication_); }

void DeviceContext::compute_follows(cudaEvent_t event) {
  check(cudaStreamWaitEvent(compute_, event, 0), "cudaStreamWaitEvent");
}

bool DeviceContext::is_reached(cudaEvent_t event) {
  const cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) return false;
  check(status, "cudaEventQuery");
  return true;
}

void DeviceContext::open_group() {
  require<UsageError>(!group_is_open_, "a group of operations was opened within another; close that first");
  require<CommunicationError>(ncclGroupStart() == ncclSuccess, "ncclGroupStart failed");
  group_is_open_ = true;
  ++group_number_;
}

void DeviceContext::close_group() {
  group_is_open_ = false;
  const std::vector<std::function<void()>> steps = std::exchange(after_group_, {});
  if (const ncclResult_t result = ncclGroupEnd(); result != ncclSuccess)
    fail(message("ncclGroupEnd failed: ", ncclGetErrorString(result),
                 "; NCCL_DEBUG=WARN shows what NCCL knows of the cause"));
  for (const std::function<void()>& step : steps) step();
}

// NCCL must not take what comes later for a part of the group.
void DeviceContext::abandon_group() noexcept {
  group_is_open_ = false;
  after_group_.clear();
  static_cast<void>(ncclGroupEnd());
}

void DeviceContext::after_group(std::function<void()> step) {
  if (group_is_open_) {
    after_group_.push_back(std::move(step));
  } else {
    step();
  }
}

void DeviceContext::wait(cudaEvent_t event) {
  if (communicators_.empty()) {
    check(cudaEventSynchronize(event), "cudaEventSynchronize");
    return;
  }
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (Index polls = 0; !is_reached(event); ++polls) {
    if (polls % 64 != 63) continue;
    check_communicators();
    const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
    if (timeout_seconds_ > 0 && waited > timeout_seconds_)
      fail(message(
          "the GPU has waited ", timeout_seconds_,
          " s for other ranks: one of them is lost, or does not take part (GRIDLOPS_TIMEOUT changes how "
          "long to wait)"));
    if (waited > 0.001) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void DeviceContext::check_communicators() {
  for (const ncclComm_t comm : communicators_) {
    ncclResult_t error = ncclSuccess;
    const ncclResult_t status = ncclCommGetAsyncError(comm, &error);
    if (status == ncclSuccess && (error == ncclSuccess || error == ncclInProgress)) continue;
    fail(message("NCCL reports: ", ncclGetErrorString(status == ncclSuccess ? error : status),
                 "; another rank has failed, whose message tells why"));
  }
}

void DeviceContext::synchronize() {
  const PooledEvent now = events_.record(compute_);
  wait(now.get());
}

void DeviceContext::forget(ncclComm_t comm) { std::erase(communicators_, comm); }

void DeviceContext::fail(const std::string& what) {
  has_failed_ = true;
  if (group_is_open_) abandon_group();
  for (const ncclComm_t comm : communicators_) ncclCommAbort(comm);
  communicators_.clear();
  throw CommunicationError(what);
}

}  // namespace gridlops::cuda
