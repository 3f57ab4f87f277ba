// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "gridlops/solve_observer.hpp"
#include "report.hpp"

namespace gridlops::program {

/// Shows a solver at work: a table that grows by some twenty rows however long it takes, and, where standard
/// error is a terminal, one line with a bar below it.
class SolveProgress : public SolveObserver {
 public:
  /// batches: how often the solver starts anew.
  explicit SolveProgress(Index batches);

  void start(const SolveStart& start) override;
  bool step(const IterationInfo& info) override;
  void end(const SolveReport& report) override;

 private:
  struct Summary {
    Index batch = 0, iteration = 0, active_columns = 0;
    double lowest = 0, median = 0, highest = 0;  ///< of the columns' relative tested norms
    double seconds = 0;
  };
  Summary summarise(const IterationInfo& info);
  void begin_batch(const Summary& start);
  bool row_is_due(const Summary& now);
  void print_row(const Summary& row);
  /// Seconds until the end of the batch, at the pace and the rate of convergence so far.
  double seconds_left(const Summary& now) const;
  void draw_bar(const Summary& now);
  void erase_bar();

  double tolerance_ = 0;
  Index iteration_limit_ = 0, batches_;
  bool has_bar_;
  Stopwatch clock_;
  std::vector<double> norms_;  // scratch of summarise()
  Summary last_, start_of_batch_;
  Index last_printed_ = 0, next_row_ = 0;
  double last_row_seconds_ = 0, last_bar_seconds_ = 0, patience_ = 0;
  bool bar_is_drawn_ = false;
};

/// "90 converged, 6 iteration_limit": how many columns ended for which reason.
std::string verdict_text(const SolveReport& report);
/// Whether every column converged or stagnated.
bool all_solved(const SolveReport& report);

}  // namespace gridlops::program
