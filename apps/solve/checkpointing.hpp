// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>

#include "gridlops/solve/solve_observer.hpp"
#include "solve/task/solve_arguments.hpp"

namespace gridlops::program {

// Facts of a checkpoint that a restart reads. `solve` adds all but the first two.
inline constexpr const char* grid_fact = "grid";
inline constexpr const char* algorithm_fact = "algorithm";
inline constexpr const char* choices_fact = "choices";    // Calibration::source_of_choices()
inline constexpr const char* one_pass_fact = "one pass";  // "on" or "off"
inline constexpr const char* storage_fact = "storage";    // as name_of_storage() writes it
inline constexpr const char* history_fact = "history";  // "whole" if it has one, from the first iteration on

/// The facts that determine a run's bits, besides its files and options, as a checkpoint's manifest stores
/// them.
using CheckpointFacts = std::map<std::string, std::string>;
CheckpointFacts facts_of_run(const ProcessGrid& grid, Algorithm algorithm, const ProductArguments& product,
                             const std::string& choices);

/// Handles SIGUSR1, SIGTERM and SIGINT from now on. If the run saves its state, they ask for a checkpoint and
/// then the end, and a second SIGINT ends the process at once. Otherwise SIGUSR1 only causes a warning, and
/// the others end the process. talks: whether this rank prints that.
void catch_signals(bool saves, bool talks);
/// Whether a signal has asked for a checkpoint and the end.
bool end_is_requested();
/// Tells the signal handlers the run's iteration; 0 while no observer watches.
class IterationForSignals : public SolveObserver {
 public:
  ~IterationForSignals() override;
  bool step(const IterationInfo& info) override;
};

/// Returns the arguments. If the grid is that of the run that a restart continues, fills in that run's
/// algorithm and panel width where the arguments leave them open.
SolveArguments adopt_choices(const CheckpointFacts& saved, GridShape grid, SolveArguments arguments);

/// A fact; empty if the checkpoint lacks it.
std::string saved_fact(const CheckpointFacts& saved, const char* name);

/// The facts, in words, that make a restart's results differ in rounding from those of an uninterrupted run;
/// empty if none is known.
std::string rounding_difference(const CheckpointFacts& saved, const CheckpointFacts& now);
}  // namespace gridlops::program
