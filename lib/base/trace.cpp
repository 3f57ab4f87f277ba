// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/base/trace.hpp"

#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "base/trace_record.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

TraceCounts operator+(const TraceCounts& a, const TraceCounts& b) {
  return {a.bytes_sent + b.bytes_sent,
          a.bytes_received + b.bytes_received,
          a.bytes_read_from_peers + b.bytes_read_from_peers,
          a.messages + b.messages,
          a.flops + b.flops,
          a.seconds_waiting + b.seconds_waiting};
}

TraceCounts operator-(const TraceCounts& a, const TraceCounts& b) {
  return {a.bytes_sent - b.bytes_sent,
          a.bytes_received - b.bytes_received,
          a.bytes_read_from_peers - b.bytes_read_from_peers,
          a.messages - b.messages,
          a.flops - b.flops,
          a.seconds_waiting - b.seconds_waiting};
}

namespace {

std::int64_t now() {
  const auto since_epoch = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
}

std::vector<TraceSource*>& sources() {
  static std::vector<TraceSource*> all;
  return all;
}

TraceListener listener;

/// The record of the thread that creates it. The constructor allocates all memory.
class Recorder {
 public:
  Recorder(const TraceOptions& options, std::uint32_t generation) : generation_(generation) {
    require<UsageError>(options.regions > 0 && (options.events > 0 || !options.timeline), "a trace of ",
                        options.regions, " regions and ", options.events,
                        " events has no room; both must be positive");
    nodes_.reserve(at(options.regions) + 1);
    if (options.timeline) take_memory(events_, at(options.events));
    open_.reserve(most_open);
    nodes_.push_back({.name = "all", .calls = 1});
    const std::int64_t begin = now();
    open_.push_back({0, none, begin, begin, {}, nullptr});
  }
  ~Recorder() {
    for (; !open_.empty(); open_.pop_back())
      if (open_.back().told != nullptr) open_.back().told();
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  bool is_of_this_thread() const { return std::this_thread::get_id() == thread_; }

  std::uint64_t enter(const char* name) {
    const int node = open_.size() < most_open ? child(name, false) : none;
    if (node == none) return ++dropped_regions_, 0;
    ++nodes_[at(node)].calls;
    const std::int64_t begin = now();
    const int event = add_event({name, TraceEvent::Kind::region, begin, 0, {}});
    open_.push_back({node, event, begin, begin, totals_, listener.end});
    if (listener.begin != nullptr) listener.begin(name);
    return token(open_.size());
  }

  void leave(std::uint64_t place) {
    if (!is_mine(place)) return;
    const std::int64_t end = now();
    while (open_.size() >= number(place)) {
      close(open_.back(), end, nodes_, events_);
      if (open_.back().told != nullptr) open_.back().told();
      open_.pop_back();
    }
  }

  void mark(const char* name) {
    const std::int64_t moment = now();
    Open& region = open_.back();
    add_event({name, TraceEvent::Kind::mark, moment, moment, {}});
    if (const int node = child(name, true); node != none) {
      ++nodes_[at(node)].calls;
      nodes_[at(node)].nanoseconds += moment - region.last_mark;
    } else {
      ++dropped_regions_;
    }
    region.last_mark = moment;
  }

  void count(const TraceCounts& counts) { totals_ = totals_ + counts; }

  std::uint64_t take_off(const char* name) {
    const int event = add_event({name, TraceEvent::Kind::in_flight, now(), 0, {}});
    return event == none ? 0 : token(at(event) + 1);
  }
  void land(std::uint64_t flight) {
    if (is_mine(flight)) events_[number(flight) - 1].end = now();
  }

  std::uint32_t timeline() const { return events_.capacity() > 0 ? generation_ : 0; }
  const char* region_name() const { return nodes_[at(open_.back().node)].name; }
  std::size_t add_track(const std::string& name) {
    tracks_.push_back({name, {}});
    take_memory(tracks_.back().events, events_.capacity());
    return tracks_.size() - 1;
  }
  void add_to_track(std::size_t track, const TraceEvent& event) {
    std::vector<TraceEvent>& events = tracks_[track].events;
    if (event.name == nullptr || events.size() == events.capacity()) {
      ++dropped_events_;
    } else {
      events.push_back(event);
    }
  }

  TraceRecord record() const {
    const std::int64_t end = now();
    TraceRecord copy{open_.front().begin, end, nodes_, events_, tracks_, dropped_regions_, dropped_events_};
    for (const Open& region : open_) close(region, end, copy.nodes, copy.events);
    for (TraceEvent& event : copy.events)
      if (event.end == 0) event.end = end;
    return copy;
  }

 private:
  static constexpr int none = -1;
  static constexpr std::size_t most_open = 256;

  struct Open {
    int node, event;
    std::int64_t begin, last_mark;
    TraceCounts totals;  // at its beginning
    void (*told)();      // the listener that was told of its beginning, and will be told of its end
  };

  /// Returns the node of this name below the innermost open region; none if there is no room for another.
  int child(const char* name, bool is_mark) {
    int* next = &nodes_[at(open_.back().node)].first_child;
    for (; *next != none; next = &nodes_[at(*next)].next_sibling) {
      const TraceNode& node = nodes_[at(*next)];
      if (node.is_mark == is_mark && (node.name == name || std::strcmp(node.name, name) == 0)) return *next;
    }
    if (nodes_.size() == nodes_.capacity()) return none;
    *next = static_cast<int>(nodes_.size());
    nodes_.push_back({.name = name, .parent = open_.back().node, .is_mark = is_mark});
    return static_cast<int>(nodes_.size()) - 1;
  }

  /// Makes room for this many events, and writes to it, so that the system need not supply pages later.
  static void take_memory(std::vector<TraceEvent>& events, std::size_t count) {
    events.reserve(count);
    events.resize(count);
    events.clear();
  }

  int add_event(const TraceEvent& event) {
    if (events_.capacity() == 0) return none;
    if (events_.size() == events_.capacity()) return ++dropped_events_, none;
    events_.push_back(event);
    return static_cast<int>(events_.size()) - 1;
  }

  void close(const Open& region, std::int64_t end, std::vector<TraceNode>& nodes,
             std::vector<TraceEvent>& events) const {
    const TraceCounts counts = totals_ - region.totals;
    nodes[at(region.node)].nanoseconds += end - region.begin;
    nodes[at(region.node)].counts = nodes[at(region.node)].counts + counts;
    if (region.event == none) return;
    events[at(region.event)].end = end;
    events[at(region.event)].counts = counts;
  }

  // Includes the trace's number, so that numbers of another trace's regions and flights are not taken for
  // this trace's.
  std::uint64_t token(std::size_t number) const { return std::uint64_t{generation_} << 32 | number; }
  bool is_mine(std::uint64_t token) const { return token >> 32 == generation_; }
  static std::size_t number(std::uint64_t token) { return token & 0xffffffff; }

  std::uint32_t generation_;
  std::thread::id thread_ = std::this_thread::get_id();
  std::vector<TraceNode> nodes_;
  std::vector<TraceEvent> events_;
  std::vector<TraceTrack> tracks_;
  std::vector<Open> open_;
  TraceCounts totals_;
  Index dropped_regions_ = 0, dropped_events_ = 0;
};

std::unique_ptr<Recorder> recorder;

/// Calls work(recorder) in the recording thread.
template <class Work>
void with_recorder(Work&& work) {
  if (recorder != nullptr && recorder->is_of_this_thread()) work(*recorder);
}

}  // namespace

std::atomic<bool> detail::trace_is_on = false;

void start_trace(const TraceOptions& options) {
  static std::uint32_t generation = 0;
  stop_trace();
  recorder = std::make_unique<Recorder>(options, ++generation);
  detail::trace_is_on = true;
}

void stop_trace() noexcept {
  detail::trace_is_on = false;
  recorder.reset();
}

std::uint64_t TraceRegion::enter(const char* name) noexcept {
  std::uint64_t place = 0;
  if (name != nullptr) with_recorder([&](Recorder& trace) { place = trace.enter(name); });
  return place;
}

void TraceRegion::leave(std::uint64_t place) noexcept {
  with_recorder([&](Recorder& trace) { trace.leave(place); });
}

void detail::record_mark(const char* name) noexcept {
  with_recorder([&](Recorder& trace) { trace.mark(name); });
}

void detail::record_flops(double flops) noexcept { record_counts({.flops = flops}); }

void detail::record_counts(const TraceCounts& counts) noexcept {
  with_recorder([&](Recorder& trace) { trace.count(counts); });
}

std::uint64_t detail::record_flight(const char* name) noexcept {
  std::uint64_t flight = 0;
  with_recorder([&](Recorder& trace) { flight = trace.take_off(name); });
  return flight;
}

void detail::record_landing(std::uint64_t flight) noexcept {
  with_recorder([&](Recorder& trace) { trace.land(flight); });
}

TraceRecord trace_record() {
  for (TraceSource* const source : sources()) source->bring_in();
  return recorder == nullptr ? TraceRecord() : recorder->record();
}

std::uint32_t trace_timeline() {
  std::uint32_t number = 0;
  if (trace_is_on()) with_recorder([&](const Recorder& trace) { number = trace.timeline(); });
  return number;
}

std::size_t add_trace_track(const std::string& name) { return recorder->add_track(name); }

void add_to_trace_track(std::uint32_t timeline, std::size_t track, const char* name, std::int64_t begin,
                        std::int64_t end) {
  if (recorder != nullptr && recorder->timeline() == timeline)
    recorder->add_to_track(track, {name, TraceEvent::Kind::region, begin, end, {}});
}

const char* trace_region_name() { return recorder == nullptr ? "" : recorder->region_name(); }

std::int64_t trace_clock() { return now(); }

TraceSource::TraceSource() { sources().push_back(this); }
TraceSource::~TraceSource() { std::erase(sources(), this); }

void set_trace_listener(const TraceListener& wanted) { listener = wanted; }

}  // namespace gridlops
