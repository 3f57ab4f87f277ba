// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>

#include "bench/measure/results.hpp"
#include "command_line/console.hpp"
#include "gridlops/comm/gpu.hpp"

namespace gridlops::bench {

namespace {

using Json = nlohmann::ordered_json;

const char* place_of(const Operands& operands) { return operands.in_place ? "in" : "out"; }

std::string title_of_collectives() {
  return fmt::format(
      "{:<16} {:<10} {:<6} {:>5} {:>10} {:>10} {:<4} {:<5} {:>4} {:<5} {:>10} {:>10} {:>10} {:>7} {:>7} "
      "{:>6}  {}\n",
      "operation", "transport", "over", "ranks", "size", "count", "type", "redop", "root", "place", "time us",
      "min", "max", "algbw", "busbw", "#wrong", "carried by");
}

}  // namespace

void explain_columns_of_collectives(Options& options) {
  explain_columns(
      options,
      {"operation, transport    what is timed, and what carries its data",
       "over, ranks             the world, or rows or columns of the grid; ranks of each",
       "size, count             bytes and elements of the whole operand: --bytes, rounded up to whole",
       "                        elements and, where ranks have parts, to equal parts",
       "type, redop, root       of the elements; how they are reduced; the rank of --root; -: has none",
       "place                   in: a rank's part lies in the whole",
       "time us, min, max       an operation on the slowest rank: median, least and most of the samples",
       "algbw                   size over time, in GB/s; on one rank nothing is sent, and it means nothing",
       "busbw                   the rate of a link by the formulas of nccl-tests, in GB/s",
       "#wrong                  numbers that ranks found wrong",
       "carried by              the code that moves the data"});
}

std::string CommCase::reduction() const { return operation.reduces() ? name_of(operands.reduction) : "-"; }

std::string CommCase::root() const { return operation.has_root() ? std::to_string(operands.root) : "-"; }

std::string CommCase::key() const {
  return fmt::format("{} {} {} {} {} {} {} ", operation.name, over, operands.count, operands.type.name,
                     reduction(), root(), place_of(operands));
}

void ResultWriter::add_unmeasured(const CommResult& result) {
  const CommCase& what = result.what;
  // One row for all sizes, types and places.
  const Json json{{"operation", what.operation.name},
                  {"transport", what.transport},
                  {"over", what.over},
                  {"ranks", result.ranks},
                  {"instead", result.instead}};
  Json& all = document_["not_measured"];
  if (std::find(all.begin(), all.end(), json) != all.end()) return;
  all.push_back(json);
  print(title_of_collectives(), fmt::format("{:<16} {:<10} {:<6} {:>5} {}\n", what.operation.name,
                                            what.transport, what.over, result.ranks, result.instead));
}

void ResultWriter::add(const CommResult& result) {
  if (world_.rank() != 0) return;
  if (!result.instead.empty()) return add_unmeasured(result);
  const CommCase& what = result.what;
  const double seconds = median(result.seconds);
  const auto [least, most] = std::minmax_element(result.seconds.begin(), result.seconds.end());
  const double algbw = static_cast<double>(what.bytes()) / seconds / 1e9,
               busbw = algbw * what.operation.bus_factor(result.ranks);
  print(title_of_collectives(),
        fmt::format(
            "{:<16} {:<10} {:<6} {:>5} {:>10} {:>10} {:<4} {:<5} {:>4} {:<5} {:>10.2f} {:>10.2f} {:>10.2f} "
            "{:>7.2f} {:>7.2f} {:>6}  {}\n",
            what.operation.name, what.transport, what.over, result.ranks, what.bytes(), what.operands.count,
            what.operands.type.name, what.reduction(), what.root(), place_of(what.operands), 1e6 * seconds,
            1e6 * *least, 1e6 * *most, algbw, busbw, result.wrong, result.carrier));
  document_["results"].push_back(
      {{"operation", what.operation.name},
       {"transport", what.transport},
       {"over", what.over},
       {"ranks", result.ranks},
       {"bytes", what.bytes()},
       {"count", what.operands.count},
       {"dtype", what.operands.type.name},
       {"reduction", what.reduction()},
       {"root", what.operation.has_root() ? Json(what.operands.root) : Json()},
       {"place", place_of(what.operands)},
       {"carrier", result.carrier},
       {"bytes_sent", what.operation.is_one_sided() ? Json() : Json(result.bytes_sent)},
       {"repetitions", result.seconds.size()},
       {"operations_in_a_sample", result.in_a_row},
       {"seconds", seconds},
       {"seconds_min", *least},
       {"seconds_max", *most},
       {"samples", result.seconds},
       {"algbw_gbs", algbw},
       {"busbw_gbs", busbw},
       {"wrong", result.wrong}});
  count(result.wrong > 0,
        fmt::format("{} numbers of {} by {}, {} bytes of {}", result.wrong, what.operation.name,
                    what.transport, what.bytes(), what.operands.type.name));
}

void ResultWriter::add_absent(const std::string& transport, const std::string& reason) {
  if (world_.rank() != 0) return;
  print(title_of_collectives(), fmt::format("{:<16} {:<10} not here: {}\n", "all", transport, reason));
  document_["not_measured"].push_back({{"transport", transport}, {"instead", "not here: " + reason}});
}

void ResultWriter::print_header(const std::string& subcommand) {
  if (world_.rank() != 0) return;
  has_header_ = true;
  const Json& facts = document_["environment"];
  const auto text = [&](const char* key) { return facts[key].get<std::string>(); };
  program::print(fmt::format("# gridlops-bench {} {} ({}), {} as {}; {}; {}\n", subcommand, text("version"),
                             text("commit"), text("compiler"), text("build_type"), text("mpi"),
                             text("blas")));
  for (const Json& place : facts["placement"]) {
    const Json& ranks = place["ranks"];
    program::print(fmt::format("# {} rank{} ({} … {}) on {}, cores {}\n", ranks.size(),
                               ranks.size() == 1 ? "" : "s", ranks.front().get<int>(),
                               ranks.back().get<int>(), place["host"].get<std::string>(),
                               place["cores"].get<std::string>()));
  }
  program::print(fmt::format("# {}, {} cores, load {:.1f}; GPU {}\n", text("cpu"), facts["cores"].get<int>(),
                             facts["load_average"].get<double>(), text("gpu")));
  std::string settings;
  for (const auto& entry : facts["settings"].items())
    settings += fmt::format(" {}={}", entry.key(), entry.value().get<std::string>());
  program::print(fmt::format("#{}\n", settings.empty() ? " no settings of MPI or NCCL" : settings));
  if (gpu_info().model == "emulated") program::print("# The GPU is emulated: times on it mean nothing.\n");
}

}  // namespace gridlops::bench
