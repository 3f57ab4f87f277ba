// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/solve/solve_observer.hpp"
#include "solve/batches.hpp"
#include "solve/run/active_columns.hpp"
#include "solve/run/verdicts.hpp"

namespace gridlops {

/// An observer that may give up a solve whose results nobody then wants. The solve returns after that step,
/// with a report and an X that mean nothing: no later batch begins, and no observer is told of the end.
class AbandoningObserver : public SolveObserver {
 public:
  /// Whether a step has given up. All ranks must decide alike, in the same step.
  virtual bool has_abandoned() const = 0;
};

/// Collects the report of a solve over all its batches, including its history, and passes the last known
/// norms to observers.
template <Scalar T>
class SolveLog {
 public:
  SolveLog(const char* solver, ToleranceTest test, const SolveOptions& options, const ConstDistMatrix<T>& X);

  SolveReport& report() { return report_; }
  /// Continues from the report of an earlier solve.
  void continue_from(const SolveReport& before);
  /// ‖A‖ without damping, as the last verdict on this right-hand side knew it; 0 if there is none.
  double operator_norm(Index number) const { return operator_norms_[at(number)]; }
  /// Whether an observer on this rank has requested the end. Other ranks learn of it in a reduction.
  bool stop_is_wanted() const { return stop_is_wanted_; }
  /// Whether an observer on any rank has requested the end, as all ranks know by now.
  bool stop_is_asked() const { return stop_is_asked_; }
  void set_stop_is_asked(bool asked) { stop_is_asked_ = asked; }
  /// Whether an AbandoningObserver has given up this solve, on all ranks.
  bool is_abandoned() const { return is_abandoned_; }

  void start(const SolveStart& start);
  void end();
  /// Begins a batch.
  void begin_batch(Index batch, const ColumnBatch& columns);
  Index batch() const { return batch_; }
  const std::vector<Index>& numbers() const { return numbers_; }
  /// Records the norms after an iteration.
  void record(Index iteration, const ActiveColumns& columns, const Verdicts& verdicts);
  /// Notifies observers of an iteration. If one of them throws on one rank, the others are still called,
  /// since they may communicate.
  /// X: the current iterate, with its columns in these places.
  void tell_observers(const ConstDistMatrix<T>& X, Index iteration, bool at_start,
                      const ActiveColumns& columns, const Verdicts& verdicts);
  /// Writes the final verdicts of a batch to the report.
  void report_batch(const Verdicts& verdicts);

  void raise_alarm(const GuardAlarm& alarm) { report_.alarms.push_back(alarm); }
  void count_guard_products(Index columns) { report_.guard_products += columns; }

  void visit(StateArchive& archive);
  /// Whether a visit has loaded a state that was saved with other limits or tolerances. Batches that had
  /// ended are judged by these until they are solved again, and so are saved with them.
  bool has_other_limits() const { return has_other_limits_; }
  /// Whether the saved run knew another σ, on which its quadrature rests.
  bool has_other_sigma_min() const { return has_other_sigma_min_; }

 private:
  std::vector<double> limits() const;
  template <class Tell>
  void tell_all(const Tell& tell);

  const SolveOptions& options_;
  const ConstDistMatrix<T>& X_;
  SolveReport report_;
  std::vector<double> residual_norms_, first_residual_norms_, tested_norms_, x_norms_,
      objectives_;  // last known, per column of B; the second: at the start
  std::vector<double> residual_tests_, gradient_tests_;  // as well; empty unless the method has both
  std::vector<double> operator_norms_;
  bool stop_is_wanted_ = false, stop_is_asked_ = false, is_abandoned_ = false, has_other_limits_ = false,
       has_other_sigma_min_ = false;
  std::vector<double> limits_of_ended_;
  Index batch_ = 0;
  std::vector<Index> numbers_;
  Index first_here_ = 0;       // position of the batch's first column among this rank's
  std::vector<Index> places_;  // the places of this rank's columns
};

}  // namespace gridlops
