// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>

#include "gridlops/solve/solve_observer.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

// Facts of a checkpoint that a restart asks for; `solve` adds those after the first two.
inline constexpr const char* grid_fact = "grid";
inline constexpr const char* algorithm_fact = "algorithm";
inline constexpr const char* choices_fact = "choices";    // Calibration::source_of_choices()
inline constexpr const char* one_pass_fact = "one pass";  // "on" or "off"
inline constexpr const char* storage_fact = "storage";    // as name_of() has it

/// What a run's bits depend on besides its files and options, as the manifest of a checkpoint has it.
using CheckpointFacts = std::map<std::string, std::string>;
CheckpointFacts facts_of_run(GridShape grid, Algorithm algorithm, const ProductArguments& product,
                             const std::string& choices);

/// Handles SIGUSR1, SIGTERM and SIGINT from now on. If the run saves its state, they ask for a checkpoint and
/// the end, and a second SIGINT ends the process at once. If not, SIGUSR1 only leads to a warning, and the
/// others end the process. talks: whether this rank says so.
void catch_signals(bool saves, bool talks);
/// Whether a signal has asked for a checkpoint and the end.
bool end_is_requested();
/// Tells the handlers of signals which iteration the run is in; while none watches, it is 0.
class IterationForSignals : public SolveObserver {
 public:
  ~IterationForSignals() override;
  bool step(const IterationInfo& info) override;
};

/// The arguments with the algorithm and the panel width of the run that is gone on with, where none were
/// asked for and the grid is the same.
SolveArguments adopt_choices(const CheckpointFacts& saved, GridShape grid, SolveArguments arguments);

/// A fact, empty if it was not saved.
std::string saved_fact(const CheckpointFacts& saved, const char* name);

/// The facts, in words, by which the results of a restart differ in rounding from those of a run without
/// interruption; empty if none is known.
std::string rounding_difference(const CheckpointFacts& saved, const CheckpointFacts& now);
}  // namespace gridlops::program
