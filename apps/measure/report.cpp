// SPDX-License-Identifier: BSD-3-Clause
#include "measure/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "command_line/console.hpp"
#include "gridlops/base/version.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/io/text_file.hpp"
#include "gridlops/local/backend.hpp"
#include "machine/memory_limit.hpp"

namespace gridlops::program {

namespace {

// Keeps entries in the order in which they are added, and writes null for numbers that are not finite.
using Json = nlohmann::ordered_json;

/// The measurements of all ranks together, which rank 0 has.
struct AllMeasurements {
  std::array<double, 4> seconds{};  ///< of the slowest rank: read, setup, compute, write
  std::vector<Index> bytes_sent, bytes_received;
  std::vector<double> seconds_waiting;
  double predicted_part_seconds = -1;  ///< of the slowest rank
  std::vector<Index> predicted_bytes_received, counted_bytes_received;
  std::vector<Index> planned_bytes, peak_bytes;
};

AllMeasurements collect(Communicator& world, const Measurements& mine) {
  AllMeasurements all;
  const std::array<double, 4> seconds{mine.read_seconds, mine.setup_seconds, mine.compute_seconds,
                                      mine.write_seconds};
  world.reduce(seconds, all.seconds, ReduceOp::max, 0);
  const auto gather = [&]<class Number>(Number value) {
    const std::array<Number, 1> one{value};
    std::vector<Number> values(world.rank() == 0 ? static_cast<std::size_t>(world.size()) : 0);
    world.gather(one, values, 0);
    return values;
  };
  all.bytes_sent = gather(mine.bytes_sent);
  all.bytes_received = gather(mine.bytes_received);
  all.seconds_waiting = gather(mine.seconds_waiting);
  std::array<double, 1> slowest{mine.predicted_part_seconds};
  world.all_reduce(slowest, ReduceOp::max);
  all.predicted_part_seconds = slowest[0];
  all.predicted_bytes_received = gather(mine.predicted_bytes_received);
  all.counted_bytes_received = gather(mine.counted_bytes_received);
  all.planned_bytes = gather(mine.planned_bytes);
  all.peak_bytes = gather(peak_bytes());
  return all;
}

Json json_of(const ColumnReport& column) {
  Json json{{"reason", name_of(column.reason)},      {"iterations", column.iterations},
            {"residual_norm", column.residual_norm}, {"normal_residual_norm", column.normal_residual_norm},
            {"tested_norm", column.tested_norm},     {"reference_norm", column.reference_norm}};
  // Only lsqr and lsmr estimate these.
  if (column.condition > 0) {
    json["operator_norm"] = column.operator_norm;
    json["condition"] = column.condition;
  }
  return json;
}

const char* name_of(GuardAlarm::Kind kind) {
  switch (kind) {
    case GuardAlarm::Kind::gap:
      return "gap";
    case GuardAlarm::Kind::norm:
      return "norm";
    case GuardAlarm::Kind::non_finite:
      break;
  }
  return "non_finite";
}

Json json_of(const GuardAlarm& alarm) {
  return {{"kind", name_of(alarm.kind)},
          {"iteration", alarm.iteration},
          {"column", alarm.column},
          {"found", alarm.found},
          {"limit", alarm.limit}};
}

/// The bytes of all ranks; null if those of one are negative, which means unknown.
Json known(const std::vector<Index>& bytes) {
  return std::any_of(bytes.begin(), bytes.end(), [](Index count) { return count < 0; }) ? Json()
                                                                                        : Json(bytes);
}

/// The model's figures next to the measured and counted ones; null if unknown.
Json json_of(const RunFacts::Prediction& prediction, const AllMeasurements& all) {
  const double measured = all.predicted_part_seconds;
  return {
      {"per", prediction.per},
      {"machine", prediction.machine},
      {"seconds",
       {{"predicted", prediction.seconds},
        {"measured", measured < 0 ? Json() : Json(measured)},
        {"ratio", measured < 0 || prediction.seconds <= 0 ? Json() : Json(measured / prediction.seconds)}}},
      {"bytes_received",
       {{"predicted", known(all.predicted_bytes_received)}, {"counted", known(all.counted_bytes_received)}}}};
}

Json json_of(const RunFacts& facts, int ranks, const AllMeasurements& all, const Json& record,
             const SolveReport* solved) {
  Json report{{"schema", "gridlops.report/1"},
              {"command", facts.command},
              {"version", version},
              {"grid", {facts.grid.rows, facts.grid.cols}},
              {"ranks", ranks},
              {"dtype", name_of(facts.shape.type)},
              {"rows", facts.shape.rows},
              {"cols", facts.shape.cols},
              {"nrhs", facts.shape.nrhs},
              {"transport", facts.transport},
              {"device", facts.device},
              {"seconds",
               {{"read", all.seconds[0]},
                {"setup", all.seconds[1]},
                {"compute", all.seconds[2]},
                {"write", all.seconds[3]}}},
              {"bytes_sent", all.bytes_sent},
              {"bytes_received", all.bytes_received},
              {"seconds_waiting", all.seconds_waiting},
              {"memory_bytes", {{"planned", known(all.planned_bytes)}, {"peak", known(all.peak_bytes)}}}};
  if (facts.product) {
    report["algorithm"] = facts.product->algorithm;
    report["storage"] = facts.product->storage;
    report["own_kernels"] = own_kernels();
  }
  report["choices"] = facts.choices;
  report.update(record);
  if (!facts.problem.empty()) report["problem"] = facts.problem;
  report["options"] = facts.options.is_null() ? Json::object() : facts.options;
  report["files"] = Json::array();
  for (const RunFile& file : facts.files)
    if (!file.path.empty()) report["files"].push_back(json_of(file, facts.hashes));
  if (facts.prediction) report["prediction"] = json_of(*facts.prediction, all);
  for (const auto& [name, value] : facts.figures) report["figures"][name] = value;
  if (solved == nullptr) return report;
  report["solver"] = solved->solver;
  report["iterations"] = solved->iterations;
  if (!facts.sweep.is_null()) report["sweep"] = facts.sweep;
  if (!facts.compressed.is_null()) report["compressed"] = facts.compressed;
  report["columns"] = Json::array();
  for (std::size_t j = 0; j < solved->columns.size(); ++j) {
    Json column = json_of(solved->columns[j]);
    for (const auto& [name, values] : facts.column_figures) column[name] = values[j];
    report["columns"].push_back(column);
  }
  if (solved->guard_products == 0) return report;
  report["guard"] = {{"products", solved->guard_products}, {"alarms", Json::array()}};
  for (const GuardAlarm& alarm : solved->alarms) report["guard"]["alarms"].push_back(json_of(alarm));
  return report;
}

}  // namespace

void Measurements::compute(const ProcessGrid& grid, const std::function<void()>& work) {
  const Traffic before = grid.comm().traffic();
  Stopwatch clock;
  work();
  grid.backend()->synchronize();
  compute_seconds += clock.lap();
  const Traffic& after = grid.comm().traffic();
  bytes_sent += after.bytes_sent - before.bytes_sent;
  bytes_received += after.bytes_received - before.bytes_received;
  bytes_read_from_peers += after.bytes_read_from_peers - before.bytes_read_from_peers;
  seconds_waiting += after.seconds_waiting - before.seconds_waiting;
}

void write_report(Communicator& world, const std::string& path, const RunFacts& facts,
                  const Measurements& mine, const SolveReport* solved) {
  if (path.empty()) return;
  const AllMeasurements all = collect(world, mine);
  const Json record = record_of_run(world);
  attempt(world, [&] {
    if (world.rank() != 0) return;
    write_text_file(path, [text = json_text(json_of(facts, world.size(), all, record, solved), 1) +
                                  "\n"]() mutable { return std::exchange(text, {}); });
  });
}

void write_history(Communicator& world, const std::string& path, const SolveReport& solved) {
  if (path.empty()) return;
  attempt(world, [&] {
    if (world.rank() != 0) return;
    std::string rows = "iteration,column,residual_norm,tested_norm\n";
    write_text_file(path, [&, next = solved.history.begin()]() mutable {
      constexpr std::size_t enough = 1 << 16;
      for (; next != solved.history.end() && rows.size() < enough; ++next)
        for (std::size_t k = 0; k < next->columns.size(); ++k)
          rows += fmt::format("{},{},{},{}\n", next->iteration, next->columns[k], next->residual_norms[k],
                              next->tested_norms[k]);
      return std::exchange(rows, {});
    });
  });
}

}  // namespace gridlops::program
