// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gridlops/solver.hpp"
#include "io/checkpoint_files.hpp"
#include "solve/method_state.hpp"
#include "solve/state_archive.hpp"

namespace gridlops {

template <Scalar T>
class ColumnMethod;

/// When the state of one solve is saved, and where; and the one that it goes on from, if there is one.
template <Scalar T>
class Checkpoints {
 public:
  /// Collective over the grid. Throws UsageError, OutputError where nothing can be saved, and InputError if
  /// what is to be gone on from is not this solve.
  Checkpoints(const ColumnMethod<T>& method, const SolveOptions& options, const ConstDistMatrix<T>& B,
              DistMatrix<T>& X);

  bool saves() const { return !options_.directory.empty(); }

  /// Whether the clock or the user asks for a checkpoint, which some rank alone knows, travels with sums: to
  /// the end of the numbers that are summed, and from there.
  void add_flags(std::vector<double>& numbers);
  void take_flags(std::vector<double>& numbers);
  /// The same on all ranks.
  bool due(Index iteration) const;
  /// Whether the solver is to end once its state is saved; the same on all ranks.
  bool suspends() const { return suspends_; }
  /// The first numbers of a state that is to be saved.
  StateArchive begin_numbers();
  /// Throws Suspended if the user asked.
  void save(const StateArchive& numbers, const std::vector<NamedMatrix<T>>& matrices, Index iteration);

  /// Whether there is a saved state that has not been taken yet.
  bool has_saved() const { return saved_ != nullptr; }
  /// The numbers that were saved, to be visited in the order in which they were.
  StateArchive& saved_numbers() { return saved_numbers_; }
  /// Fills the matrices.
  void take_saved(std::vector<NamedMatrix<T>> matrices);

 private:
  using Clock = std::chrono::steady_clock;

  void open_saved(const std::string& directory);

  const CheckpointOptions& options_;
  const std::shared_ptr<const ProcessGrid> grid_;
  const LinearOperator<T>& A_;
  DistMatrix<T>& X_;
  std::string problem_;
  std::vector<double> fingerprint_, guess_;  // guess_: empty if the solve was begun from zero
  std::unique_ptr<CheckpointReader> saved_;
  StateArchive saved_numbers_;
  Clock::time_point last_save_ = Clock::now();
  bool wanted_ = false, suspends_ = false;
};

}  // namespace gridlops
