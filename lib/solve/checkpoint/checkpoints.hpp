// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
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

/// Knows when and where the state of one solve is saved, and has the saved state that it goes on from, if
/// any.
template <Scalar T>
class Checkpoints {
 public:
  /// Collective over the grid. matrices: how many a checkpoint has. Throws UsageError, OutputError if nothing
  /// can be saved there, and InputError if the state to go on from is not one of this solve. Gives the
  /// options the saved values of what was computed.
  Checkpoints(const ColumnMethod<T>& method, SolveOptions& options, const ConstDistMatrix<T>& B,
              DistMatrix<T>& X, Index matrices);

  bool saves() const { return !options_.directory.empty(); }

  // Some rank alone knows that the clock or the user asks for a checkpoint. All learn it from flags at the
  // end of the numbers that are summed.
  void add_flags(std::vector<double>& numbers);
  void take_flags(std::vector<double>& numbers);
  /// Whether a checkpoint is due; the same on all ranks.
  bool due(Index iteration) const;
  /// Whether the solver is to end once its state is saved; the same on all ranks.
  bool suspends() const { return suspends_; }
  /// Begins the numbers of a state that is to be saved.
  StateArchive begin_numbers();
  /// Throws Suspended if the user asked.
  void save(const StateArchive& numbers, const std::vector<NamedMatrix<T>>& matrices, Index iteration);

  /// Whether there is a saved state that has not been taken yet.
  bool has_saved() const { return saved_ != nullptr; }
  /// The numbers that were saved. They must be visited in the order in which they were saved.
  StateArchive& saved_numbers() { return saved_numbers_; }
  /// Reads the saved matrices into these.
  void take_saved(std::vector<NamedMatrix<T>> matrices);

 private:
  using Clock = std::chrono::steady_clock;

  void open_saved(const std::string& directory, SolveOptions& options);
  void take_fixed(FixedNumbers& option, SolveOptions& options);

  std::map<std::string, std::string> facts(Index iteration) const;

  const CheckpointOptions& options_;
  std::unique_ptr<CheckpointDirectory> directory_;
  const std::shared_ptr<const ProcessGrid> grid_;
  const LinearOperator<T>& A_;
  DistMatrix<T>& X_;
  std::string problem_;
  std::vector<double> fingerprint_, guess_;  // guess_: empty if the solve was begun from zero
  std::vector<FixedNumbers> fixed_;
  std::unique_ptr<CheckpointReader> saved_;
  StateArchive saved_numbers_;
  Clock::time_point last_save_ = Clock::now();
  bool wanted_ = false, suspends_ = false;
};

}  // namespace gridlops
