// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command_line/console.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/solve/error_bound.hpp"
#include "gridlops/solve/inversion.hpp"
#include "gridlops/solve/robust.hpp"
#include "gridlops/solve/solution_space.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "gridlops/solve/solve_or_factor.hpp"
#include "gridlops/solve/solver.hpp"
#include "gridlops/solve/spectral_factor.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "solve/matrix_of_task.hpp"
#include "solve/solve_progress.hpp"
#include "solve/solve_record.hpp"
#include "solve/task/solve_task.hpp"

namespace gridlops::program {

/// The right-hand sides, and what is to be written.
template <Scalar T>
struct Columns {
  DistMatrix<T> B, X;
  std::optional<DistMatrix<T>> variances{};
  std::optional<DistMatrix<T>> lower{}, upper{};
  std::optional<DistMatrix<T>> weights{};  ///< of B

  const ConstDistMatrix<T>* given_weights() const { return weights ? &*weights : nullptr; }
};

/// A fact of checkpoints: the damping of the problem. The solver's may be 0, if the operator includes it.
inline constexpr const char* damp_fact = "damp";

/// Ends the solver on request, after its space was to be saved.
class EndInSpace : public SolveObserver {
 public:
  /// failure: SolutionSpace::save_failure().
  EndInSpace(std::string directory, std::string failure)
      : directory_(std::move(directory)), failure_(std::move(failure)) {}
  bool step(const IterationInfo&) override {
    if (!end_is_requested()) return false;
    if (!failure_.empty()) throw OutputError(failure_);
    throw Suspended(fmt::format("the space was saved in {} before; a restart solves from there", directory_));
  }

 private:
  std::string directory_, failure_;
};

/// Calls the solver of a task with its options.
template <Scalar T>
class SolverRun {
 public:
  /// op: A as the solver sees it. Both must outlive the run.
  SolverRun(const SolveTask& task, const MatrixOfTask<T>& A, OperatorPtr<T> op, bool shows_progress)
      : task_(task),
        A_(A),
        op_(std::move(op)),
        shows_progress_(shows_progress),
        known_{.frobenius_norm = A.frobenius_norm,
               .is_definite = row_of(task.arguments.solver).problem == ProblemKind::hermitian} {}

  /// Solves in a space or by a factor, if the task says so, and then with the solver (collective over the
  /// grid). Completes `solved`.
  void solve(Columns<T>& columns, Solved& solved) {
    known_.sigma_min = sigma_min();
    make_space(columns.B);
    solved.sweep = choose_dampings(columns.B);
    solved.cost.damp = solved.sweep ? solved.sweep->damps() : damping();
    solved.report = call_solver(columns, solved);
    solved.cost.lambdas = solved.report.lambdas;  // in a restart, those of the run that it continues
    space_.reset();                               // what follows needs their memory
    factor_.reset();
  }

  /// Returns λ of each column, 0 if Aᴴb is not finite (collective over the grid). Rank 0 reports how large
  /// they are if it talks. weights: of B, or null. X: scratch memory.
  std::vector<double> choose_lambdas(const DistMatrix<T>& B, const ConstDistMatrix<T>* weights,
                                     DistMatrix<T>& X) const {
    const SolveArguments& arguments = task_.arguments;
    if (!arguments.lambda_relative && arguments.quiet)
      return std::vector<double>(static_cast<std::size_t>(X.cols()), arguments.options.lambda.one_or(0));
    const std::vector<double> of_zero = least_lambdas_of_zero(*op_, B, weights, arguments.options, X);
    std::vector<double> lambdas(of_zero.size(), arguments.options.lambda.one_or(0));
    if (arguments.lambda_relative)
      for (std::size_t j = 0; j < of_zero.size(); ++j)
        lambdas[j] = std::isfinite(of_zero[j]) ? *arguments.lambda_relative * of_zero[j] : 0;
    if (shows_progress_) print(lambda_text(lambdas, of_zero, arguments.options.threshold));
    return lambdas;
  }

  /// The facts about A that bound errors; after solve() with σ.
  const ErrorBoundOptions& known() const { return known_; }
  /// The median of the seconds of an iteration.
  double iteration_seconds() const { return times_->median(); }

 private:
  /// Returns a number that no singular value of A is below: that of --sigma-min, of a sketch, or of a proof.
  /// Throws UsageError on all ranks if --error needs a number and these have none.
  double sigma_min() const {
    const SolveArguments& arguments = task_.arguments;
    const LinearOperator<T>& A = *A_.product;
    if (arguments.sigma_min_way.empty()) return arguments.sigma_min.value_or(0);
    const double found = arguments.sketches() ? probable_sigma_min(A, sketch_failure) : proven_sigma_min(A);
    // NaN comes with a verdict of its own.
    if (found == 0 && A.domain().grid->is_member() && arguments.options.error > 0 && !arguments.is_damped())
      throw UsageError(
          fmt::format("--error needs what --sigma-min {} does not find: the smallest singular value of A is "
                      "hidden by rounding, so that only --damp bounds errors",
                      arguments.sigma_min_way));
    return std::isnan(found) ? 0 : found;
  }

  /// D of every column. A restart continues with exactly the damping of the first run.
  PerColumn damping() const {
    const SolveArguments& arguments = task_.arguments;
    if (task_.sweep) return task_.sweep.of_all_columns(task_.sweep.damps);
    if (!arguments.damp_relative) return arguments.options.damp;
    const std::string saved = saved_fact(task_.saved, damp_fact);
    return saved.empty() ? *arguments.damp_relative * estimate_norm(*op_)
                         : std::strtod(saved.c_str(), nullptr);
  }

  /// The options of checkpoints, with the facts of this run. damp: of the problem.
  CheckpointOptions checkpoint_options(double damp) const {
    const SolveArguments& arguments = task_.arguments;
    CheckpointOptions checkpoint = arguments.options.checkpoint;
    if (arguments.lambda_relative) checkpoint.computed = {"lambda"};
    checkpoint.requested = end_is_requested;
    checkpoint.facts =
        facts_of_run(*task_.grid(), task_.iteration().algorithm, arguments.product, task_.choices);
    checkpoint.facts.merge(fixed_options(task_));
    checkpoint.facts[damp_fact] = fmt::format("{}", damp);
    checkpoint.facts[one_pass_fact] = task_.iteration().one_pass ? "on" : "off";
    checkpoint.facts[storage_fact] = name_of_storage(task_.iteration());
    checkpoint.facts[history_fact] =
        !arguments.history.empty() && continues_history(task_) ? "whole" : "none";
    return checkpoint;
  }

  /// The space of all right-hand sides and dampings, or the one to start in, if one is asked for (collective
  /// over the grid).
  void make_space(const DistMatrix<T>& B) {
    const SolveArguments& arguments = task_.arguments;
    if (!arguments.space.empty()) space_.emplace(op_, arguments.space);
    if (!arguments.space.empty() || !task_.sweep.in_space) return;
    const PerColumn tolerance = arguments.options.tolerance.value_or(default_tolerance(scalar_type_of<T>));
    space_.emplace(op_, B,
                   SpaceOptions{.damps = task_.sweep.damps,
                                .tolerance = tolerance.one_or(0),
                                .max_dimension = arguments.sweep.space_dimension,
                                .has_probe = arguments.sweep.rule == DampingRule::gcv,
                                .limits_cost = task_.sweep.leaves_rest,
                                .checkpoint = checkpoint_options(0)});
  }

  /// All but the damping.
  SolveOptions options_of_all_solves() const {
    SolveOptions options = task_.arguments.options;
    if (task_.arguments.bounds_errors()) {
      options.sigma_min = known_.sigma_min;
      // An A that is not finite, or too large for ‖A‖_F, meets no bound, and has verdicts all the same.
      options.frobenius_norm =
          std::isfinite(known_.frobenius_norm) ? known_.frobenius_norm : std::numeric_limits<double>::max();
    }
    options.one_pass = task_.iteration().one_pass;
    if (task_.sweep.in_space)
      if (const std::string saved = std::exchange(options.checkpoint, {}).directory; !saved.empty())
        options.observers.push_back(std::make_shared<EndInSpace>(saved, space_->save_failure()));
    options.observers.push_back(std::make_shared<IterationForSignals>());
    return options;
  }

  SolveOptions options_of_solve(const Columns<T>& columns, const CostFunction& cost) const {
    const SolveArguments& arguments = task_.arguments;
    const bool is_sparse = row_of(arguments.solver).has(Feature::penalty);
    SolveOptions options = options_of_all_solves();
    options.damp = cost.damp;
    if (!task_.tolerances.empty()) options.tolerance = task_.tolerances;
    if (is_sparse) options.lambda = cost.lambdas;
    options.initial_guess = task_.X0.has_value();
    options.record_history = !arguments.history.empty();
    if (!task_.sweep.in_space && !arguments.reweighs())
      options.checkpoint = checkpoint_options(cost.damp.one_or(0));
    options.observers.push_back(times_);
    std::shared_ptr<Nonzeros<T>> nonzeros;
    if (is_sparse && !arguments.quiet) {
      nonzeros = std::make_shared<Nonzeros<T>>(columns.X);
      options.observers.push_back(nonzeros);
    }
    if (shows_progress_ && !arguments.reweighs()) {
      const Index batches = batch_count(columns.B.layout().cols.partition, options.batch);
      options.observers.push_back(std::make_shared<SolveProgress>(batches, nonzeros));
    }
    return options;
  }

  /// The curves of a sweep that chooses for each right-hand side; none if there is none.
  std::optional<SweepOfEach> choose_dampings(const DistMatrix<T>& B) {
    const SweepArguments& sweep = task_.arguments.sweep;
    const double noise = sweep.noise.value_or(0);
    const std::vector<double>& damps = task_.sweep.damps;
    if (task_.sweep.in_space) {
      const SolveReport rest =
          task_.sweep.leaves_rest ? space_->solve_rest(B, options_of_all_solves()) : SolveReport();
      return SweepOfEach{.curves = space_->curves(sweep.rule, noise, known_),
                         .space = SweptSpace{space_->dimension(), space_->products(), space_->end(), rest}};
    }
    if (!task_.sweep.chooses_each) return std::nullopt;
    factor_ = spectral_factor(*op_, *std::min_element(damps.begin(), damps.end()));
    return SweepOfEach{
        .curves = damping_curves(*op_, B, *factor_, damps, sweep.rule, noise, options_of_all_solves()),
        .factor = factor_->facts()};
  }

  static DistMatrix<T>* pointer(std::optional<DistMatrix<T>>& X) { return X ? &*X : nullptr; }

  SolveReport call_solver(Columns<T>& columns, Solved& solved) const {
    const Solver solver = task_.arguments.solver;
    const DistMatrix<T>& B = columns.B;
    DistMatrix<T>& X = columns.X;
    const SolveOptions options = options_of_solve(columns, solved.cost);
    if (task_.sweep.in_space) return space_->solve(B, X, options);
    if (space_) return space_->solve_others(B, X, options);
    if (A_.approximation)
      return solve_for_original(task_, *op_, *A_.approximation, B, X, options, *solved.compressed);
    if (A_.preconditioner)
      return preconditioned_inversion(op_, B, X, {.P = A_.preconditioner, .solver = solver, .damps_x = true},
                                      options);
    if (task_.patience) {
      solved.factored = solve_or_factor(solver, *op_, B, X, *task_.patience, options);
      if (shows_progress_ && solved.factored->by_factor)
        print(fmt::format("--solver auto: {}\n", change_text(task_, *solved.factored)));
      return std::move(solved.factored->report);
    }
    if (task_.arguments.reweighs()) return solve_robustly(columns, options, solved);
    return gridlops::solve(solver, *op_, B, X, options,
                           {.variances = pointer(columns.variances),
                            .factor = factor_.get(),
                            .lower = pointer(columns.lower),
                            .upper = pointer(columns.upper),
                            .weights = columns.given_weights()});
  }

  SolveReport solve_robustly(Columns<T>& columns, const SolveOptions& options, Solved& solved) const {
    const SolveArguments& arguments = task_.arguments;
    RobustOptions robust{.misfit = arguments.misfit};
    if (arguments.misfit_scale) robust.scale = *arguments.misfit_scale;
    RobustReport report =
        robust_solve<T>(arguments.solver, *op_, columns.B, columns.X, *columns.weights, robust, options);
    solved.robust = std::move(report.columns);
    if (shows_progress_) print(misfit_text(arguments.misfit, report.solve, solved.robust));
    return std::move(report.solve);
  }

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
