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

/// What all ranks know before any matrix is read.
struct SolveTask {
  SolveArguments arguments;
  MachineModel machine;
  std::string machine_source;
  std::shared_ptr<const ProcessGrid> grid;
  NpyHeader A, B;
  std::optional<NpyHeader> X0;
  ProductShape shape;
  std::string promotions;  ///< lines about files whose elements become another type
  Algorithm algorithm = Algorithm::automatic;
  bool one_pass = false;
  Storage storage = Storage::columns;
  Sweep sweep;
  std::vector<double> tolerances;  ///< of each column; empty: all have one
  CheckpointFacts saved;           // of the run that a restart goes on with
  Calibration calibration;
};

/// Reads the headers of all inputs, and chooses what the arguments leave open (collective over world). Throws
/// InputError or UsageError on all ranks, also if a restart has other options than its run.
SolveTask read_task(Communicator& world, const SolveArguments& arguments, const Ranks& ranks);

AskedChoices asked_choices(const SolveArguments& arguments);
/// The same, where a restart with `--one-pass auto` goes on as the run was begun.
AskedChoices asked_choices(const SolveTask& task);
Layout layout_of_matrix(const SolveTask& task);
/// An iteration with all columns of the first batch, as the model has it.
PlannedIteration planned_iteration(const SolveTask& task);
/// Where choices between kernels, storages and passes come from.
std::string choices_of(const SolveTask& task);

}  // namespace gridlops::program
