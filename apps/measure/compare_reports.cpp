// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command_line/console.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

using SortedJson = nlohmann::json;
using Texts = std::vector<std::string>;

SortedJson read_report(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw InputError(fmt::format("{}: cannot read the report", path));
  SortedJson report = SortedJson::parse(text.str(), nullptr, false);
  if (!report.is_object() || report.value("schema", SortedJson()) != "gridlops.report/1")
    throw InputError(
        fmt::format("{} {}; gridlops report compares what --report of solve, multiply and use cases wrote; "
                    "bench/scaling compare takes studies and what gridlops-bench --json wrote",
                    path, report.is_discarded() ? "is not JSON" : "is JSON with another schema"));
  return report;
}

/// The value at the path /a/b of a report; null if there is none.
SortedJson at(const SortedJson& report, const char* place) {
  const SortedJson::json_pointer pointer(place);
  return report.contains(pointer) ? report.at(pointer) : SortedJson();
}

std::string number_text(double value) { return fmt::format("{:.4g}", value); }

std::string text_of(const SortedJson& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  return value.is_number_float() ? number_text(value.get<double>()) : json_text(value);
}

std::string grid_text(const SortedJson& report) {
  const SortedJson grid = at(report, "/grid");
  return grid.is_array() ? fmt::format("{}x{}", text_of(grid.at(0)), text_of(grid.at(1))) : "-";
}

std::string size_text(const SortedJson& report) {
  return fmt::format("{} x {}, {} columns", text_of(at(report, "/rows")), text_of(at(report, "/cols")),
                     text_of(at(report, "/nrhs")));
}

/// "3 converged, 1 stagnated"
std::string verdicts_text(const SortedJson& report) {
  std::map<std::string, int> counts;
  for (const SortedJson& column : report.value("columns", SortedJson::array()))
    ++counts[text_of(at(column, "/reason"))];
  std::string text;
  for (const auto& [reason, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, reason);
  return text.empty() ? "-" : text;
}

/// The largest of one entry over all columns, or the sum; "-" if a column's entry is missing or null.
std::string over_columns(const SortedJson& report, const char* place, bool sums) {
  double value = 0;
  const SortedJson columns = report.value("columns", SortedJson::array());
  for (const SortedJson& column : columns) {
    const SortedJson number = at(column, place);
    if (!number.is_number()) return "-";
    value = sums ? value + number.get<double>() : std::max(value, number.get<double>());
  }
  return columns.empty() ? "-" : number_text(value);
}

std::string largest_of(const SortedJson& numbers) {
  if (!numbers.is_array() || numbers.empty()) return "-";
  const SortedJson most = *std::max_element(numbers.begin(), numbers.end());
  return most.is_number_float() ? number_text(most.get<double>()) : bytes_text(most.get<Index>());
}

/// A file by its option, with its hash or size, which distinguishes it from others.
std::string file_text(const SortedJson& report, const char* option, bool hashed) {
  for (const SortedJson& file : report.value("files", SortedJson::array()))
    if (file.value("option", "") == option)
      return fmt::format("{} ({})", std::filesystem::path(file.value("path", "")).filename().string(),
                         hashed ? text_of(at(file, "/xxh3")) : text_of(at(file, "/bytes")) + " bytes");
  return "-";
}

/// Whether the report has the hashes of its files.
bool is_hashed(const SortedJson& report) {
  const SortedJson files = report.value("files", SortedJson::array());
  return std::all_of(files.begin(), files.end(),
                     [](const SortedJson& file) { return file.contains("xxh3"); });
}

struct ReportRow {
  const char* name;
  std::function<std::string(const SortedJson&)> text;
};

/// hashed: compare files by their hashes, not by their sizes.
std::vector<ReportRow> rows(bool hashed) {
  const auto plain = [](const char* name, const char* place) {
    return ReportRow{name, [place](const SortedJson& report) { return text_of(at(report, place)); }};
  };
  const auto file = [hashed](const char* name, const char* option) {
    return ReportRow{name, [=](const SortedJson& report) { return file_text(report, option, hashed); }};
  };
  const auto columns = [](const char* name, const char* place, bool sums) {
    return ReportRow{name,
                     [place, sums](const SortedJson& report) { return over_columns(report, place, sums); }};
  };
  const auto largest = [](const char* name, const char* place) {
    return ReportRow{name, [place](const SortedJson& report) { return largest_of(at(report, place)); }};
  };
  return {plain("date", "/date"),
          plain("version", "/version"),
          plain("processor", "/machine/processor"),
          plain("command", "/command"),
          plain("problem", "/problem"),
          {"size", size_text},
          plain("dtype", "/dtype"),
          file("A", "--matrix"),
          file("original", "--certify"),
          plain("verdicts are for", "/compressed/verdicts_for"),
          file("B", "--rhs"),
          file("X", "--input"),
          plain("solver", "/solver"),
          plain("damp", "/options/damp"),
          plain("damps", "/options/damps"),
          plain("chosen by", "/options/choose"),
          plain("chosen damp", "/sweep/damp"),
          plain("lambda", "/options/lambda"),
          plain("lambda-relative", "/options/lambda_relative"),
          plain("tolerance", "/options/tolerance"),
          {"grid", grid_text},
          plain("algorithm", "/algorithm"),
          plain("transport", "/transport"),
          plain("device", "/device"),
          {"columns", verdicts_text},
          plain("iterations", "/iterations"),
          columns("largest tested norm", "/tested_norm", false),
          columns("sum of residual norms", "/residual_norm", true),
          columns("objective", "/objective", true),
          columns("nonzeros", "/nonzeros", true),
          plain("seconds: read", "/seconds/read"),
          plain("seconds: setup", "/seconds/setup"),
          plain("seconds: compute", "/seconds/compute"),
          plain("seconds: write", "/seconds/write"),
          largest("seconds waiting, most", "/seconds_waiting"),
          largest("received, most", "/bytes_received"),
          largest("memory planned, most", "/memory_bytes/planned"),
          largest("memory, most", "/memory_bytes/peak")};
}

/// Leaves out rows in which no report has a value; marks those in which reports differ by "*".
std::string table(const Texts& paths, const std::vector<SortedJson>& reports) {
  std::vector<Texts> lines{{"", ""}};
  lines[0].insert(lines[0].end(), paths.begin(), paths.end());
  const bool hashed = std::all_of(reports.begin(), reports.end(), is_hashed);
  for (const ReportRow& row : rows(hashed)) {
    Texts cells;
    for (const SortedJson& report : reports) cells.push_back(row.text(report));
    if (std::count(cells.begin(), cells.end(), "-") == static_cast<std::ptrdiff_t>(cells.size())) continue;
    const bool differs = std::count(cells.begin(), cells.end(), cells[0]) != std::ssize(cells);
    cells.insert(cells.begin(), {differs ? "*" : "", row.name});
    lines.push_back(cells);
  }
  std::string text;
  for (const Texts& line : lines) {
    std::string shown;
    for (std::size_t k = 0; k < line.size(); ++k) {
      std::size_t width = 0;
      for (const Texts& other : lines) width = std::max(width, other[k].size());
      shown += fmt::format("{}{:<{}}", k == 0 ? "" : k == 1 ? " " : "  ", line[k], width);
    }
    text += shown.substr(0, shown.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

ExitStatus compare_reports(Communicator& world, const std::vector<std::string>& paths) {
  std::string text;
  attempt(world, [&] {
    if (world.rank() != 0) return;
    std::vector<SortedJson> reports;
    for (const std::string& path : paths) reports.push_back(read_report(path));
    try {
      text = table(paths, reports);
    } catch (const SortedJson::exception& error) {
      throw InputError(fmt::format("a report has something else than its schema says: {}", error.what()));
    }
  });
  print(text);
  return ExitStatus::done;
}

}  // namespace

Action define_report(Options& options) {
  const auto paths = std::make_shared<Texts>();
  options.words("R.json", *paths, "What --report of other subcommands has written");
  options.examples({"gridlops report R.json", "gridlops report first.json second.json"});
  return [paths](Communicator& world) { return compare_reports(world, *paths); };
}

}  // namespace gridlops::program
