// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/device_timeline.hpp"

#include <nvtx3/nvToolsExt.h>

#include <cmath>
#include <utility>

#include "base/message.hpp"
#include "cuda/device_context.hpp"

namespace gridlops::cuda {

namespace {

cudaEvent_t timed_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDefault), "cudaEventCreateWithFlags");
  return event;
}

double nanoseconds_between(cudaEvent_t begin, cudaEvent_t end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  return 1e6 * static_cast<double>(milliseconds);
}

}  // namespace

DeviceTimeline::~DeviceTimeline() {
  for (const Region& region : regions_) {
    cudaEventDestroy(region.begin);
    cudaEventDestroy(region.end);
  }
  if (reference_ != nullptr) cudaEventDestroy(reference_);
}

cudaStream_t DeviceTimeline::stream_of(Stream stream) const {
  return stream == Stream::compute ? context_.compute() : context_.communication();
}

/// Begins the timeline of another trace.
void DeviceTimeline::start(std::uint32_t timeline) {
  for (regions_.reserve(most_under_way); regions_.size() < most_under_way;)
    regions_.push_back({.begin = timed_event(), .end = timed_event()});
  if (reference_ == nullptr) reference_ = timed_event();
  first_ = next_;
  for (const auto& [stream, name] :
       {std::pair(Stream::compute, "products"), std::pair(Stream::communication, "communication")})
    tracks_[static_cast<std::size_t>(stream)] =
        add_trace_track(message("GPU ", context_.device(), ": ", name));
  check(cudaEventRecord(reference_, context_.compute()), "cudaEventRecord");
  context_.wait(reference_);
  reference_time_ = static_cast<double>(trace_clock());
  timeline_ = timeline;
}

std::uint64_t DeviceTimeline::begin(Stream stream, const char* name) {
  const std::uint32_t timeline = trace_timeline();
  if (timeline == 0) return 0;
  context_.make_current();
  if (timeline != timeline_) start(timeline);
  // The operations of a group run together, so they share one region.
  if (stream == Stream::communication && context_.is_group_open() &&
      std::exchange(group_, context_.group_number()) == context_.group_number())
    return 0;
  latest_[static_cast<std::size_t>(stream)] = next_;
  while (first_ < next_ &&
         (region(first_).has_ended ? context_.is_reached(region(first_).end) : first_is_lost()))
    bring_in_first();
  if (next_ - first_ == regions_.size()) {
    add_to_trace_track(timeline_, tracks_[static_cast<std::size_t>(stream)], nullptr, 0, 0);
    return 0;
  }
  Region& of = region(next_);
  of.stream = stream;
  of.name = name;
  of.has_ended = false;
  check(cudaEventRecord(of.begin, stream_of(stream)), "cudaEventRecord");
  return next_++;
}

void DeviceTimeline::end(std::uint64_t number) noexcept {
  if (number < first_) return;  // of another trace, or none
  Region& of = region(number);
  of.has_ended = cudaEventRecord(of.end, stream_of(of.stream)) == cudaSuccess;
}

/// Whether an exception left the first region without an end: its stream has begun a later one.
bool DeviceTimeline::first_is_lost() {
  const Region& of = region(first_);
  return !of.has_ended && latest_[static_cast<std::size_t>(of.stream)] != first_;
}

void DeviceTimeline::bring_in_first() {
  constexpr double far = 4e9;  // the times between events are single precision
  Region& of = region(first_++);
  if (!of.has_ended) return;
  const double begin = reference_time_ + nanoseconds_between(reference_, of.begin);
  const double end = begin + nanoseconds_between(of.begin, of.end);
  add_to_trace_track(timeline_, tracks_[static_cast<std::size_t>(of.stream)], of.name, std::llround(begin),
                     std::llround(end));
  if (begin - reference_time_ < far) return;
  std::swap(reference_, of.begin);
  reference_time_ = begin;
}

void DeviceTimeline::bring_in() {
  if (context_.has_failed()) return;
  context_.make_current();
  for (; first_ < next_; bring_in_first()) {
    if (region(first_).has_ended) {
      context_.wait(region(first_).end);
    } else if (context_.is_group_open()) {
      return;  // it ends with the group
    }
  }
}

void tell_profilers_of_regions() {
  set_trace_listener({[](const char* name) { nvtxRangePushA(name); }, [] { nvtxRangePop(); }});
}

}  // namespace gridlops::cuda
