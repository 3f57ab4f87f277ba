// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "bench/benchmarks.hpp"
#include "bench/comm/exchange.hpp"
#include "bench/measure/measurement.hpp"
#include "bench/measure/results.hpp"
#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "command_line/grid.hpp"
#include "command_line/machine_file.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/io/text_file.hpp"

namespace gridlops::bench {

namespace {

struct CalibrateArguments {
  std::vector<std::string> transports;  ///< empty: those that carry data in their own way
  std::string device = "cpu";
  int repetitions = 5;
  Index limit_order = 1024;  ///< as in Method
  Index limit_mib = 0;       ///< as in Method
  std::string machine;       ///< the file
};

using Json = nlohmann::ordered_json;
using program::Machine;

/// An operation on operands of some size: the bytes by which its time is reckoned, and the median time.
struct Timed {
  double bytes, seconds;
};

/// t = α + β·bytes with the smallest sum of squared relative errors. Neither is allowed to be less than
/// noise.
LinkModel fitted(const std::vector<Timed>& times) {
  // With weights 1/t the normal equations are [Σ1/t² Σb/t²; Σb/t² Σb²/t²] (α, β) = (Σ1/t, Σb/t).
  double ones = 0, crossed = 0, squares = 0, right_of_ones = 0, right_of_bytes = 0;
  for (const auto& [bytes, seconds] : times) {
    const double one = 1 / seconds, relative = bytes / seconds;
    ones += one * one;
    crossed += one * relative;
    squares += relative * relative;
    right_of_ones += one;
    right_of_bytes += relative;
  }
  const double determinant = ones * squares - crossed * crossed;
  constexpr double least_seconds = 1e-8, least_per_byte = 1e-13;
  double alpha = (right_of_ones * squares - right_of_bytes * crossed) / determinant;
  double beta = (right_of_bytes * ones - right_of_ones * crossed) / determinant;
  if (beta < least_per_byte) alpha = right_of_ones / ones;
  if (alpha < least_seconds) beta = right_of_bytes / squares;
  return {std::max(alpha, least_seconds), std::max(beta, least_per_byte)};
}

const Operation& operation_of(CommOperation operation) {
  const auto& all = all_operations();
  return *std::find_if(all.begin(), all.end(), [&](const Operation& candidate) {
    return candidate.name == program::name_of_link(operation);
  });
}

std::vector<Timed> time_operation(const ProcessGrid& grid, const Operation& operation, int repetitions) {
  const int ranks = grid.comm().size();
  const TravelType& type = *std::find_if(travel_types().begin(), travel_types().end(),
                                         [](const TravelType& t) { return std::string(t.name) == "f64"; });
  std::vector<Timed> times;
  for (const Index bytes : {Index{8}, Index{8} << 10, Index{64} << 10, Index{512} << 10, Index{4} << 20}) {
    const Index parts = (bytes / type.size() + ranks - 1) / ranks;
    Operands operands{.type = type, .in_place = !operation.can_be_out_of_place, .count = parts * ranks};
    std::optional<Exchange> exchange;
    attempt(grid.comm(), [&] { exchange.emplace(grid.comm(), grid.backend(), operation, operands); });
    exchange->prepare();
    const double moved = static_cast<double>(operands.count * type.size()) * operation.bus_factor(ranks);
    times.push_back({moved, median(time_exchange(grid, *exchange, 2, repetitions).seconds)});
  }
  return times;
}

/// The rates of one rank while all ranks compute, read and copy.
void measure_rates(const ProcessGrid& grid, const CalibrateArguments& arguments, Machine& machine) {
  LimitMeter meter(arguments.limit_order, arguments.limit_mib);
  const double ranks = grid.comm().size();
  std::vector<double> read, copied;
  for (const ScalarType type : {ScalarType::f32, ScalarType::f64, ScalarType::c64, ScalarType::c128}) {
    std::vector<double> flops;
    with_scalar_type(type, [&]<Scalar T>() {
      meter.measure<T>(grid);
      for (int repetition = 0; repetition < arguments.repetitions; ++repetition) {
        const MachineLimits limits = meter.measure<T>(grid);
        flops.push_back(limits.flops_per_second);
        read.push_back(limits.bytes_per_second);
      }
    });
    copied.push_back(meter.copied_bytes_per_second(grid));
    machine.rates.seconds_per_flop[static_cast<std::size_t>(type)] = ranks / median(flops);
  }
  machine.rates.seconds_per_read_byte = ranks / median(read);
  machine.rates.seconds_per_copied_byte = ranks / median(copied);
}

/// The links of all transports, and the times they were fitted to.
Json measure_links(Communicator& world, const CalibrateArguments& arguments, Machine& machine) {
  std::vector<std::string> transports = arguments.transports;
  if (transports.empty())
    transports = arguments.device == "gpu" ? std::vector<std::string>{"nccl", "mpi"}
                                           : std::vector<std::string>{"mpi", "chain"};
  Json all = Json::object();
  for (const std::string& transport : transports) {
    const auto grid = program::make_grid(world, GridShape{1, world.size()}, arguments.device, transport);
    const std::string name = grid->comm().transport();
    for (const CommOperation operation : program::linked_operations()) {
      const auto times = time_operation(*grid, operation_of(operation), arguments.repetitions);
      machine.links[name][static_cast<std::size_t>(operation)] = fitted(times);
      for (const auto& [bytes, seconds] : times)
        all[name][program::name_of_link(operation)].push_back({bytes, seconds});
    }
  }
  return all;
}

std::string text_of(const Machine& machine) {
  const MachineModel& rates = machine.rates;
  const auto giga = [](double seconds) { return 1e-9 / seconds; };
  std::string text = fmt::format(
      "of each of {} ranks, all at once: {:.1f} GFLOP/s f32, {:.1f} f64, {:.1f} c64, {:.1f} c128; {:.2f} "
      "GB/s "
      "read, {:.2f} copied\n{:<12} {:<15} {:>10} {:>8}\n",
      rates.ranks_of_links, giga(rates.seconds_per_flop[0]), giga(rates.seconds_per_flop[1]),
      giga(rates.seconds_per_flop[2]), giga(rates.seconds_per_flop[3]), giga(rates.seconds_per_read_byte),
      giga(rates.seconds_per_copied_byte), "transport", "operation", "us", "GB/s");
  for (const auto& [transport, links] : machine.links)
    for (const CommOperation operation : program::linked_operations()) {
      const LinkModel& link = links[static_cast<std::size_t>(operation)];
      text += fmt::format("{:<12} {:<15} {:>10.2f} {:>8.2f}\n", transport, program::name_of_link(operation),
                          1e6 * link.seconds_per_call, giga(link.seconds_per_byte));
    }
  return text;
}

ExitStatus calibrate(Communicator& world, const CalibrateArguments& arguments) {
  program::check_outputs(world, {}, {{"--json", arguments.machine, program::NamedFile::text}});
  Machine machine;
  machine.rates.ranks_of_links = world.size();
  measure_rates(*program::make_grid(world, GridShape{1, world.size()}, arguments.device, "auto"), arguments,
                machine);
  Json samples = Json::object();
  if (world.size() > 1) samples = measure_links(world, arguments, machine);
  Json json = program::json_of(machine);
  json["device"] = arguments.device;
  json["samples"] = samples;  // of links: bytes and seconds
  json["environment"] = environment(world);
  if (world.rank() == 0) program::print(text_of(machine));
  const bool is_emulated = arguments.device == "gpu" && gpu_info().model == "emulated";
  if (is_emulated) {
    json["note"] = "an emulated GPU: the figures mean nothing";
    if (world.rank() == 0) program::warn("these are figures of an emulated GPU, and mean nothing");
  }
  attempt(world, [&] {
    if (world.rank() != 0) return;
    write_text_file(arguments.machine, [text = program::json_text(json, 1) + "\n"]() mutable {
      return std::exchange(text, {});
    });
  });
  return ExitStatus::done;
}

}  // namespace

Action define_calibrate(Options& options) {
  const auto arguments = std::make_shared<CalibrateArguments>();
  options.text("--json", arguments->machine, "FILE", "The file of the machine")->required();
  options.choices("--transport", arguments->transports, program::transports(),
                  "What carries the data [mpi,chain; of a GPU nccl,mpi]");
  options.choice("--device", arguments->device, words({"cpu", "gpu"}),
                 "Where matrices live and products run [cpu]");
  options.whole("--reps", arguments->repetitions, "K", 1, "Repetitions; the median counts [5]");
  options.whole("--limit-order", arguments->limit_order, "N", 1,
                "Order of the product that measures the compute limit [1024]");
  options.whole("--limit-mib", arguments->limit_mib, "MIB", 0, about_limit_mib);
  return [arguments](Communicator& world) { return calibrate(world, *arguments); };
}

}  // namespace gridlops::bench
