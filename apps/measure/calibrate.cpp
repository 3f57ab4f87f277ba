// SPDX-License-Identifier: BSD-3-Clause

#include <fmt/format.h>

#include <array>

#include "command_line/console.hpp"
#include "measure/report.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

struct CalibrateArguments {
  std::optional<ScalarType> type;  ///< none: all
};

constexpr std::array<ScalarType, 4> all_types{ScalarType::f32, ScalarType::f64, ScalarType::c64,
                                              ScalarType::c128};

std::array<ProductChoices, 4> choices_of_all_types() {
  std::array<ProductChoices, 4> choices;
  for (std::size_t k = 0; k < choices.size(); ++k) choices[k] = product_choices(all_types[k]);
  return choices;
}

std::string place_text(const Calibration& calibration) {
  if (calibration.file.empty()) return "none: " + calibration.note;
  return calibration.file + (calibration.note.empty() ? "" : "; " + calibration.note);
}

std::string line(const std::string& label, const std::string& text) {
  return fmt::format("{:<14}{}\n", label, text);
}

/// What is chosen now, beside what is built in.
std::string text_of(const Calibration& calibration, const std::array<ProductChoices, 4>& built_in) {
  const auto beside = [](const std::string& now, const std::string& before) {
    return now == before ? now : fmt::format("{} (built in: {})", now, before);
  };
  const auto chosen = choices_of_all_types();
  std::string text = line("calibration", place_text(calibration));
  for (std::size_t k = 0; k < all_types.size(); ++k) {
    const ProductChoices &now = chosen[k], &before = built_in[k];
    text += line(fmt::format("  {}", name_of(all_types[k])),
                 fmt::format("{}: own kernels A X {}, A^H Y {}; packed {}; one pass {}",
                             calibration.source_of_choices(all_types[k]), beside(now.forward, before.forward),
                             beside(now.adjoint, before.adjoint), beside(now.packed, before.packed),
                             beside(now.one_pass, before.one_pass)));
  }
  return text;
}

ExitStatus calibrate(Communicator& world, const CalibrateArguments& arguments) {
  const auto built_in = choices_of_all_types();
  Calibration calibration;
  for (const ScalarType type : all_types) {
    if (arguments.type && *arguments.type != type) continue;
    calibration = measure_calibration(world, type, true);
    if (!calibration.is_new)
      throw UsageError(fmt::format("nothing was measured; the calibration is {}", place_text(calibration)));
  }
  if (world.rank() == 0) print(text_of(calibration, built_in));
  return ExitStatus::done;
}

}  // namespace

Calibration calibration_for(Communicator& world, const ProductShape& shape, bool may_measure, bool talks) {
  // Smaller blocks, and more columns, leave nothing to choose between storages and passes.
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
  options.choice("--dtype", arguments->type, scalar_types(), "Type of the elements [all]");
  options.examples({"gridlops calibrate --dtype f64", "mpirun -n 16 gridlops calibrate"});
  return [arguments](Communicator& world) { return calibrate(world, *arguments); };
}

}  // namespace gridlops::program
