// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command_line/grid.hpp"
#include "gridlops/local/backend.hpp"
#include "gridlops/solve/robust.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "measure/report.hpp"

namespace gridlops::program {

/// The iterations that have their own row in tables: 1 … 10, 18, 32, 57, …, four for each factor of ten.
Index next_row_after(Index iteration);

/// Counts the non-zero elements of X before the first iteration and after those that have a row. It
/// communicates, so all ranks of the grid need it.
class NonzerosShown : public SolveObserver {
 public:
  Index iteration() const { return iteration_; }
  double count() const { return count_; }

 protected:
  Index iteration_ = 0, next_ = 1;
  double count_ = 0;
};
template <Scalar T>
class Nonzeros final : public NonzerosShown {
 public:
  /// For X and matrices of its layout. Collective over its grid; OutOfMemory on all ranks.
  explicit Nonzeros(const ConstDistMatrix<T>& X) : copy_(allocate_matrix<T>(X.grid(), X.layout())) {}

  bool step(const IterationInfo& info) override {
    if (info.at_start) next_ = next_row_after(info.iteration);
    if (info.iteration != next_ && !info.at_start) return false;
    if (!info.at_start) next_ = next_row_after(next_);
    info.iterate.copy_to(copy_);
    count_ = 0;
    for (const double count : column_norms(copy_, 0)) count_ += count;
    iteration_ = info.iteration;
    return false;
  }

 private:
  DistMatrix<T> copy_;
};

/// A line of text that compares λ with least_lambdas_of_zero().
std::string lambda_text(const std::vector<double>& lambdas, const std::vector<double>& of_zero,
                        Threshold threshold);

/// The verdicts, scales and rejected numbers of a solve with a misfit.
std::string misfit_text(Misfit misfit, const SolveReport& report, const std::vector<RobustColumn>& columns);

/// Shows a solver's progress: a table that grows by about twenty rows, however long the solve takes, and, if
/// standard error is a terminal, a line with a bar below it.
class SolveProgress : public SolveObserver {
 public:
  /// batches: how many times the solver starts. nonzeros: for sparse models, whose objective the table shows,
  /// too.
  explicit SolveProgress(Index batches, std::shared_ptr<const NonzerosShown> nonzeros = nullptr);

  void start(const SolveStart& start) override;
  bool step(const IterationInfo& info) override;
  void end(const SolveReport& report) override;

 private:
  struct Summary {
    Index batch = 0, iteration = 0, active_columns = 0;
    double lowest = 0, median = 0, highest = 0;  ///< of the columns' relative tested norms
    double objective = 0, nonzeros = -1;         ///< of all columns; negative: unknown
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
  std::shared_ptr<const NonzerosShown> nonzeros_;
  bool has_bar_;
  Stopwatch clock_;
  std::vector<double> norms_;  // scratch of summarise()
  Summary last_, start_of_batch_;
  Index last_printed_ = 0, next_row_ = 0;
  double last_row_seconds_ = 0, last_bar_seconds_ = 0, patience_ = 0;
  bool bar_is_drawn_ = false;
};

/// "90 converged, 6 iteration_limit": the number of columns for each verdict.
std::string verdict_text(const SolveReport& report);
/// Whether all columns converged or stagnated.
bool all_solved(const SolveReport& report);

}  // namespace gridlops::program
