// SPDX-License-Identifier: BSD-3-Clause
#include "solve/run/column_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "solve/column_blocks.hpp"

namespace gridlops {

template <Scalar T>
ColumnRun<T>::ColumnRun(const Solve<T>& solve, const ColumnBatch& columns)
    : batch_(solve, columns),
      sums_(solve.B.grid(), solve.options.column_stable ? ReductionOrder::by_rank : ReductionOrder::any),
      scale_(batch_),
      guard_(batch_),
      saved_(batch_) {}

template <Scalar T>
void ColumnRun<T>::solve() {
  reserve();
  if (saved_.has_state()) {
    saved_.resume(scale_);
    tell_observers(true);
    deflate([](StopReason) { return true; });
  } else {
    start();
  }
  run();
}

template <Scalar T>
void ColumnRun<T>::solve_again() {
  batch_.begins_from_x = true;
  reserve();
  start();
  run();
}

template <Scalar T>
void ColumnRun<T>::run() {
  try {
    do {
      while (batch_.block.count() > 0) {
        iterate();
        if (batch_.solve.log.is_abandoned()) return;
      }
    } while (verify());
  } catch (const Suspended&) {
    scale_.undo(batch_.solve.X, ActiveColumns(batch_.columns.sizes));
    throw;
  }
  write_report();
}

/// Takes all memory that iterations need, on all ranks or on none.
template <Scalar T>
void ColumnRun<T>::reserve() {
  const TraceRegion region("reserve");
  attempt(batch_.grid().comm(), [this] {
    batch_.solve.state.begin_batch(batch_.solve.X, batch_.columns);
    if (batch_.weights) batch_.solve.method.set_weights(*batch_.weights, batch_.block.columns());
  });
  batch_.solve.state.show(batch_.block.columns());
}

template <Scalar T>
void ColumnRun<T>::start() {
  const TraceRegion region("start");
  if (!batch_.begins_from_x) batch_.solve.state.x().set_zero();
  if (is_unscaled(batch_.solve.method.traits().test)) {
    batch_.solve.method.start(*this);
    if (leave_out_far_guesses()) batch_.solve.method.start(*this);
  } else {
    scale_.scale_data();
    batch_.solve.method.start(*this);
    if (leave_out_far_guesses()) batch_.solve.method.start(*this);
    for (int tries = 0; scale_.scale_operator(tries); ++tries) batch_.solve.method.start(*this);
    take_exact_zeros();
  }
  // If this continues from another solve, the columns have already made iterations and estimated ‖A‖.
  for (Index j = 0; j < batch_.block.count(); ++j) {
    const ColumnReport& before = batch_.solve.log.report().columns[at(right_hand_side(j))];
    column(j).iterations = before.iterations;
    const auto raise = [power = column(j).scale.A](double& norm, double known) {
      norm = std::max(norm, std::ldexp(known, power));
    };
    raise(column(j).operator_norm, batch_.solve.log.operator_norm(right_hand_side(j)));
    raise(column(j).damped_operator_norm, before.operator_norm);  // the report has the norm of the test
  }
  for (ColumnState& column : batch_.verdicts.all()) column.first_residual_norm = column.residual_norm;
  begin_descents(std::vector<char>(at(batch_.block.count()), 1));
  test_convergence();
  batch_.solve.log.record(batch_.iteration, batch_.block.columns(), batch_.verdicts);
  tell_observers(true);
  end_iteration();
}

/// Sets x to 0 where a guess is so far off that nothing of b is left in its residual but rounding. True if
/// there is such a column.
template <Scalar T>
bool ColumnRun<T>::leave_out_far_guesses() {
  if (!batch_.begins_from_x || batch_.residuals) return false;
  constexpr auto epsilon = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
  const bool adds_D2_to_A = batch_.solve.method.traits().test == ToleranceTest::residual;
  bool found = false;
  for (Index j = 0; j < batch_.block.count(); ++j) {
    const ColumnState& state = column(j);
    const double residual =
        state.damp > 0 && !adds_D2_to_A ? state.damped_residual_norm() : state.residual_norm;
    double data = state.data_norm;
    // Where bounds exclude 0, b = 0 is data, too: those that the reference has seen.
    if (batch_.solve.method.traits().test == ToleranceTest::projected_gradient && state.operator_norm > 0)
      data = std::max(data, state.reference / state.operator_norm);
    if (epsilon * residual < data || state.x_norm == 0 || !std::isfinite(state.x_norm)) continue;
    batch_.kernels().fill(T(0), column_block(batch_.solve.state.x(), j));
    found = true;
  }
  return found;
}

/// If the reference shows that no part of b is in the range of A, x = 0 is a solution, and replaces a guess:
/// no tolerance relative to 0 could be met.
template <Scalar T>
void ColumnRun<T>::take_exact_zeros() {
  if (!batch_.begins_from_x || batch_.residuals) return;
  for (Index j = 0; j < batch_.block.count(); ++j) {
    ColumnState& state = column(j);
    if (state.reference != 0) continue;
    batch_.kernels().fill(T(0), column_block(batch_.solve.state.x(), j));
    state.tested_norm = state.x_norm = 0;
    state.residual_norm = state.data_norm;
  }
}

template <Scalar T>
void ColumnRun<T>::iterate() {
  const TraceRegion region("iteration");
  ++batch_.iteration;
  saved_.ask_again();
  batch_.solve.method.iterate(*this);
  for (Index k = 0; k < batch_.block.count(); ++k) {
    if (ends()) column(k).reason = StopReason::user_stop;
    if (!column(k).reason) ++column(k).iterations;
  }
  if (!ends()) {
    const bool checks = guard_.is_due();
    if (checks) guard_.check_residuals(*this, false);
    keep_best(checks || !guard_.is_on());
    test_convergence();
    if (guard_.is_on()) guard_.check_norms();
    batch_.solve.log.record(batch_.iteration, batch_.block.columns(), batch_.verdicts);
    tell_observers(false);
  }
  end_iteration();
}

/// Recomputes the norms of all columns from their definitions. Returns true if some column continues from
/// there.
template <Scalar T>
bool ColumnRun<T>::verify() {
  const TraceRegion region("verify");
  batch_.block.restore();
  saved_.ask_again();
  if (guard_.is_on()) guard_.check_residuals(*this, true);
  TrueNorms norms = batch_.solve.method.true_norms(*this);
  if (drop_vanished(norms.x)) norms = batch_.solve.method.true_norms(*this);
  std::vector<char> goes_on(batch_.verdicts.all().size(), 0);
  for (Index j = 0; j < batch_.block.count(); ++j) {
    ColumnState& state = column(j);
    take_true_norms(j, norms);
    if (norms.reference.size() > 0) state.reference = norms.reference[j];
    if (norms.rounding.size() > 0) state.rounding_norm = norms.rounding[j];
    const RecomputedNorm tested{
        norms.tested[j], norms.gradient_drift.size() > 0 ? norms.gradient_drift[j] : 0,
        norms.residual_drift.size() > 0 ? norms.residual_drift[j] : 0,
        norms.quadrature.size() > 0 ? std::optional(norms.quadrature[j]) : std::nullopt};
    goes_on[at(j)] = batch_.verdicts.verify(state, tested, ends()) ? 1 : 0;
  }
  if (std::find(goes_on.begin(), goes_on.end(), 1) == goes_on.end()) {
    replace_astray();
    return false;
  }
  batch_.solve.method.restart(*this);
  begin_descents(goes_on);
  batch_.block.activate(goes_on);
  return true;
}

template <Scalar T>
void ColumnRun<T>::take_true_norms(Index j, const TrueNorms& norms) {
  column(j).final_residual_norm = norms.residual[j];
  column(j).final_normal_norm = norms.normal[j];
  column(j).x_norm = norms.x[j];
}

/// Columns that end unsolved, with norms from their definitions that are worse than those of x = 0, get the
/// best iterate, and 0 if that is worse than 0, too.
template <Scalar T>
void ColumnRun<T>::replace_astray() {
  for (const bool by_zero : {false, true}) {
    std::vector<char> astray(at(batch_.block.count()), 0);
    for (Index j = 0; j < batch_.block.count(); ++j)
      astray[at(j)] = batch_.verdicts.is_astray(column(j)) ? 1 : 0;
    if (std::find(astray.begin(), astray.end(), 1) == astray.end()) return;
    if (by_zero) batch_.solve.state.best_x().set_zero();
    copy_columns(astray, batch_.solve.state.best_x(), batch_.solve.state.x());
    const TrueNorms norms = batch_.solve.method.true_norms(*this);
    for (Index j = 0; j < batch_.block.count(); ++j) {
      if (astray[at(j)] == 0) continue;
      take_true_norms(j, norms);
      column(j).tested_norm = norms.tested[j];
      column(j).residual_norm = norms.residual[j];
      column(j).forget_quadrature();
    }
  }
}

template <Scalar T>
bool ColumnRun<T>::drop_vanished(const ColumnScalars& x_norms) {
  if (batch_.solve.method.traits().test == ToleranceTest::projected_gradient)
    return false;  // bounds may say so
  bool has_vanished = false;
  for (Index j = 0; j < batch_.block.count(); ++j) {
    const double given = std::ldexp(x_norms[j], -column(j).scale.x());
    const bool vanishes = x_norms[j] > 0 && given < static_cast<double>(std::numeric_limits<Real<T>>::min());
    if (!vanishes) continue;
    column(j).reason = StopReason::breakdown;
    batch_.kernels().fill(T(0), column_block(batch_.solve.state.x(), j));
    has_vanished = true;
  }
  // The norms are computed once more, when the recurrence's vectors are gone.
  for (Index j = 0; has_vanished && j < batch_.block.count(); ++j) column(j).forget_quadrature();
  return has_vanished;
}

template <Scalar T>
void ColumnRun<T>::write_report() {
  const T nan(std::numeric_limits<Real<T>>::quiet_NaN());
  scale_.undo(batch_.solve.X, batch_.block.columns());
  for (Index j = 0; j < batch_.block.count(); ++j) {
    ColumnState& state = column(j);
    const double x_norm = std::ldexp(state.x_norm, -state.scale.x());
    if (x_norm > static_cast<double>(std::numeric_limits<Real<T>>::max()))
      state.reason = StopReason::non_finite;
    if (state.reason == StopReason::non_finite)
      batch_.kernels().fill(nan, column_block(batch_.solve.state.x(), j));
  }
  batch_.solve.log.report_batch(batch_.verdicts);
}

template <Scalar T>
void ColumnRun<T>::tell_observers(bool at_start) {
  if (batch_.solve.options.observers.empty() || !scale_.is_on())
    return batch_.solve.log.tell_observers(batch_.solve.X, batch_.iteration, at_start, batch_.block.columns(),
                                           batch_.verdicts);
  auto X = allocate_matrix<T>(batch_.solve.X.grid(), batch_.solve.X.layout());
  copy(batch_.solve.X, X);
  scale_.undo(X, batch_.block.columns());
  batch_.solve.log.tell_observers(X, batch_.iteration, at_start, batch_.block.columns(), batch_.verdicts);
}

template <Scalar T>
ColumnScalars ColumnRun<T>::steps(const ColumnScalars& gamma, const ColumnScalars& delta) {
  ColumnScalars alpha(batch_.block.count());
  for (Index k = 0; k < batch_.block.count(); ++k) {
    const bool fits_type = std::isfinite(static_cast<Real<T>>(gamma[k] / delta[k]));
    alpha[k] = batch_.verdicts.step(column(k), gamma[k], delta[k], fits_type);
  }
  return alpha;
}

template <Scalar T>
void ColumnRun<T>::follow_quadrature(const ColumnScalars& steps, const ColumnScalars& ratios) {
  for (Index k = 0; k < batch_.block.count(); ++k)
    batch_.verdicts.follow_quadrature(column(k), steps[k], ratios[k]);
}

template <Scalar T>
void ColumnRun<T>::raise_operator_norms(const ColumnScalars& from_below) {
  for (Index k = 0; k < batch_.block.count(); ++k)
    column(k).operator_norm = std::max(column(k).operator_norm, from_below[k]);
}

template <Scalar T>
void ColumnRun<T>::raise_damped_operator_norms(const ColumnScalars& from_below) {
  for (Index k = 0; k < batch_.block.count(); ++k)
    column(k).damped_operator_norm = std::max(column(k).damped_operator_norm, from_below[k]);
}

template <Scalar T>
void ColumnRun<T>::set_norms(const KnownNorms& norms) {
  const auto set = [this](const ColumnScalars& values, double ColumnState::*member) {
    for (Index k = 0; k < values.size(); ++k)
      if (!column(k).reason) column(k).*member = values[k];
  };
  set(norms.tested, &ColumnState::tested_norm);
  set(norms.residual, &ColumnState::residual_norm);
  set(norms.x, &ColumnState::x_norm);
  set(norms.A, &ColumnState::operator_norm);
  set(norms.damped_A, &ColumnState::damped_operator_norm);
  set(norms.condition, &ColumnState::condition);
  set(norms.reference, &ColumnState::reference);
  set(norms.data, &ColumnState::data_norm);
  set(norms.objective, &ColumnState::objective);
  set(norms.rounding, &ColumnState::rounding_norm);
  set(norms.quadrature, &ColumnState::quadrature);
}

template <Scalar T>
ColumnFactors ColumnRun<T>::damping() const {
  if (batch_.solve.options.damp.is_one()) return ColumnFactors(batch_.block.count() > 0 ? column(0).damp : 0);
  ColumnScalars each(batch_.block.count());
  for (Index k = 0; k < batch_.block.count(); ++k) each[k] = column(k).damp;
  return ColumnFactors(std::move(each));
}

template <Scalar T>
ColumnFactors ColumnRun<T>::squared_damping() const {
  if (!batch_.solve.options.damp.is_one()) return ColumnFactors(damping() * damping());
  const double damp = batch_.block.count() > 0 ? column(0).damp : 0;
  return ColumnFactors(damp * damp);
}

template <Scalar T>
ColumnScalars ColumnRun<T>::without_damping(const ColumnScalars& norm2, Index vectors) const {
  constexpr auto a_few_epsilon = 4 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
  const ColumnScalars units(norm2.size(), (1 + a_few_epsilon) * static_cast<double>(vectors));
  return root(norm2 - squared_damping() * units);
}

template <Scalar T>
ColumnScalars ColumnRun<T>::damped_residual_norms() const {
  ColumnScalars norms(batch_.block.count());
  for (Index k = 0; k < batch_.block.count(); ++k) norms[k] = column(k).damped_residual_norm();
  return norms;
}

/// Y ← the active columns of B, in their current places and scale.
template <Scalar T>
void ColumnRun<T>::copy_columns_of(const ConstDistMatrix<T>& B, DistMatrix<T>& Y) const {
  const std::vector<Index>& order =
      batch_.block.columns().order(batch_.grid().my_part(batch_.B.layout().cols.axis));
  // Columns that are neighbours in both go in one copy.
  for (Index k = 0, next; k < Y.local().cols; k = next) {
    for (next = k + 1; next < Y.local().cols && order[at(next)] == order[at(next - 1)] + 1;) ++next;
    batch_.kernels().copy(B.local().col_block({order[at(k)], next - k}), Y.local().col_block({k, next - k}));
  }
  std::vector<int> powers;
  for (Index k = 0; k < batch_.block.count(); ++k) powers.push_back(column(k).scale.b);
  multiply_by_powers(Y, powers);
}

/// Takes x as the best iterate so far of these active columns.
template <Scalar T>
void ColumnRun<T>::begin_descents(const std::vector<char>& chosen) {
  copy_columns(chosen, batch_.solve.state.x(), batch_.solve.state.best_x());
  for (Index k = 0; k < batch_.block.count(); ++k)
    if (chosen[at(k)] != 0) column(k).begin_descent();
}

/// Keeps x when it has become much better, so that a column that later fails can go back. With a guard, keeps
/// only iterates that passed its checks.
template <Scalar T>
void ColumnRun<T>::keep_best(bool x_is_checked) {
  std::vector<char> better(at(batch_.block.count()), 0);
  for (Index k = 0; k < batch_.block.count(); ++k) {
    ColumnState& state = column(k);
    if (state.reason || !state.finite()) continue;
    state.largest_x_norm = std::max(state.largest_x_norm, state.x_norm);
    better[at(k)] = x_is_checked && state.is_to_be_kept() ? 1 : 0;
  }
  copy_columns(better, batch_.solve.state.x(), batch_.solve.state.best_x());
}

template <Scalar T>
void ColumnRun<T>::test_convergence() {
  for (Index k = 0; k < batch_.block.count(); ++k) batch_.verdicts.test(column(k));
}

/// Columns at the iteration limit leave only after the state is saved. A restart with more iterations
/// therefore continues with the same columns as an uninterrupted run.
template <Scalar T>
void ColumnRun<T>::end_iteration() {
  const bool saves = saved_.is_due();
  deflate([](StopReason reason) { return reason != StopReason::iteration_limit; });
  if (saves) saved_.save();
  deflate([](StopReason) { return true; });
}

/// Columns that have ended for one of these reasons leave the products.
template <Scalar T>
void ColumnRun<T>::deflate(const std::function<bool(StopReason)>& which) {
  std::vector<char> leaves(at(batch_.block.count()), 0), goes_back = leaves;
  for (Index k = 0; k < batch_.block.count(); ++k) {
    if (!column(k).reason || !which(*column(k).reason)) continue;
    leaves[at(k)] = 1;
    if (!batch_.verdicts.goes_back_to_best(column(k))) continue;
    goes_back[at(k)] = 1;
    column(k).forget_quadrature();
  }
  copy_columns(goes_back, batch_.solve.state.best_x(), batch_.solve.state.x());
  batch_.block.deflate(leaves);
}

template <Scalar T>
ColumnScalars ColumnMethod<T>::direction_gap(ColumnRun<T>& run) {
  return ColumnScalars(run.active_count());
}

#define GRIDLOPS_INSTANTIATE(T)                                         \
  template ColumnScalars ColumnMethod<T>::direction_gap(ColumnRun<T>&); \
  template class ColumnRun<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
