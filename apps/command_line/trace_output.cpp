// SPDX-License-Identifier: BSD-3-Clause
#include "command_line/trace_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "command_line/console.hpp"
#include "command_line/option_parser.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/io/text_file.hpp"
#include "gridlops/io/trace_report.hpp"

namespace gridlops::program {

namespace {

constexpr std::string_view to_file = "chrome:";

std::string trace_variable() {
  const char* const text = std::getenv("GRIDLOPS_TRACE");
  return text == nullptr ? "" : text;
}

constexpr const char* row_format = "{:<36} {:>5} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9}\n";

/// The figures of all ranks in a region; `name` is the name in the table.
std::string row(const std::string& name, const std::vector<TraceFigures>& ranks) {
  Index came = 0, calls = 0;
  TraceCounts sum;
  for (const TraceFigures& figures : ranks) {
    came += figures.calls > 0 ? 1 : 0;
    calls = std::max(calls, figures.calls);
    sum = sum + figures.counts;
  }
  const Index received = sum.bytes_received + sum.bytes_read_from_peers;
  const TraceSpread seconds = spread(ranks, [](const TraceFigures& figures) { return figures.seconds; });
  const double waiting = sum.seconds_waiting / static_cast<double>(std::max<Index>(came, 1));
  const auto time = [](double value) { return fmt::format("{:.4f}", value); };
  const auto unless_zero = [](auto value, const std::string& text) { return value == 0 ? "" : text; };
  return fmt::format(row_format, name, came, calls, time(seconds.least), time(seconds.median),
                     time(seconds.most), waiting < 0.00005 ? "" : time(waiting),
                     unless_zero(sum.messages, std::to_string(sum.messages)),
                     unless_zero(received, bytes_text(received)),
                     unless_zero(sum.flops, fmt::format("{:.4g}", 1e-9 * sum.flops)));
}

std::string head(const char* region) {
  return fmt::format(row_format, region, "", "calls", "seconds", "of ranks", "", "waiting", "messages",
                     "received", "GFLOP") +
         fmt::format(row_format, "", "ranks", "most", "least", "median", "most", "mean", "all", "all", "all");
}

std::string tree_text(const TraceTree& tree) {
  std::string text = head("region, with the regions inside");
  for (const TraceLine& line : tree.lines)
    text +=
        row(fmt::format("{:{}}{}{}", "", 2 * line.depth, line.is_mark ? "| " : "", line.name), line.ranks);
  return text;
}

/// The totals of all regions of one name, wherever they are.
struct Together {
  std::string name;
  std::vector<TraceFigures> ranks;
};

std::string summary_text(const TraceTree& tree) {
  std::vector<Together> names;
  for (const TraceLine& line : tree.lines) {
    if (line.is_mark) continue;
    auto found = std::find_if(names.begin(), names.end(),
                              [&](const Together& together) { return together.name == line.name; });
    if (found == names.end())
      found = names.insert(found, {line.name, std::vector<TraceFigures>(line.own.size())});
    for (std::size_t rank = 0; rank < line.own.size(); ++rank) {
      TraceFigures& sum = found->ranks[rank];
      sum.calls += line.own[rank].calls;
      sum.seconds += line.own[rank].seconds;
      sum.counts = sum.counts + line.own[rank].counts;
    }
  }
  const auto seconds = [](const Together& together) {
    double sum = 0;
    for (const TraceFigures& figures : together.ranks) sum += figures.seconds;
    return sum;
  };
  std::stable_sort(names.begin(), names.end(),
                   [&](const Together& a, const Together& b) { return seconds(a) > seconds(b); });
  std::string text = head("region, without the regions inside");
  for (const Together& together : names) text += row(together.name, together.ranks);
  return text;
}

}  // namespace

std::string trace_file() {
  const std::string text = trace_variable();
  return text.starts_with(to_file) ? text.substr(to_file.size()) : "";
}

TraceOutput::TraceOutput(Communicator& world) : world_(world), path_(trace_file()) {
  const std::string text = trace_variable().empty() ? "off" : trace_variable();
  const Names<Form> forms{{"off", Form::off}, {"summary", Form::summary}, {"tree", Form::tree}};
  if (text.starts_with(to_file)) {
    form_ = Form::chrome;
    if (path_.empty()) throw UsageError("GRIDLOPS_TRACE=chrome: names no file, as in chrome:trace.json");
    attempt(world, [&] {
      if (world.rank() == 0) check_text_file(path_);
    });
  } else if (const auto found = std::find_if(forms.begin(), forms.end(),
                                             [&](const auto& form) { return form.first == text; });
             found != forms.end()) {
    form_ = found->second;
  } else {
    throw UsageError(
        fmt::format("GRIDLOPS_TRACE is '{}', which is none of {}, chrome:FILE", text, joined(forms, ", ")));
  }
  if (form_ != Form::off) start_trace({.timeline = form_ == Form::chrome});
}

TraceOutput::~TraceOutput() { stop_trace(); }

void TraceOutput::finish() {
  if (form_ == Form::off) return;
  const TraceTree tree = gather_trace(world_);
  if (form_ == Form::chrome) write_trace_events(world_, path_);
  if (world_.rank() != 0) return;
  if (form_ == Form::summary) print(summary_text(tree));
  if (form_ == Form::tree) print(tree_text(tree));
  if (tree.dropped_regions > 0)
    warn(fmt::format("the trace had no room for {} calls of regions; they count in the regions around them",
                     tree.dropped_regions));
  if (tree.dropped_events > 0)
    warn(fmt::format("{} misses the last {} events of the ranks, for which there was no room", path_,
                     tree.dropped_events));
}

}  // namespace gridlops::program
