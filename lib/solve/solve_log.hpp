// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/solve_observer.hpp"
#include "solve/active_columns.hpp"
#include "solve/batches.hpp"
#include "solve/verdicts.hpp"

namespace gridlops {

/// The account that a solve gives of itself, over all its batches: the report with its history, the last
/// known norms, and what observers are told.
template <Scalar T>
class SolveLog {
 public:
  SolveLog(const char* solver, const SolveOptions& options, const ConstDistMatrix<T>& X);

  SolveReport& report() { return report_; }
  /// Whether an observer on this rank wants the end, which other ranks learn in a reduction.
  bool stop_is_wanted() const { return stop_is_wanted_; }
  /// And whether one on any rank does, as all ranks know.
  bool stop_is_asked() const { return stop_is_asked_; }
  void set_stop_is_asked(bool asked) { stop_is_asked_ = asked; }

  void start(const SolveStart& start);
  void end();
  /// The batch that is being solved, and the numbers of its columns in B.
  void begin_batch(Index batch, const ColumnBatch& columns);
  Index batch() const { return batch_; }
  const std::vector<Index>& numbers() const { return numbers_; }
  /// The norms after an iteration.
  void record(Index iteration, const ActiveColumns& columns, const Verdicts& verdicts);
  /// Observers, each by itself: where one throws on one rank others communicate all the same.
  void tell_observers(Index iteration, bool at_start, const ActiveColumns& columns, const Verdicts& verdicts);
  /// The final verdicts of a batch.
  void report_batch(const Verdicts& verdicts);

  void visit(StateArchive& archive);

 private:
  template <class Tell>
  void tell_all(const Tell& tell);

  const SolveOptions& options_;
  const ConstDistMatrix<T>& X_;
  SolveReport report_;
  std::vector<double> residual_norms_, tested_norms_, x_norms_;  // the last known, per column of B
  bool stop_is_wanted_ = false, stop_is_asked_ = false;
  Index batch_ = 0;
  std::vector<Index> numbers_;
  Index first_here_ = 0;       // of the batch, among this rank's columns
  std::vector<Index> places_;  // where this rank's columns lie
};

}  // namespace gridlops
