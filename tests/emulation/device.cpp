// SPDX-License-Identifier: BSD-3-Clause
#include "emulation/device.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "emulation/report.hpp"

namespace emulation {

namespace {

std::atomic<bool> is_made = false;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

bool may_begin(const Operation& operation) {
  return std::all_of(operation.streams.begin(), operation.streams.end(),
                     [&](cudaStream_t stream) { return stream->queue.front().get() == &operation; }) &&
         std::all_of(operation.after.begin(), operation.after.end(),
                     [](const OperationPtr& other) { return other->done; });
}

/// Runs at the end of the process, and reports what the program has not released by then.
void report_leaks() {
  Device& gpu = device();
  const Lock lock(gpu.mutex);
  int leaks = 0;
  const auto leak = [&](const std::string& what) {
    ++leaks;
    report("leak: " + what);
  };
  for (const auto& entry : gpu.memory.allocations())
    if (!entry.second.freed) leak(entry.second.name());
  for (const cudaStream_t stream : gpu.streams) leak(text_of("stream ", stream->number));
  if (!gpu.events.empty()) leak(text_of(gpu.events.size(), " events"));
  if (gpu.profiler_ranges > 0) leak(text_of(gpu.profiler_ranges, " ranges of NVTX"));
  if (gpu.blas_handles > 0) leak(text_of(gpu.blas_handles, " cuBLAS handles"));
  if (gpu.fourier_plans > 0) leak(text_of(gpu.fourier_plans, " cuFFT plans"));
  if (gpu.communicators > 0) leak(text_of(gpu.communicators, " NCCL communicators"));
  if (leaks > 0 && is_on(Detector::leaks)) end_with_report(text_of(leaks, " leaks"), leak_status);
}

}  // namespace

bool device_exists() { return is_made; }

int device_count() {
  static const int count = static_cast<int>(setting("GRIDLOPS_EMULATION_DEVICES", 2));
  return count;
}

int& current_device() {
  thread_local int current = 0;
  return current;
}

Device& device() {
  static Device* const the_device = [] {
    auto* made = new Device;  // outlives everything: its worker never ends
    std::atexit(report_leaks);
    is_made = true;
    return made;
  }();
  return *the_device;
}

Device::Device()
    : random_(static_cast<unsigned>(setting("GRIDLOPS_EMULATION_SEED", 1)) * 7919U +
              static_cast<unsigned>(getpid())),
      latest_start_us_(setting("GRIDLOPS_EMULATION_LATE_US", 500)),
      hang_seconds_(hang_seconds()),
      exclusive_(setting("GRIDLOPS_EMULATION_EXCLUSIVE", 0) != 0),
      worker_([this] { work_late(); }) {}

void Device::check(cudaStream_t stream, const std::string& label) const {
  if (stream == nullptr) end_with_report(label + " on the default stream, which would wait for all others");
  if (streams.count(stream) == 0) end_with_report(label + " on a stream that was destroyed");
  require_current(stream->device, label, ": stream ", stream->number);
}

OperationPtr Device::enqueue(const std::vector<cudaStream_t>& on, const std::string& label,
                             const std::vector<Region>& regions, std::function<bool()> step,
                             std::vector<OperationPtr> after) {
  const Lock lock(mutex);
  Moment known = host;
  for (const cudaStream_t stream : on) {
    check(stream, label);
    known.join(stream->moment);
  }
  for (const cudaStream_t stream : on) known.advance(stream->number, ++stream->tick);
  auto operation = std::make_shared<Operation>();
  operation->label = std::make_shared<const std::string>(label);
  operation->streams = on;
  operation->after = std::move(after);
  operation->step = std::move(step);
  for (const Region& region : regions) {
    const Allocation* allocation = memory.find(region.begin);
    if (allocation != nullptr && allocation->on_device && allocation->device != on.front()->device)
      violation(Detector::devices, label, " on device ", on.front()->device, " uses ", allocation->name(),
                " of device ", allocation->device);
    memory.touch(region, known, on.front()->number, on.front()->tick, host, operation->label);
  }
  for (const cudaStream_t stream : on) {
    stream->moment = known;
    stream->queue.push_back(operation);
  }
  wake();
  return operation;
}

void Device::wake() { changed_.notify_all(); }

cudaStream_t Device::make_stream() {
  const Lock lock(mutex);
  auto* stream = new CUstream_st;
  stream->number = ++streams_made_;
  stream->device = current_device();
  streams.insert(stream);
  return stream;
}

void Device::destroy(cudaStream_t stream) {
  wait_for(stream);
  const Lock lock(mutex);
  streams.erase(stream);  // the object stays: finished operations refer to it
}

void Device::record(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(mutex);
  check(stream, "cudaEventRecord");
  require_current(event->device, "cudaEventRecord: an event");
  if (event->keeps_time) {
    event->time = std::make_shared<Clock::time_point>();
    enqueue({stream}, "keep the time of an event", {}, [time = event->time] {
      *time = Clock::now();
      return true;
    });
  }
  event->moment = stream->moment;
  event->moment.join(host);
  event->last = stream->queue.empty() ? nullptr : stream->queue.back();
}

void Device::make_wait(cudaStream_t stream, cudaEvent_t event) {
  const Lock lock(mutex);
  check(stream, "cudaStreamWaitEvent");
  if (event->last != nullptr && !event->last->done)
    enqueue({stream}, "wait for an event", {}, [] { return true; }, {event->last});
  stream->moment.join(event->moment);
}

bool Device::is_reached(cudaEvent_t event) {
  Lock lock(mutex);
  const auto done = [&] { return event->last == nullptr || event->last->done; };
  while (!done() && advance()) {
  }
  if (!done()) {
    lock.unlock();
    usleep(30);  // a caller that polls leaves the processor to its peers
    return false;
  }
  host.join(event->moment);
  return true;
}

void Device::wait_for(cudaEvent_t event) {
  const Lock lock(mutex);
  const OperationPtr last = event->last;
  const Moment moment = event->moment;
  drive_until([&] { return last == nullptr || last->done; });
  host.join(moment);
}

void Device::wait_for(cudaStream_t stream) {
  const Lock lock(mutex);
  if (streams.count(stream) == 0) end_with_report("a stream that was destroyed is waited for");
  drive_until([&] { return stream->queue.empty(); });
  host.join(stream->moment);
}

void Device::wait_for_all(int number, const char* function) {
  const auto begin = Clock::now();
  const Lock lock(mutex);
  drive_until([&] {
    const bool is_idle = std::all_of(streams.begin(), streams.end(), [number](cudaStream_t stream) {
      return stream->device != number || stream->queue.empty();
    });
    if (!is_idle && seconds_since(begin) > hang_seconds_ && is_on(Detector::hangs))
      end_with_report(text_of("hang: ", function, " has waited ", hang_seconds_,
                              " s for the device; the streams:\n", state()));
    return is_idle;
  });
}

void Device::drive_until(const std::function<bool()>& done) {
  Lock lock(mutex);
  ++waiting_hosts_;
  while (!done()) {
    if (advance()) continue;
    lock.unlock();
    usleep(50);
    lock.lock();
  }
  --waiting_hosts_;
  wake();
}

/// Advances what runs, and begins one operation that may begin; true if anything happened.
bool Device::advance() {
  if (stepping_) return false;
  stepping_ = true;
  std::vector<OperationPtr> running, ready;
  for (const cudaStream_t stream : streams) {
    if (stream->queue.empty()) continue;
    const OperationPtr& first = stream->queue.front();
    if (first->streams.front() != stream || !may_begin(*first)) continue;
    (first->running ? running : ready).push_back(first);
  }
  if (exclusive_ && std::any_of(running.begin(), running.end(), [](auto& o) { return o->exclusive; }))
    std::erase_if(ready, [](const OperationPtr& operation) { return operation->exclusive; });
  if (!ready.empty()) {
    const OperationPtr chosen = ready[random_() % ready.size()];
    chosen->running = true;
    chosen->begin = Clock::now();
    running.push_back(chosen);
  }
  bool progress = false;
  for (const OperationPtr& operation : running) run(operation, progress);
  stepping_ = false;
  return progress;
}

void Device::run(const OperationPtr& operation, bool& progress) {
  if (operation->step()) {
    operation->done = progress = true;
    for (const cudaStream_t stream : operation->streams) stream->queue.pop_front();
    operation->step = nullptr;
    operation->after.clear();
    wake();
  } else if (seconds_since(operation->begin) > hang_seconds_ && operation->may_hang() &&
             is_on(Detector::hangs)) {
    end_with_report(text_of("hang: '", *operation->label, "' has waited ", hang_seconds_,
                            " s for its peers; the streams:\n", state()));
  }
}

/// The device's own thread. It works late, so that a host that forgot to wait is found out.
void Device::work_late() {
  Lock lock(mutex);
  const auto idle = [this] {
    return waiting_hosts_ > 0 || std::all_of(streams.begin(), streams.end(),
                                             [](cudaStream_t stream) { return stream->queue.empty(); });
  };
  while (true) {
    changed_.wait(lock, [&] { return !idle(); });
    const auto pause = static_cast<useconds_t>(random_() % static_cast<unsigned>(latest_start_us_ + 1));
    lock.unlock();
    usleep(pause);
    lock.lock();
    while (!idle() && advance()) {
      if (random_() % 4 == 0) break;
    }
    if (idle()) continue;
    lock.unlock();
    usleep(50);
    lock.lock();
  }
}

std::string Device::state() const {
  std::string text;
  for (const cudaStream_t stream : streams) {
    if (stream->queue.empty()) continue;
    const Operation& first = *stream->queue.front();
    text += text_of("  stream ", stream->number, ": ", stream->queue.size(), " operations, first '",
                    *first.label, first.running ? "', begun " : "', not begun ", first.state(), "\n");
  }
  return text;
}

}  // namespace emulation
