// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "solve/run/batch_scale.hpp"

namespace gridlops {

/// Saves a batch to checkpoints, and resumes it from one.
template <Scalar T>
class SavedBatch {
 public:
  explicit SavedBatch(Batch<T>& batch) : batch_(batch) {}

  /// Whether the batch will resume from a saved state.
  bool has_state() const { return batch_.solve.checkpoints.has_saved(); }
  /// Resumes from that state (collective over the grid).
  void resume(BatchScale<T>& scale);
  /// Whether to save the state after this iteration; the same on all ranks. Columns that end with it must
  /// still be active.
  bool is_due() const;
  /// Saves it (collective over the grid).
  void save();

  // Requests to stop or to save may be known to one rank only. They travel with the first sums of each
  // iteration, of the start and of the end.

  void ask_again() { flags_are_due_ = true; }
  void add_flags(std::vector<double>& numbers);
  void take_flags(std::vector<double>& numbers);

 private:
  void visit(StateArchive& archive);

  Batch<T>& batch_;
  bool flags_are_due_ = false;  // in the next sums
};

}  // namespace gridlops
