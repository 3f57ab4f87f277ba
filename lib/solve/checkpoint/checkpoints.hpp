// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gridlops/solve/solver.hpp"
#include "io/checkpoint_files.hpp"
#include "solve/checkpoint/state_archive.hpp"
#include "solve/option_checks.hpp"
#include "solve/run/method_state.hpp"

namespace gridlops {

template <Scalar T>
class ColumnMethod;

/// Writes checkpoints of one job where that may fail, and the job goes on.
class PatientSaves {
 public:
  /// Calls write(), which throws OutputError on all ranks if it fails (collective over comm). The first rank
  /// warns of a failure, unless the job must end: then throws that error.
  void save(Communicator& comm, bool must_end, const std::function<void()>& write);
  /// The text of the last failure; empty if the last save went well.
  const std::string& failure() const { return failure_; }

 private:
  std::string failure_;
  std::uint64_t failures_ = 0;
};

/// Decides when and where to save the state of one solve, and holds the saved state to continue from, if any.
template <Scalar T>
class Checkpoints {
 public:
  /// Collective over the grid. matrices: the number of matrices in a checkpoint. weights: null if all are 1.
  /// Throws UsageError,
  /// OutputError if nothing can be saved there, and InputError if the state to continue from belongs to
  /// another solve. Sets computed options to their saved values.
  Checkpoints(const ColumnMethod<T>& method, SolveOptions& options, const ConstDistMatrix<T>& B,
              DistMatrix<T>& X, Index matrices, const ConstDistMatrix<T>* weights = nullptr);

  bool saves() const { return !options_.directory.empty(); }

  // The clock or the user may request a checkpoint on one rank only. All ranks learn of it from flags
  // appended to the numbers that are summed.
  void add_flags(std::vector<double>& numbers);
  void take_flags(std::vector<double>& numbers);
  /// Whether a checkpoint is due; the same on all ranks.
  bool due(Index iteration) const;
  /// Whether the solver must end once its state is saved; the same on all ranks.
  bool suspends() const { return suspends_; }
  /// Begins the numbers of a state to be saved.
  StateArchive begin_numbers();
  /// Throws Suspended, or OutputError if nothing could be saved, if the user requested it. Otherwise a
  /// failure to save is a warning.
  void save(const StateArchive& numbers, const std::vector<NamedMatrix<T>>& matrices, Index iteration);

  /// Whether there is a saved state that has not been used yet.
  bool has_saved() const { return saved_ != nullptr; }
  /// The saved numbers. Visit them in the order in which they were saved.
  StateArchive& saved_numbers() { return saved_numbers_; }
  /// Reads the saved matrices into `matrices`.
  void take_saved(std::vector<NamedMatrix<T>> matrices);

 private:
  using Clock = std::chrono::steady_clock;

  /// weights: the columns of weights; 0 if all are 1.
  void open_saved(const std::string& directory, SolveOptions& options, Index weights);
  void take_fixed(FixedNumbers& option, SolveOptions& options);

  std::map<std::string, std::string> facts(Index iteration) const;

  const CheckpointOptions& options_;
  std::unique_ptr<CheckpointDirectory> directory_;
  const std::shared_ptr<const ProcessGrid> grid_;
  const LinearOperator<T>& A_;
  DistMatrix<T>& X_;
  std::string problem_;
  std::vector<double> fingerprint_, guess_;  // guess_: empty if the solve started from zero
  std::vector<FixedNumbers> fixed_;
  std::unique_ptr<CheckpointReader> saved_;
  StateArchive saved_numbers_;
  PatientSaves saves_;
  Clock::time_point last_save_ = Clock::now();
  bool wanted_ = false, suspends_ = false;
};

}  // namespace gridlops
