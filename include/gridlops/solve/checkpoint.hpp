// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops {

/// Saves the complete state of a solver between two iterations, so that a job that dies or runs out of time
/// can be continued. Take the operands and options of the first run, a grid of the same shape, and the same
/// operator, transport and BLAS: if the sums over ranks are repeatable, a restart ends with the same bits as
/// an uninterrupted run. NCCL's sums may not be; column_stable makes them so. On another grid the result
/// agrees to within rounding. Options that solver_options() calls honoured may have new values, for example
/// more iterations or another tolerance: the state at the end is saved too, unless an observer has ended the
/// solver. Options that it calls fixed must keep their values.
///
/// If a checkpoint cannot be written, the first rank prints a warning, and the solver goes on and tries again
/// when the next one is due. Only where the state was requested, since the job must end, it throws
/// OutputError on all ranks.
///
/// The directory holds the two newest checkpoints and a manifest.json of the newest one, which is written
/// last. All members of the grid write the files, and check them against their hashes when reading. Older
/// checkpoints are removed; a folder generation-N that holds anything else is left alone.
///
/// Only one job at a time saves to a directory: while a solver runs it holds the file `lock` there with a
/// system lock that ends with its process. Only a restart from what an earlier run saved replaces it.
/// Reasons: docs/decisions/0006-checkpoints.md.
struct CheckpointOptions {
  /// Created if missing; empty: nothing is saved. Throws OutputError on all ranks, before computing anything,
  /// if another job saves there, or if there is a checkpoint from which this run does not restart.
  std::string directory{};
  Index every_iterations = 0;  ///< 0: do not save by number of iterations
  double every_seconds = 0;    ///< on the clock of the grid's first rank; 0: do not save by time
  /// Called on every member in each iteration. If it returns true on any, the solver saves the state after
  /// that iteration and throws Suspended on all members.
  std::function<bool()> requested{};
  /// Kept in the manifest, for example to describe how the operator was made.
  std::map<std::string, std::string> facts{};
  /// A directory with a checkpoint to continue from; empty: start from the beginning. Throws InputError on
  /// all ranks if the checkpoint is damaged, was written for another problem (detected by a product with the
  /// operator), or has another value of a fixed option.
  std::string restart{};
  /// Fixed options (so far "lambda") whose values the caller computed from A and B, so that they differ by
  /// rounding on another grid. A restart uses the saved values.
  std::vector<std::string> computed{};
};

/// The facts of the checkpoint in a directory (collective over comm): those it was written with, the
/// "problem" in words, and the "iteration". Throws InputError on all ranks if there is no checkpoint, or a
/// damaged one.
GRIDLOPS_EXPORT std::map<std::string, std::string> checkpoint_facts(Communicator& comm,
                                                                    const std::string& directory);

/// Throws OutputError on all ranks if a solver with these options would do so before computing (collective
/// over comm). Lets a program check before it reads its input.
GRIDLOPS_EXPORT void check_checkpoint_directory(Communicator& comm, const CheckpointOptions& options);

/// The newest unfinished folder in a directory of checkpoints, left by a job that was killed; empty if there
/// is none (collective over comm). A restart continues from the last finished checkpoint. The next checkpoint
/// that is finished removes the folder.
GRIDLOPS_EXPORT std::string unfinished_checkpoint(Communicator& comm, const std::string& directory);

}  // namespace gridlops
