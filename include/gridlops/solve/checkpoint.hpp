// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops {

/// Saving the complete state of a solver between two iterations, so that a job that dies or runs out of time
/// can go on. With the operands and options of the first run, on a grid of the same shape, with the same
/// operator and BLAS, a restart ends with the same bits as a run that was never interrupted, if sums over
/// ranks repeat theirs (NCCL's may not; column_stable makes them); on another grid with the same result to
/// within rounding. Options that solver_options() calls honoured may have other values, such as more
/// iterations: the end at their limit is saved, too. Those that it calls fixed must have the same.
///
/// The directory holds the newest two checkpoints and a manifest.json of the newest, which is written last.
/// The files are written by all members of the grid, and are checked against their hashes when read.
///
/// One job at a time saves there: while a solver runs it holds the file `lock` in the directory, by a lock of
/// the system that ends with its process. What an earlier run saved is replaced only by a restart from it.
struct CheckpointOptions {
  /// Made if missing; empty: nothing is saved. OutputError on all ranks, before anything is computed, if
  /// another job saves there, or if there is a checkpoint that this is no restart from.
  std::string directory{};
  Index every_iterations = 0;  ///< 0: the number of iterations is no reason to save
  double every_seconds = 0;    ///< on the clock of the grid's first rank; 0: time is no reason to save
  /// Asked on every member in each iteration. If true on any, the state is saved after that iteration, and
  /// the solver throws Suspended on all.
  std::function<bool()> requested{};
  /// They are kept in the manifest, for example to say what made the operator.
  std::map<std::string, std::string> facts{};
  /// A directory with a checkpoint to go on from; empty: starts anew. InputError on all ranks if it is
  /// damaged, or was written for another problem, which is told by a product with the operator, or with
  /// another value of a fixed option.
  std::string restart{};
  /// Fixed options, "lambda" so far, whose values the caller computed from A and B, so that they differ by
  /// rounding on another grid. A restart takes those that were saved.
  std::vector<std::string> computed{};
};

/// The facts of the checkpoint in a directory (collective over comm): those it was written with, the
/// "problem" in words, and the "iteration". Throws InputError on all ranks if there is none, or a damaged
/// one.
GRIDLOPS_EXPORT std::map<std::string, std::string> checkpoint_facts(Communicator& comm,
                                                                    const std::string& directory);

/// Throws OutputError on all ranks where a solver with these options would before it computes (collective
/// over comm), so that a program can ask before it reads its input.
GRIDLOPS_EXPORT void check_checkpoint_directory(Communicator& comm, const CheckpointOptions& options);

/// The newest folder in a directory of checkpoints that a job left unfinished because it was killed; empty if
/// there is none (collective over comm). A restart goes on from the last checkpoint that was finished. The
/// next one that is removes the folder.
GRIDLOPS_EXPORT std::string unfinished_checkpoint(Communicator& comm, const std::string& directory);

}  // namespace gridlops
