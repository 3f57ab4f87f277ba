// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command_line/grid.hpp"
#include "gridlops/io/npy.hpp"
#include "solve/checkpointing.hpp"
#include "solve/solver_choices.hpp"
#include "solve/sweep.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

/// Everything that all ranks know before any matrix is read.
struct SolveTask {
  SolveArguments arguments;
  MachineModel machine;
  std::string machine_source;
  std::shared_ptr<const ProcessGrid> grid;
  NpyHeader A, B;
  std::optional<NpyHeader> X0;
  ProductShape shape;
  std::string promotions;  ///< lines about files whose elements are converted
  Algorithm algorithm = Algorithm::automatic;
  bool one_pass = false;
  Storage storage = Storage::columns;
  Sweep sweep;
  std::vector<double> tolerances;  ///< of each column; empty: all have one
  CheckpointFacts saved;           // of the run that a restart continues
  Calibration calibration;
};

/// Reads the headers of all inputs, and chooses what the arguments leave open (collective over world). Throws
/// InputError or UsageError on all ranks, also if a restart has other options than its run.
SolveTask read_task(Communicator& world, const SolveArguments& arguments, const Ranks& ranks);

AskedChoices asked_choices(const SolveArguments& arguments);
/// The same; a restart with `--one-pass auto` continues with the first run's choice.
AskedChoices asked_choices(const SolveTask& task);
Layout layout_of_matrix(const SolveTask& task);
/// The model's figures for an iteration with all columns of the first batch.
PlannedIteration planned_iteration(const SolveTask& task);
/// The source of choices between kernels, storages and passes.
std::string choices_of(const SolveTask& task);

}  // namespace gridlops::program
