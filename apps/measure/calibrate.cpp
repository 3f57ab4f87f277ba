// SPDX-License-Identifier: BSD-3-Clause

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "command_line/console.hpp"
#include "command_line/grid.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/io/text_file.hpp"
#include "machine/limits.hpp"
#include "machine/machine_file.hpp"
#include "measure/report.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

struct CalibrateArguments {
  std::optional<ScalarType> type;       ///< of the products; none: all
  std::vector<std::string> transports;  ///< empty: all with code of their own
  std::string device = "cpu";           ///< of the rates
};

constexpr int repetitions = 3;

std::array<ProductChoices, 4> choices_of_all_types() {
  std::array<ProductChoices, 4> choices;
  for (std::size_t k = 0; k < choices.size(); ++k) choices[k] = product_choices(all_scalar_types[k]);
  return choices;
}

std::string place_text(const Calibration& calibration) {
  if (calibration.file.empty()) return "none: " + calibration.note;
  return calibration.file + (calibration.note.empty() ? "" : "; " + calibration.note);
}

std::string line(const std::string& label, const std::string& text) {
  return fmt::format("{:<14}{}\n", label, text);
}

/// The current choices, next to the built-in ones.
std::string text_of(const Calibration& calibration, const std::array<ProductChoices, 4>& built_in) {
  const auto beside = [](const std::string& now, const std::string& before) {
    return now == before ? now : fmt::format("{} (built in: {})", now, before);
  };
  const auto chosen = choices_of_all_types();
  std::string text = line("calibration", place_text(calibration));
  for (std::size_t k = 0; k < all_scalar_types.size(); ++k) {
    const ProductChoices &now = chosen[k], &before = built_in[k];
    text += line(fmt::format("  {}", name_of(all_scalar_types[k])),
                 fmt::format("{}: own kernels A X {}, A^H Y {}; packed {}; one pass {}",
                             calibration.source_of_choices(all_scalar_types[k]),
                             beside(now.forward, before.forward), beside(now.adjoint, before.adjoint),
                             beside(now.packed, before.packed), beside(now.one_pass, before.one_pass)));
  }
  return text;
}

/// An operation on operands of one size: the bytes that the model counts, and the median time.
struct Timed {
  double bytes, seconds;
};

/// t = α + β·bytes with the smallest sum of squared relative errors. Neither is smaller than noise.
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

/// Operands of one operation, of which each rank has an equal part, or rank 0 the whole.
class Exchange {
 public:
  Exchange(const ProcessGrid& grid, CommOperation operation, Index part)
      : comm_(grid.comm()),
        backend_(*grid.backend()),
        operation_(operation),
        part_(part),
        in_(grid.backend(), whole()),
        out_(grid.backend(), whole()) {
    backend_.kernels<double>().fill(0, in_.matrix(whole(), 1));
    backend_.kernels<double>().fill(0, out_.matrix(whole(), 1));
  }

  void run() {
    const Index of_root = comm_.rank() == 0 ? whole() : 0;
    double *const in = in_.data(), *const out = out_.data();
    switch (operation_) {
      case CommOperation::broadcast:
        return comm_.broadcast({out, whole()}, 0);
      case CommOperation::reduce:
        return comm_.reduce({in, whole()}, {out, of_root}, ReduceOp::sum, 0);
      case CommOperation::all_reduce:
        return comm_.all_reduce({out, whole()}, ReduceOp::sum);
      case CommOperation::scatter:
        return comm_.scatter({in, of_root}, {out, part_}, 0);
      case CommOperation::all_gather:
        return comm_.all_gather({in, part_}, {out, whole()});
      default:
        return comm_.reduce_scatter({in, whole()}, {out, part_}, ReduceOp::sum);
    }
  }

  /// Seconds per operation, `often` times in a row, on the slowest rank (collective over the grid).
  double seconds(const ProcessGrid& grid, Index often) {
    backend_.synchronize();
    comm_.barrier();
    const double begin = now();
    for (Index k = 0; k < often; ++k) run();
    backend_.synchronize();
    return maximum(grid, (now() - begin) / static_cast<double>(often));
  }

  /// The bytes that a rank receives, as LinkModel counts them.
  double bytes_moved() const {
    const bool is_whole = operation_ == CommOperation::broadcast || operation_ == CommOperation::reduce;
    const double parts = is_whole                                  ? comm_.size()
                         : operation_ == CommOperation::all_reduce ? 2 * (comm_.size() - 1)
                                                                   : comm_.size() - 1;
    return parts * static_cast<double>(part_) * sizeof(double);
  }

 private:
  Index whole() const { return part_ * comm_.size(); }

  Communicator& comm_;
  Backend& backend_;
  CommOperation operation_;
  Index part_;
  Buffer<double> in_, out_;
};

LinkModel measure_link(const ProcessGrid& grid, CommOperation operation) {
  std::vector<Timed> times;
  for (const Index bytes : {Index{8}, Index{8} << 10, Index{64} << 10, Index{512} << 10, Index{4} << 20}) {
    const Index count = bytes / Index{sizeof(double)}, ranks = grid.comm().size();
    std::optional<Exchange> exchange;
    attempt(grid.comm(), [&] { exchange.emplace(grid, operation, (count + ranks - 1) / ranks); });
    const auto in_a_row = static_cast<Index>(std::clamp(1e-3 / exchange->seconds(grid, 2), 1.0, 200.0));
    std::vector<double> seconds;
    for (int repetition = 0; repetition < repetitions; ++repetition)
      seconds.push_back(exchange->seconds(grid, in_a_row));
    times.push_back({exchange->bytes_moved(), median(seconds)});
  }
  return fitted(times);
}

/// The rates of one rank while all ranks compute, read and copy.
void measure_rates(const ProcessGrid& grid, MachineModel& rates) {
  constexpr Index order = 1024, chosen = 0;
  LimitMeter meter(order, chosen);
  const double ranks = grid.comm().size();
  std::vector<double> read, copied;
  for (const ScalarType type : all_scalar_types) {
    std::vector<double> flops;
    with_scalar_type(type, [&]<Scalar T>() {
      meter.measure<T>(grid);
      for (int repetition = 0; repetition < repetitions; ++repetition) {
        const MachineLimits limits = meter.measure<T>(grid);
        flops.push_back(limits.flops_per_second);
        read.push_back(limits.bytes_per_second);
      }
    });
    copied.push_back(meter.copied_bytes_per_second(grid));
    rates.seconds_per_flop[static_cast<std::size_t>(type)] = ranks / median(flops);
  }
  rates.seconds_per_read_byte = ranks / median(read);
  rates.seconds_per_copied_byte = ranks / median(copied);
}

Machine measure_machine(Communicator& world, const CalibrateArguments& arguments) {
  const GridShape shape{1, world.size()};
  Machine machine;
  machine.rates.ranks_of_links = world.size();
  measure_rates(*make_grid(world, shape, arguments.device), machine.rates);
  std::vector<std::string> transports = arguments.transports;
  if (transports.empty())
    transports = arguments.device == "gpu" ? std::vector<std::string>{"nccl", "mpi"}
                                           : std::vector<std::string>{"mpi", "chain"};
  if (world.size() == 1) transports.clear();
  for (const std::string& transport : transports) {
    const auto grid = make_grid(world, shape, arguments.device, transport);
    for (const CommOperation operation : linked_operations())
      machine.links[grid->comm().transport()][static_cast<std::size_t>(operation)] =
          measure_link(*grid, operation);
  }
  return machine;
}

std::string rates_text(const Machine& machine) {
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
    for (const CommOperation operation : linked_operations()) {
      const LinkModel& link = links[static_cast<std::size_t>(operation)];
      text += fmt::format("{:<12} {:<15} {:>10.2f} {:>8.2f}\n", transport, name_of_link(operation),
                          1e6 * link.seconds_per_call, giga(link.seconds_per_byte));
    }
  return text;
}

/// Writes the rates beside the times of products. Rank 0 alone calls it.
void keep(const std::string& path, const Machine& machine) {
  std::ifstream file(path);
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(file, nullptr, false);
  if (!json.is_object()) throw OutputError(fmt::format("{}: another program has changed it meanwhile", path));
  json["rates"] = json_of(machine);
  write_text_file(path, [text = json_text(json) + "\n"]() mutable { return std::exchange(text, {}); });
}

ExitStatus calibrate(Communicator& world, const CalibrateArguments& arguments) {
  const auto built_in = choices_of_all_types();
  Calibration calibration;
  for (const ScalarType type : all_scalar_types) {
    if (arguments.type && *arguments.type != type) continue;
    calibration = measure_calibration(world, type, true);
    if (!calibration.is_new)
      throw UsageError(fmt::format("nothing was measured; the calibration is {}", place_text(calibration)));
  }
  const Machine machine = measure_machine(world, arguments);
  attempt(world, [&] {
    if (world.rank() == 0) keep(calibration.file, machine);
  });
  if (world.rank() != 0) return ExitStatus::done;
  print(text_of(calibration, built_in) + rates_text(machine));
  if (arguments.device == "gpu" && gpu_info().model == "emulated")
    warn("these are figures of an emulated GPU, and mean nothing");
  return ExitStatus::done;
}

}  // namespace

Calibration calibration_for(Communicator& world, const ProductShape& shape, bool may_measure, bool talks) {
  // With smaller blocks, or more columns, storages and passes make no difference.
  constexpr Index least_bytes = Index{32} << 20, most_columns = 128;
  const Index bytes = shape.rows * shape.cols * size_of(shape.type) / world.size();
  if (!may_measure || bytes <= least_bytes || shape.nrhs > most_columns) return load_calibration(world);
  Stopwatch clock;
  Calibration calibration = measure_calibration(world, shape.type);
  if (talks && calibration.is_new) {
    print(fmt::format("products of {} were measured on this machine, once, in {}: {}\n", name_of(shape.type),
                      duration_text(clock.lap()), place_text(calibration)));
  }
  return calibration;
}

std::string calibration_text(Communicator& world) {
  const auto built_in = choices_of_all_types();
  return text_of(load_calibration(world), built_in);
}

Action define_calibrate(Options& options) {
  const auto arguments = std::make_shared<CalibrateArguments>();
  options.choice("--dtype", arguments->type, scalar_types(), "Type of the elements of products [all]");
  options.choice("--device", arguments->device, words({"cpu", "gpu"}),
                 "Where a plan's matrices live and its products run [cpu]");
  options.choices("--transport", arguments->transports, transports(),
                  "What carries a plan's data [mpi,chain; of a GPU nccl,mpi]");
  options.examples({"gridlops calibrate --dtype f64", "mpirun -n 16 gridlops calibrate"});
  return [arguments](Communicator& world) { return calibrate(world, *arguments); };
}

}  // namespace gridlops::program
