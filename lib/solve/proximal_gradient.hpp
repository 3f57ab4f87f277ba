// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/numbers.hpp"
#include "gridlops/sparse_solver.hpp"
#include "solve/column_method.hpp"

namespace gridlops {

/// ISTA, and with momentum FISTA, for many right-hand sides at once:
///
///   x₊ = S threshold(Sᴴ(y + α Aᴴ r_y), αλ)    r₊ = b − A x₊    y₊ = x₊ + ω(x₊ − x),  r_y₊ = r₊ + ω(r₊ − r)
///
/// where r = b − A x and r_y = b − A y; without momentum y is x. One reduction an iteration, of all that the
/// tests need; x₊ is taken column by column only after that.
template <Scalar T>
class ProximalGradient final : public ColumnMethod<T> {
 public:
  /// S: may be null, for I. All must outlive this.
  ProximalGradient(const LinearOperator<T>& A, const LinearOperator<T>* S, const SparseOptions& options,
                   bool momentum)
      : A_(A), S_(S), options_(options), momentum_(momentum) {}

  void set_first_step(double step) { first_step_ = step; }

  const char* name() const override { return momentum_ ? "fista" : "ista"; }
  const LinearOperator<T>& A() const override { return A_; }

  void prepare(ColumnRun<T>& run) override;
  void start(ColumnRun<T>& run, bool from_zero) override;
  bool iterate(ColumnRun<T>& run) override;
  std::vector<NamedMatrix<T>> lasting(const Partition& columns) override;
  void visit(StateArchive& archive) override { archive.visit_list(scalars_); }
  std::string parameters() const override;
  bool meets_tolerance(const ColumnState& column, double tolerance) const override;
  /// A step of zero may well be the threshold's.
  bool starts_too_small(const ColumnState&) const override { return false; }
  /// iterate() sees to that.
  bool at_rounding_level(const ColumnState&) const override { return false; }
  /// Steps may stay equally long for thousands of iterations.
  bool rounding_ends_descent() const override { return false; }
  void add_final_norms(ColumnRun<T>& run) override;
  void restart(ColumnRun<T>& run) override;

 private:
  struct Objective {
    double misfit = 0, penalty = 0;  // ½‖r‖² and P
    double at(double lambda) const { return misfit + lambda * penalty; }
    void visit(StateArchive& archive) { archive.visit(misfit, penalty); }
  };
  struct ColumnScalars {
    double lambda = 0, step = 0;
    double t = 1;  // of the momentum
    Objective first, now;
    void visit(StateArchive& archive) { archive.visit(lambda, step, t, first, now); }
  };
  /// Of one column, what the reduction of iterate() brought.
  struct Outcome {
    double residual_norm = 0, x_norm = 0, image_squared = 0, step_squared = 0, update = 0;
    double rounding = 0;  // what rounding of b − Ay and of the step moves x by
    Objective objective;
    /// An update that is within the tolerance must be so also when it is computed once more from x₊.
    double tested() const { return update + 4 * rounding; }
  };
  enum class Decision { take, shorten_step, restart_momentum, end };

  const Space& sparse_space() const { return S_ == nullptr ? A_.domain() : S_->domain(); }
  ColumnScalars& scalars(ColumnRun<T>& run, Index k) { return scalars_[at(run.number(k))]; }
  double lambda_now(ColumnRun<T>& run, Index k);

  /// What y and its residual are kept in: without momentum x and r.
  DistMatrix<T> y(ColumnRun<T>& run) { return momentum_ ? run.matrix(y_, A_.domain()) : run.x(); }
  DistMatrix<T> y_residual(ColumnRun<T>& run) { return run.matrix(momentum_ ? r_y_ : r_, A_.range()); }

  /// x₊ ← threshold(y + α·gradient, αλ), where x₊ holds the gradient Aᴴ r_y before.
  void step_from(ColumnRun<T>& run, const DistMatrix<T>& from, DistMatrix<T>& x_next);
  /// The penalty of what step_from() made.
  void add_penalties(ColumnRun<T>& run, const DistMatrix<T>& x_next);
  void add_norms_of_difference(ColumnRun<T>& run, const DistMatrix<T>& X, const DistMatrix<T>& Y,
                               DistMatrix<T>& difference);
  void begin_momentum(ColumnRun<T>& run);

  Outcome outcome(ColumnRun<T>& run, Index k);
  Decision decide(ColumnRun<T>& run, Index k, const Outcome& next);
  void take_steps(ColumnRun<T>& run);

  const LinearOperator<T>& A_;
  const LinearOperator<T>* S_;
  const SparseOptions& options_;
  const bool momentum_;
  double first_step_ = 1;
  Scratch<T> b_, r_, y_, r_y_;                            // follow the columns
  Scratch<T> x_next_, r_next_, z_, x_change_, r_change_;  // within one iteration
  std::vector<ColumnScalars> scalars_;                    // per column of the batch
  std::vector<double> factors_, thresholds_;              // per active column
  std::vector<char> taken_, restarted_;
};

}  // namespace gridlops
