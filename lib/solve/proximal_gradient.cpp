// SPDX-License-Identifier: BSD-3-Clause
#include "solve/proximal_gradient.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"

namespace gridlops {

namespace {

template <Scalar T>
constexpr double epsilon_of = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());

/// So that a column that is zero has a relative change of zero.
double at_least_tiny(double norm) { return std::max(norm, std::numeric_limits<double>::min()); }

}  // namespace

template <Scalar T>
std::vector<NamedMatrix<T>> ProximalGradient<T>::lasting(const Partition& columns) {
  std::vector<NamedMatrix<T>> matrices;
  matrices.push_back({"b", b_.matrix(A_.range(), columns)});
  matrices.push_back({"r", r_.matrix(A_.range(), columns)});
  if (!momentum_) return matrices;
  matrices.push_back({"y", y_.matrix(A_.domain(), columns)});
  matrices.push_back({"r_y", r_y_.matrix(A_.range(), columns)});
  return matrices;
}

template <Scalar T>
double ProximalGradient<T>::lambda_now(ColumnRun<T>& run, Index k) {
  const double lambda = scalars(run, k).lambda;
  if (options_.decay.empty()) return lambda;
  return lambda * options_.decay[std::min(at(run.column(k).iterations), options_.decay.size() - 1)];
}

template <Scalar T>
void ProximalGradient<T>::step_from(ColumnRun<T>& run, const DistMatrix<T>& from, DistMatrix<T>& x_next) {
  factors_.resize(at(run.active_count()));
  thresholds_.resize(factors_.size());
  for (Index k = 0; k < run.active_count(); ++k) {
    factors_[at(k)] = scalars(run, k).step;
    thresholds_[at(k)] = scalars(run, k).step * lambda_now(run, k);
  }
  run.xpby(from, factors_, x_next);
  if (S_ == nullptr) return run.threshold(options_.threshold, thresholds_, x_next);
  DistMatrix<T> z = run.matrix(z_, sparse_space());
  S_->apply_adjoint(T(1), x_next, T(0), z);
  run.threshold(options_.threshold, thresholds_, z);
  S_->apply(T(1), z, T(0), x_next);
}

template <Scalar T>
void ProximalGradient<T>::add_penalties(ColumnRun<T>& run, const DistMatrix<T>& x_next) {
  if (S_ == nullptr) return run.sums().add_penalties(options_.threshold, x_next);
  run.sums().add_penalties(options_.threshold, run.matrix(z_, sparse_space()));
}

template <Scalar T>
void ProximalGradient<T>::add_norms_of_difference(ColumnRun<T>& run, const DistMatrix<T>& X,
                                                  const DistMatrix<T>& Y, DistMatrix<T>& difference) {
  run.copy(X, difference);
  run.kernels().add(T(-1), Y.local(), T(1), difference.local());
  run.sums().add_norms_squared(difference);
}

template <Scalar T>
void ProximalGradient<T>::begin_momentum(ColumnRun<T>& run) {
  for (ColumnScalars& column : scalars_) column.t = 1;
  if (!momentum_) return;
  DistMatrix<T> from = y(run), residual = y_residual(run);
  run.copy(run.x(), from);
  run.copy(run.matrix(r_, A_.range()), residual);
}

template <Scalar T>
std::string ProximalGradient<T>::parameters() const {
  const char* const thresholds[] = {"soft", "hard", "half"};
  return message("the ", thresholds[static_cast<int>(options_.threshold)], " threshold, ",
                 S_ == nullptr ? "" : "a sparsifying operator, ",
                 options_.lambdas.empty() ? message("lambda ", options_.lambda) : "a lambda for each column",
                 options_.backtracking ? ", backtracking" : "", options_.restart ? ", restarts" : "");
}

template <Scalar T>
void ProximalGradient<T>::prepare(ColumnRun<T>& run) {
  for (Scratch<T>* memory : {&x_next_, &x_change_}) run.matrix(*memory, A_.domain());
  for (Scratch<T>* memory : {&r_next_, &r_change_}) run.matrix(*memory, A_.range());
  if (S_ != nullptr) run.matrix(z_, sparse_space());
  run.reserve_thresholds();
}

/// The norms are those of the first step, which is not taken yet: a guess may be the solution.
template <Scalar T>
void ProximalGradient<T>::start(ColumnRun<T>& run, bool from_zero) {
  scalars_.assign(at(run.active_count()), {});
  for (Index k = 0; k < run.active_count(); ++k) {
    scalars(run, k).step = first_step_;
    scalars(run, k).lambda =
        options_.lambdas.empty() ? options_.lambda : options_.lambdas[at(run.right_hand_side(k))];
  }
  DistMatrix<T> x = run.x(), x_next = run.matrix(x_next_, A_.domain()),
                change = run.matrix(x_change_, A_.domain()), b = run.matrix(b_, A_.range()),
                r = run.matrix(r_, A_.range());
  run.copy(run.B(), b);
  run.copy(b, r);
  if (!from_zero) A_.apply(T(-1), x, T(1), r);
  run.sums().begin(run.active_count());
  run.sums().add_norms_squared(b);
  run.sums().add_norms_squared(r);
  if (S_ != nullptr) {
    DistMatrix<T> z = run.matrix(z_, sparse_space());
    S_->apply_adjoint(T(1), x, T(0), z);
  }
  add_penalties(run, x);
  A_.apply_adjoint(T(1), r, T(0), x_next);
  step_from(run, x, x_next);
  run.sums().add_norms_squared(x_next);
  add_norms_of_difference(run, x_next, x, change);
  run.sums().reduce();
  for (Index k = 0; k < run.active_count(); ++k) {
    ColumnState& state = run.column(k);
    state.data_norm = std::sqrt(run.sums().of(0, k));
    state.residual_norm = std::sqrt(run.sums().of(1, k));
    state.x_norm = std::sqrt(run.sums().of(3, k));
    state.tested_norm = std::sqrt(run.sums().of(4, k));
    state.reference = at_least_tiny(state.x_norm);
    scalars(run, k).first = scalars(run, k).now = {0.5 * run.sums().of(1, k), run.sums().of(2, k)};
  }
  begin_momentum(run);
}

template <Scalar T>
bool ProximalGradient<T>::iterate(ColumnRun<T>& run) {
  DistMatrix<T> x_next = run.matrix(x_next_, A_.domain()), r_next = run.matrix(r_next_, A_.range()),
                x_change = run.matrix(x_change_, A_.domain()), r_change = run.matrix(r_change_, A_.range());
  const DistMatrix<T> from = y(run), from_residual = y_residual(run);
  A_.apply_adjoint(T(1), from_residual, T(0), x_next);
  step_from(run, from, x_next);
  run.copy(run.matrix(b_, A_.range()), r_next);
  A_.apply(T(-1), x_next, T(1), r_next);

  run.sums().begin(run.active_count());
  run.sums().add_norms_squared(r_next);
  run.sums().add_norms_squared(x_next);
  add_penalties(run, x_next);
  add_norms_of_difference(run, r_next, from_residual, r_change);
  add_norms_of_difference(run, x_next, from, x_change);
  if (momentum_) add_norms_of_difference(run, x_next, run.x(), x_change);
  if (run.reduce()) return false;
  take_steps(run);
  return true;
}

template <Scalar T>
typename ProximalGradient<T>::Outcome ProximalGradient<T>::outcome(ColumnRun<T>& run, Index k) {
  const ColumnSums<T>& sums = run.sums();
  const double step = scalars(run, k).step, data_norm = run.column(k).data_norm;
  Outcome next;
  next.residual_norm = std::sqrt(sums.of(0, k));
  next.x_norm = std::sqrt(sums.of(1, k));
  next.objective = {0.5 * sums.of(0, k), sums.of(2, k)};
  next.image_squared = sums.of(3, k);
  next.step_squared = sums.of(4, k);
  next.update = std::sqrt(std::max(sums.of(4, k), sums.of(momentum_ ? 5 : 4, k)));
  next.rounding = epsilon_of<T> * (next.x_norm + std::sqrt(step) * data_norm);
  return next;
}

// For a quadratic misfit the step α is short enough for this column if α‖A d‖² ≤ ‖d‖², d = x₊ − y (Beck,
// Teboulle 2009, §3). With a convex penalty the objective then never rises above that of the start, also with
// momentum (Chambolle, Dossal: On the convergence of the iterates of FISTA, J. Optim. Theory Appl. 166,
// 2015).
template <Scalar T>
typename ProximalGradient<T>::Decision ProximalGradient<T>::decide(ColumnRun<T>& run, Index k,
                                                                   const Outcome& next) {
  ColumnState& state = run.column(k);
  ColumnScalars& own = scalars(run, k);
  const double lambda = lambda_now(run, k), unit = epsilon_of<T>;
  // ‖A d‖ is a difference of residuals: below this it is rounding.
  const double noise = 10 * unit *
                       (state.data_norm + next.residual_norm +
                        std::max(state.operator_norm, 1 / std::sqrt(own.step)) * next.x_norm);
  const bool image_known = std::sqrt(next.image_squared) > noise;
  if (image_known && next.step_squared > 0)
    state.operator_norm = std::max(state.operator_norm, std::sqrt(next.image_squared / next.step_squared));
  const bool too_large = image_known && own.step * next.image_squared > next.step_squared * (1 + 10 * unit);
  if (too_large && options_.backtracking) {
    own.step = std::min(0.5 * own.step, next.step_squared / next.image_squared);
    return Decision::shorten_step;
  }
  const double objective = next.objective.at(lambda), slack = 1 + 4 * unit;
  if (too_large && objective > slack * own.first.at(lambda)) {
    state.reason = StopReason::breakdown;
    return Decision::end;
  }
  if (momentum_ && options_.restart && own.t > 1 && objective > slack * own.now.at(lambda))
    return Decision::restart_momentum;
  const double allowed = std::max(run.tolerance() * next.x_norm, options_.absolute_tolerance);
  if (next.update <= next.rounding && next.tested() > allowed) {
    state.reason = StopReason::stagnated;
    return Decision::end;
  }
  return Decision::take;
}

template <Scalar T>
void ProximalGradient<T>::take_steps(ColumnRun<T>& run) {
  factors_.assign(at(run.active_count()), 0);
  taken_.assign(factors_.size(), 0);
  restarted_.assign(factors_.size(), 0);
  bool any_restarted = false;
  for (Index k = 0; k < run.active_count(); ++k) {
    const Outcome next = outcome(run, k);
    const Decision decision = decide(run, k, next);
    ColumnScalars& own = scalars(run, k);
    if (decision == Decision::restart_momentum) {
      own.t = 1;
      restarted_[at(k)] = 1;
      any_restarted = true;
    }
    if (decision != Decision::take) continue;
    taken_[at(k)] = 1;
    const double t_next = 0.5 * (1 + std::sqrt(1 + 4 * own.t * own.t));
    factors_[at(k)] = (own.t - 1) / t_next;
    own.t = t_next;
    own.now = next.objective;
    ColumnState& state = run.column(k);
    state.residual_norm = next.residual_norm;
    state.x_norm = next.x_norm;
    state.tested_norm = next.tested();
    state.reference = at_least_tiny(next.x_norm);
  }
  const DistMatrix<T> x_next = run.matrix(x_next_, A_.domain()), r_next = run.matrix(r_next_, A_.range());
  DistMatrix<T> x = run.x(), r = run.matrix(r_, A_.range());
  if (momentum_) {
    DistMatrix<T> from = y(run), from_residual = y_residual(run),
                  r_change = run.matrix(r_change_, A_.range());
    run.copy(r_next, r_change);
    run.kernels().add(T(-1), std::as_const(r).local(), T(1), r_change.local());
    run.copy_columns(taken_, x_next, from);
    run.copy_columns(taken_, r_next, from_residual);
    run.axpy(factors_, run.matrix(x_change_, A_.domain()), from);
    run.axpy(factors_, r_change, from_residual);
    if (any_restarted) {
      run.copy_columns(restarted_, x, from);
      run.copy_columns(restarted_, r, from_residual);
    }
  }
  run.copy_columns(taken_, x_next, x);
  run.copy_columns(taken_, r_next, r);
}

template <Scalar T>
bool ProximalGradient<T>::meets_tolerance(const ColumnState& column, double tolerance) const {
  return column.tested_norm <=
         std::max(tolerance * at_least_tiny(column.x_norm), options_.absolute_tolerance);
}

template <Scalar T>
void ProximalGradient<T>::add_final_norms(ColumnRun<T>& run) {
  DistMatrix<T> x = run.x(), x_next = run.matrix(x_next_, A_.domain()),
                change = run.matrix(x_change_, A_.domain()), r = run.matrix(r_, A_.range());
  run.copy(run.B(), r);
  A_.apply(T(-1), x, T(1), r);
  A_.apply_adjoint(T(1), r, T(0), x_next);
  run.sums().add_norms_squared(r);
  run.sums().add_norms_squared(x_next);
  step_from(run, x, x_next);
  add_norms_of_difference(run, x_next, x, change);
  run.sums().add_norms_squared(x);
}

template <Scalar T>
void ProximalGradient<T>::restart(ColumnRun<T>& run) {
  begin_momentum(run);
}

#define GRIDLOPS_INSTANTIATE(T) template class ProximalGradient<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
