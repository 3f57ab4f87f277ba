// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>

#include "arguments.hpp"
#include "gridlops/checkpoint.hpp"

namespace gridlops::program {

// Facts that are asked for again; `solve` adds the last two.
inline constexpr const char* algorithm_fact = "algorithm";
inline constexpr const char* one_pass_fact = "one pass";  // "on" or "off"
inline constexpr const char* storage_fact = "storage";    // as name_of() has it

/// What a run's bits depend on besides its files and options, as a checkpoint's manifest has it.
using RunFactsText = std::map<std::string, std::string>;
RunFactsText facts_of_run(GridShape grid, Algorithm algorithm, const ProductArguments& product);

/// From now on SIGUSR1, SIGTERM and SIGINT ask for a checkpoint and the end, a second SIGINT for the end at
/// once. Where no checkpoint was asked for, SIGUSR1 only leads to a warning, and the others end the process.
/// talks: whether this rank says so.
void catch_signals(bool saves, bool talks);
/// While it lives, signals are answered with the iteration that it was last told of.
class IterationsUnderWay {
 public:
  IterationsUnderWay() = default;
  IterationsUnderWay(const IterationsUnderWay&) = delete;
  IterationsUnderWay& operator=(const IterationsUnderWay&) = delete;
  ~IterationsUnderWay() { note(0); }
  static void note(Index iteration);
};

/// For the solver. Facts: of this run.
CheckpointOptions checkpoint_options(const CheckpointArguments& arguments, RunFactsText facts);

/// What a restart takes over from the run before where nothing else was asked for: a way to form products, if
/// the grid is the same.
void adopt_choices(const RunFactsText& saved, GridShape grid, ProductArguments& product);

/// A fact, empty if it was not saved.
std::string saved_fact(const RunFactsText& saved, const char* name);

/// What makes the results of a restart differ from those of a run without interruption by rounding, in words;
/// empty: nothing that is known.
std::string rounding_difference(const RunFactsText& saved, const RunFactsText& now);

/// "20", "30s", "10m" or "2h" as reasons for a checkpoint.
std::string interval_problem(const std::string& text);
void take_interval(const std::string& text, CheckpointArguments& arguments);

}  // namespace gridlops::program
