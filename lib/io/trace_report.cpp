// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/io/trace_report.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "base/trace_record.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/io/text_file.hpp"
#include "io/formats/json_text.hpp"

namespace gridlops {

namespace {

using OrderedJson = nlohmann::ordered_json;

/// Calls use(next) on rank 0, where next() returns the ranks' texts one after the other, and then an empty
/// one (collective). So rank 0 holds one text at a time.
void with_texts(Communicator& comm, std::string mine,
                const std::function<void(const std::function<std::string()>& next)>& use) {
  const std::array<Index, 1> size{static_cast<Index>(mine.size())};
  std::vector<Index> sizes(comm.rank() == 0 ? at(comm.size()) : 0);
  comm.gather(size, sizes, 0);
  attempt(comm, [&] {
    if (comm.rank() != 0) return comm.send(mine, 0);
    int rank = 0;
    const auto next = [&]() -> std::string {
      if (rank == comm.size()) return {};
      if (rank++ == 0) return std::move(mine);
      std::string text(at(sizes[at(rank - 1)]), '\0');
      comm.receive(text, rank - 1);
      return text;
    };
    std::exception_ptr failure;
    try {
      use(next);
    } catch (...) {
      failure = std::current_exception();
    }
    while (!next().empty()) continue;  // the others must have sent everything, whatever failed here
    if (failure != nullptr) std::rethrow_exception(failure);
  });
}

OrderedJson packed(const TraceRecord& record) {
  OrderedJson nodes = OrderedJson::array();
  for (const TraceNode& node : record.nodes) {
    const TraceCounts& of = node.counts;
    nodes.push_back({node.name, node.parent, node.is_mark, node.calls,
                     1e-9 * static_cast<double>(node.nanoseconds), of.bytes_sent, of.bytes_received,
                     of.bytes_read_from_peers, of.messages, of.flops, of.seconds_waiting});
  }
  return {std::move(nodes), record.dropped_regions, record.dropped_events};
}

TraceFigures unpacked_figures(const OrderedJson& node) {
  return {node[3], node[4], {node[5], node[6], node[7], node[8], node[9], node[10]}};
}

/// Merges the trees of the ranks added so far.
class Merger {
 public:
  explicit Merger(int ranks) : ranks_(at(ranks)) { nodes_.push_back({line("all", 0, false), {}}); }

  void add(int rank, const OrderedJson& record) {
    std::vector<std::size_t> place;  // of the rank's nodes in the merged tree
    for (const OrderedJson& node : record[0]) {
      const int parent = node[1];
      place.push_back(parent < 0 ? 0 : child(place[at(parent)], node[0], node[2]));
      TraceLine& line = nodes_[place.back()].line;
      const TraceFigures figures = line.ranks[at(rank)] = line.own[at(rank)] = unpacked_figures(node);
      if (parent < 0 || line.is_mark) continue;
      TraceFigures& around = nodes_[place[at(parent)]].line.own[at(rank)];
      around.seconds -= figures.seconds;
      around.counts = around.counts - figures.counts;
    }
    tree_.dropped_regions += record[1].get<Index>();
    tree_.dropped_events += record[2].get<Index>();
  }

  TraceTree tree() {
    append(0);
    return std::move(tree_);
  }

 private:
  struct Node {
    TraceLine line;
    std::vector<std::size_t> inside;
  };

  TraceLine line(const std::string& name, int depth, bool is_mark) const {
    return {name, depth, is_mark, std::vector<TraceFigures>(ranks_), std::vector<TraceFigures>(ranks_)};
  }

  std::size_t child(std::size_t parent, const std::string& name, bool is_mark) {
    for (const std::size_t k : nodes_[parent].inside)
      if (nodes_[k].line.name == name && nodes_[k].line.is_mark == is_mark) return k;
    nodes_[parent].inside.push_back(nodes_.size());
    const int depth = nodes_[parent].line.depth + 1;
    nodes_.push_back({line(name, depth, is_mark), {}});
    return nodes_.size() - 1;
  }

  void append(std::size_t node) {
    tree_.lines.push_back(std::move(nodes_[node].line));
    for (const std::size_t k : nodes_[node].inside) append(k);
  }

  std::size_t ranks_;
  std::vector<Node> nodes_;
  TraceTree tree_;
};

}  // namespace

TraceTree gather_trace(Communicator& comm) {
  const TracePause pause;
  Merger merger(comm.size());
  with_texts(comm, json_text(packed(trace_record())), [&](const std::function<std::string()>& next) {
    for (int rank = 0; rank < comm.size(); ++rank) merger.add(rank, OrderedJson::parse(next()));
  });
  return comm.rank() == 0 ? merger.tree() : TraceTree();
}

TraceSpread spread(const std::vector<TraceFigures>& ranks,
                   const std::function<double(const TraceFigures&)>& value) {
  std::vector<double> values;
  for (const TraceFigures& figures : ranks)
    if (figures.calls > 0) values.push_back(value(figures));
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double median = (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
  return {values.front(), median, values.back()};
}

namespace {

/// Returns the time to add to this rank's clock to get rank 0's, from rank 0's fastest answer (Cristian:
/// Probabilistic clock synchronization, Distributed Computing 3, 1989; collective).
std::int64_t clock_difference(Communicator& comm) {
  constexpr int questions = 10;
  std::array<Index, 1> theirs{};
  std::int64_t difference = 0, fastest = -1;
  for (int rank = 1; rank < comm.size(); ++rank) {
    for (int k = 0; k < questions && comm.rank() == 0; ++k) {
      comm.receive(theirs, rank);
      theirs[0] = trace_clock();
      comm.send(theirs, rank);
    }
    for (int k = 0; k < questions && comm.rank() == rank; ++k) {
      const std::int64_t asked = trace_clock();
      comm.send(theirs, 0);
      comm.receive(theirs, 0);
      const std::int64_t duration = trace_clock() - asked;
      if (fastest >= 0 && duration >= fastest) continue;
      fastest = duration;
      difference = theirs[0] - (asked + duration / 2);
    }
  }
  return difference;
}

/// Writes a rank's events, whose times are those of its clock plus a shift.
class EventWriter {
 public:
  EventWriter(int rank, std::int64_t shift) : rank_(rank), shift_(shift) {}

  std::string text(const TraceRecord& record) {
    begin_track("host");
    add({{"ph", "M"}, {"name", "process_name"}, {"args", {{"name", message("rank ", rank_)}}}});
    add({{"ph", "M"}, {"name", "process_sort_index"}, {"args", {{"sort_index", rank_}}}});
    add({{"ph", "X"},
         {"name", "all"},
         {"cat", "region"},
         {"ts", microseconds(record.begin)},
         {"dur", duration(record.end - record.begin)},
         {"args", {{"dropped_events", record.dropped_events}}}});
    for (const TraceEvent& event : record.events) add(event);
    for (const TraceTrack& track : record.tracks) {
      begin_track(track.name);
      for (const TraceEvent& event : track.events) add(event);
    }
    return std::move(text_);
  }

 private:
  double microseconds(std::int64_t moment) const { return duration(moment + shift_); }
  static double duration(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

  void begin_track(const std::string& name) {
    ++track_;
    add({{"ph", "M"}, {"name", "thread_name"}, {"args", {{"name", name}}}});
    add({{"ph", "M"}, {"name", "thread_sort_index"}, {"args", {{"sort_index", track_}}}});
  }

  void add(const TraceEvent& event) {
    switch (event.kind) {
      case TraceEvent::Kind::region:
        return add({{"ph", "X"},
                    {"name", event.name},
                    {"cat", "region"},
                    {"ts", microseconds(event.begin)},
                    {"dur", duration(event.end - event.begin)},
                    {"args", arguments(event.counts)}});
      case TraceEvent::Kind::mark:
        return add({{"ph", "i"},
                    {"name", event.name},
                    {"cat", "mark"},
                    {"ts", microseconds(event.begin)},
                    {"s", "t"}});
      case TraceEvent::Kind::in_flight:
        break;
    }
    const std::string id = message(rank_, ".", ++flights_);
    for (const auto& [phase, moment] : {std::pair("b", event.begin), std::pair("e", event.end)})
      add({{"ph", phase},
           {"name", event.name},
           {"cat", "request"},
           {"id", id},
           {"ts", microseconds(moment)}});
  }

  void add(OrderedJson event) {
    event["pid"] = rank_;
    event["tid"] = track_;
    text_ += text_.empty() ? "" : ",\n";
    text_ += json_text(event);
  }

  static OrderedJson arguments(const TraceCounts& counts) {
    OrderedJson numbers = OrderedJson::object();
    const auto add = [&](const char* name, auto value) {
      if (value != 0) numbers[name] = value;
    };
    add("bytes_sent", counts.bytes_sent);
    add("bytes_received", counts.bytes_received);
    add("bytes_read_from_peers", counts.bytes_read_from_peers);
    add("messages", counts.messages);
    add("flops", counts.flops);
    add("seconds_waiting", counts.seconds_waiting);
    return numbers;
  }

  int rank_;
  std::int64_t shift_;
  int track_ = -1;
  Index flights_ = 0;
  std::string text_;
};

}  // namespace

void write_trace_events(Communicator& comm, const std::string& path) {
  const TracePause pause;
  const TraceRecord record = trace_record();
  const std::int64_t difference = clock_difference(comm);
  std::array<Index, 1> first{record.begin + difference};
  comm.all_reduce(first, ReduceOp::min);
  EventWriter events(comm.rank(), difference - first[0]);
  with_texts(comm, events.text(record), [&](const std::function<std::string()>& next) {
    std::string between = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
    write_text_file(path, [&]() -> std::string {
      if (between.empty()) return {};
      const std::string text = next();
      if (!text.empty()) return std::exchange(between, ",\n") + text;
      between.clear();
      return "\n]}\n";
    });
  });
}

}  // namespace gridlops
