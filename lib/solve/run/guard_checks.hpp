// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "solve/run/batch.hpp"

namespace gridlops {

template <Scalar T>
class ColumnRun;

/// Applies SolveOptions::guard to a batch.
template <Scalar T>
class GuardChecks {
 public:
  explicit GuardChecks(Batch<T>& batch) : batch_(batch) {}

  bool is_on() const { return batch_.solve.guard.is_on(); }
  bool is_due() const { return batch_.solve.guard.is_due(batch_.iteration); }
  /// Compares the recurrence with x, after an iteration, or at the end with all columns in their places
  /// (collective over the grid). At the end it skips columns that have gone back to the best iterate, since r
  /// does not belong to them.
  void check_residuals(ColumnRun<T>& run, bool at_end);
  /// Detects numbers that only a fault can have brought into an iteration, before they end a column.
  void check_norms();
  /// The estimates of ‖A‖ for the active columns, with their weights, in the scale of the batch.
  ColumnScalars norm_A() const;

 private:
  void raise_alarm(Index k, GuardAlarm::Kind kind, double found, double limit);

  Batch<T>& batch_;
};

}  // namespace gridlops
