// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "solve/run/batch_scale.hpp"

namespace gridlops {

/// Saves a batch to checkpoints, and goes on from one.
template <Scalar T>
class SavedBatch {
 public:
  explicit SavedBatch(Batch<T>& batch) : batch_(batch) {}

  /// Whether the batch is to go on from a state that was saved.
  bool has_state() const { return batch_.solve.checkpoints.has_saved(); }
  /// Goes on from there (collective over the grid).
  void resume(BatchScale<T>& scale);
  /// Whether the state is saved after this iteration; the same on all ranks.
  bool is_due() const;
  /// Saves it (collective over the grid).
  void save();

  // What some rank alone knows, that the end or a checkpoint is wanted, travels with the first sums of each
  // iteration, and of start and end.

  void ask_again() { flags_are_due_ = true; }
  void add_flags(std::vector<double>& numbers);
  void take_flags(std::vector<double>& numbers);

 private:
  void visit(StateArchive& archive);

  Batch<T>& batch_;
  bool flags_are_due_ = false;  // in the next sums
};

}  // namespace gridlops
