// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <vector>

#include "base/trace_record.hpp"

namespace gridlops::cuda {

class DeviceContext;

/// Records when products and communication ran on a device, for the timeline of a trace: pairs of events in
/// the streams, whose times it queries once they are complete. The host waits for the device when a timeline
/// begins, to relate their clocks, and when it is read.
class DeviceTimeline final : public TraceSource {
 public:
  explicit DeviceTimeline(DeviceContext& context) : context_(context) {}
  ~DeviceTimeline() override;

  enum class Stream { compute, communication };
  /// Begins a region of the stream, and returns its number; 0 if no timeline is recorded. Regions of a stream
  /// do not overlap.
  std::uint64_t begin(Stream stream, const char* name);
  void end(std::uint64_t number) noexcept;

  void bring_in() override;

 private:
  /// A region that has not yet been collected.
  struct Region {
    cudaEvent_t begin = nullptr, end = nullptr;
    Stream stream = Stream::compute;
    const char* name = nullptr;
    bool has_ended = false;
  };
  static constexpr std::size_t most_under_way = 1024;

  void start(std::uint32_t timeline);
  bool first_is_lost();
  void bring_in_first();
  cudaStream_t stream_of(Stream stream) const;
  Region& region(std::uint64_t number) { return regions_[number % regions_.size()]; }

  DeviceContext& context_;
  std::uint32_t timeline_ = 0;
  std::array<std::size_t, 2> tracks_{};
  std::vector<Region> regions_;  // a ring that holds the regions number first_ … next_ − 1
  std::uint64_t first_ = 1, next_ = 1;
  std::array<std::uint64_t, 2> latest_{};  // of each stream
  Index group_ = 0;                        // the group in which a region last began
  cudaEvent_t reference_ = nullptr;
  double reference_time_ = 0;  // by the host's clock, in nanoseconds
};

/// A region of the compute stream, as long as this object lives.
class StreamRegion {
 public:
  StreamRegion(DeviceTimeline& timeline, const char* name)
      : timeline_(timeline), number_(timeline.begin(DeviceTimeline::Stream::compute, name)) {}
  StreamRegion(const StreamRegion&) = delete;
  StreamRegion& operator=(const StreamRegion&) = delete;
  ~StreamRegion() { timeline_.end(number_); }

 private:
  DeviceTimeline& timeline_;
  std::uint64_t number_;
};

/// From now on the regions of traces also appear as NVTX ranges, which profilers such as Nsight Systems show.
void tell_profilers_of_regions();

}  // namespace gridlops::cuda
