// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>

#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/solve/error_bound.hpp"
#include "gridlops/solve/solution_space.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "gridlops/solve/spectral_factor.hpp"
#include "solve/matrix_of_task.hpp"
#include "solve/solve_record.hpp"
#include "solve/task/solve_task.hpp"

namespace gridlops::program {

/// The right-hand sides, and what is to be written.
template <Scalar T>
struct Columns {
  DistMatrix<T> B, X;
  std::optional<DistMatrix<T>> variances{};
};

/// Calls the solver of a task with its options.
template <Scalar T>
class SolverRun {
 public:
  /// op: A as the solver sees it. Both must outlive the run.
  SolverRun(const SolveTask& task, const MatrixOfTask<T>& A, OperatorPtr<T> op, bool shows_progress);

  /// Solves in a space or by a factor, if the task says so, and then with the solver (collective over the
  /// grid). Completes `solved`.
  void solve(Columns<T>& columns, Solved& solved);

  /// Returns λ of each column, 0 if Aᴴb is not finite (collective over the grid). Rank 0 reports how large
  /// they are if it talks. X: scratch memory.
  std::vector<double> choose_lambdas(const DistMatrix<T>& B, DistMatrix<T>& X) const;

  /// What is known of A, for bounds of errors; after solve() with σ.
  const ErrorBoundOptions& known() const { return known_; }
  /// The median of the seconds of an iteration.
  double iteration_seconds() const { return times_->median(); }

 private:
  PerColumn damping() const;
  CheckpointOptions checkpoint_options(double damp) const;
  void make_space(const DistMatrix<T>& B);
  SolveOptions options_of_all_solves() const;
  SolveOptions options_of_solve(const Columns<T>& columns, const CostFunction& cost) const;
  std::optional<SweepOfEach> choose_dampings(const DistMatrix<T>& B);
  SolveReport call_solver(Columns<T>& columns, Solved& solved) const;

  const SolveTask& task_;
  const MatrixOfTask<T>& A_;
  OperatorPtr<T> op_;
  bool shows_progress_;
  ErrorBoundOptions known_;
  std::shared_ptr<IterationTimes> times_ = std::make_shared<IterationTimes>();
  std::optional<SolutionSpace<T>> space_;
  std::shared_ptr<const SpectralFactor<T>> factor_;
};

}  // namespace gridlops::program
