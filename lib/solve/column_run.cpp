// SPDX-License-Identifier: BSD-3-Clause
#include "solve/column_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solve/column_method.hpp"

namespace gridlops {

namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

template <class T>
const T& read_only(T& value) {
  return value;
}

}  // namespace

template <Scalar T>
ColumnRun<T>::ColumnRun(ColumnMethod<T>& method, const SolveOptions& options, SolveProgress& progress,
                        const DistMatrix<T>& B, DistMatrix<T>& X, const ColumnBatch& columns)
    : method_(method),
      options_(options),
      tolerance_(options.tolerance.value_or(sizeof(Real<T>) == 4 ? 1e-4 : 1e-8)),
      progress_(progress),
      grid_(*B.grid()),
      part_(grid_.my_part(B.layout().cols.axis)),
      B_(B.column_slice(columns.first, columns.sizes)),
      X_(X.column_slice(columns.first, columns.sizes)),
      sums_(grid_, options.column_stable ? ReductionOrder::by_rank : ReductionOrder::any),
      active_(columns.sizes),
      columns_(at(columns.sizes.total())),
      numbers_(columns.numbers_in(B.layout().cols.partition)),
      spare_(grid_.backend(), std::max(B.local().rows, X.local().rows)) {}

template <Scalar T>
void ColumnRun<T>::solve() {
  if (!options_.initial_guess) X_.set_zero();
  method_.start(*this, !options_.initial_guess);
  begin_descents();
  judge_active();
  record();
  retire_ended();
  do {
    iterate();
  } while (verify());
  write_report();
}

template <Scalar T>
void ColumnRun<T>::iterate() {
  while (active_.count() > 0) {
    ++iteration_;
    if (method_.iterate(*this)) {
      for (Index k = 0; k < active_.count(); ++k)
        if (!column(k).reason) ++column(k).iterations;
      keep_best();
      judge_active();
      record();
      if (options_.callback && options_.callback(information())) progress_.stop_asked = true;
    } else {
      for (Index k = 0; k < active_.count(); ++k) column(k).reason = StopReason::user_stop;
    }
    retire_ended();
  }
}

template <Scalar T>
bool ColumnRun<T>::reduce() {
  sums_.add_flag(progress_.stop_asked ? 1 : 0);
  sums_.reduce();
  progress_.stop_asked = sums_.flag() > 0;
  return progress_.stop_asked;
}

template <Scalar T>
DistMatrix<T> ColumnRun<T>::x() {
  return X_.column_slice(std::vector<Index>(at(active_.partition().parts()), 0), active_.partition());
}

template <Scalar T>
MatrixView<T> ColumnRun<T>::column_block(DistMatrix<T>& X, Index k) const {
  const Range mine = active_.partition().range(part_);
  return X.local().col_block(intersect({k - mine.begin, 1}, {0, mine.size}));
}

template <Scalar T>
const T* ColumnRun<T>::local_scalars(const std::vector<double>& scalars) {
  const Range mine = active_.partition().range(part_);
  host_scalars_.resize(at(mine.size));
  for (Index j = 0; j < mine.size; ++j)
    host_scalars_[at(j)] = static_cast<T>(static_cast<Real<T>>(scalars[at(mine.begin + j)]));
  device_scalars_.reserve(grid_.backend(), mine.size);
  grid_.backend()->upload(host_scalars_.data(), device_scalars_.data(),
                          mine.size * static_cast<Index>(sizeof(T)));
  return device_scalars_.data();
}

template <Scalar T>
void ColumnRun<T>::axpy(const std::vector<double>& alpha, const DistMatrix<T>& X, DistMatrix<T>& Y) {
  kernels().column_axpy(local_scalars(alpha), X.local(), Y.local());
}

template <Scalar T>
void ColumnRun<T>::xpby(const DistMatrix<T>& X, const std::vector<double>& beta, DistMatrix<T>& Y) {
  kernels().column_xpby(X.local(), local_scalars(beta), Y.local());
}

template <Scalar T>
void ColumnRun<T>::scale(const std::vector<double>& alpha, DistMatrix<T>& X) {
  kernels().column_scale(local_scalars(alpha), X.local());
}

template <Scalar T>
void ColumnRun<T>::threshold(Threshold kind, const std::vector<double>& t, DistMatrix<T>& X) {
  const Range mine = active_.partition().range(part_);
  device_thresholds_.reserve(grid_.backend(), mine.size);
  grid_.backend()->upload(t.data() + mine.begin, device_thresholds_.data(),
                          mine.size * static_cast<Index>(sizeof(double)));
  kernels().column_threshold(kind, device_thresholds_.data(), X.local());
}

/// Neighbours go in one copy.
template <Scalar T>
void ColumnRun<T>::copy_columns(const std::vector<char>& chosen, const DistMatrix<T>& X,
                                DistMatrix<T>& Y) const {
  const Range mine = active_.partition().range(part_);
  const auto is_chosen = [&](Index j) { return j < mine.size && chosen[at(mine.begin + j)] != 0; };
  for (Index begin = 0, end = 0; begin < mine.size; begin = end + 1) {
    for (end = begin; is_chosen(end);) ++end;
    const Range run{begin, end - begin};
    if (run.size > 0) kernels().copy(X.local().col_block(run), Y.local().col_block(run));
  }
}

template <Scalar T>
void ColumnRun<T>::judge(ColumnState& state) const {
  if (state.reason) return;
  if (!state.finite()) {
    state.reason = StopReason::non_finite;
  } else if (method_.meets_tolerance(state, tolerance_)) {
    state.reason = StopReason::converged;
  } else if (state.iterations > 0 && (method_.at_rounding_level(state) ||
                                      (method_.rounding_ends_descent() && state.stopped_falling()))) {
    state.reason = StopReason::stagnated;
  } else if (method_.beyond_condition_limit(state)) {
    state.reason = StopReason::condition_limit;
  } else if (state.iterations >= options_.max_iterations) {
    state.reason = StopReason::iteration_limit;
  }
}

template <Scalar T>
void ColumnRun<T>::judge_active() {
  for (Index k = 0; k < active_.count(); ++k) judge(column(k));
}

/// From now on x is the best so far.
template <Scalar T>
void ColumnRun<T>::begin_descents() {
  DistMatrix<T> kept = matrix(best_, method_.A().domain());
  copy(x(), kept);
  for (Index k = 0; k < active_.count(); ++k) column(k).begin_descent();
}

/// Keeps x where it has become much better, so that a column that stagnates can go back.
template <Scalar T>
void ColumnRun<T>::keep_best() {
  std::vector<char> better(at(active_.count()), 0);
  for (Index k = 0; k < active_.count(); ++k) {
    ColumnState& state = column(k);
    better[at(k)] = !state.reason && state.finite() && state.note_descent() ? 1 : 0;
  }
  DistMatrix<T> kept = matrix(best_, method_.A().domain());
  copy_columns(better, x(), kept);
}

template <Scalar T>
void ColumnRun<T>::retire_ended() {
  std::vector<char> leaves(at(active_.count()), 0);
  DistMatrix<T> kept = matrix(best_, method_.A().domain());
  for (Index k = 0; k < active_.count(); ++k) {
    const ColumnState& state = column(k);
    if (!state.reason) continue;
    leaves[at(k)] = 1;
    // At the rounding level this iterate is as good as any, and where that is one of ‖r‖ an earlier one with
    // less ‖s‖ may be far worse.
    if (state.reason == StopReason::stagnated && !method_.at_rounding_level(state) &&
        state.tested_norm > state.snapshot_norm)
      kernels().copy(column_block(kept, k), column_block(X_, k));
  }
  swap_columns(active_.retire(leaves, part_));
}

template <Scalar T>
void ColumnRun<T>::swap_columns(const ActiveColumns::Swaps& swaps) {
  if (swaps.empty()) return;
  const Partition& all = X_.layout().cols.partition;
  std::vector<DistMatrix<T>> matrices = method_.lasting(all);
  matrices.push_back(best_.matrix(method_.A().domain(), all));
  matrices.push_back(X_.column_slice(std::vector<Index>(at(all.parts()), 0), all));
  for (const auto& [i, j] : swaps) {
    for (DistMatrix<T>& X : matrices) {
      const MatrixView<T> first = X.local().col_block({i, 1}), second = X.local().col_block({j, 1});
      const MatrixView<T> spare(spare_.data(), first.rows, 1);
      kernels().copy(first, spare);
      kernels().copy(second, first);
      kernels().copy(spare, second);
    }
  }
}

/// The norms of all columns from their definitions. True if some column goes on from there.
template <Scalar T>
bool ColumnRun<T>::verify() {
  swap_columns(active_.restore(part_));
  sums_.begin(active_.count());
  method_.add_final_norms(*this);
  reduce();
  std::vector<char> goes_on(columns_.size(), 0);
  bool any = false;
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    const auto k = static_cast<Index>(j);
    ColumnState& state = columns_[j];
    state.final_residual_norm = std::sqrt(sums_.of(0, k));
    state.final_normal_norm = std::sqrt(sums_.of(1, k));
    state.x_norm = std::sqrt(sums_.of(3, k));
    goes_on[j] = conclude(state, std::sqrt(sums_.of(2, k))) ? 1 : 0;
    any = any || goes_on[j] != 0;
  }
  if (!any) return false;
  method_.restart(*this);
  begin_descents();
  swap_columns(active_.activate(goes_on, part_));
  return true;
}

/// The final verdict, now that what is tested is known from its definition. True if the column goes on: it
/// claimed to have converged, has not, and has come closer since it was last restarted.
template <Scalar T>
bool ColumnRun<T>::conclude(ColumnState& state, double tested) {
  if (!std::isfinite(tested)) state.reason = StopReason::non_finite;
  if (state.reason == StopReason::non_finite) return false;
  const bool claimed = state.reason == StopReason::converged;
  state.tested_norm = tested;
  state.residual_norm = state.final_residual_norm;
  if (method_.meets_tolerance(state, tolerance_)) {
    state.reason = StopReason::converged;
  } else if (claimed) {
    const bool closer = state.verified_norm == 0 || tested < 0.5 * state.verified_norm;
    if (state.iterations >= options_.max_iterations) {
      state.reason = StopReason::iteration_limit;
    } else if (!closer || !method_.can_restart()) {
      state.reason = StopReason::stagnated;
    } else if (progress_.stop_asked) {
      state.reason = StopReason::user_stop;
    } else {
      state.reason.reset();
      state.verified_norm = tested;
      return true;
    }
  }
  return false;
}

template <Scalar T>
void ColumnRun<T>::record() {
  IterationRecord record;
  record.iteration = iteration_;
  for (Index k = 0; k < active_.count(); ++k) {
    const Index number = numbers_[at(active_.column(k))];
    progress_.residual_norms[at(number)] = column(k).residual_norm;
    progress_.tested_norms[at(number)] = column(k).relative_norm();
    if (!options_.record_history) continue;
    record.columns.push_back(number);
    record.residual_norms.push_back(column(k).residual_norm);
    record.tested_norms.push_back(column(k).relative_norm());
  }
  if (options_.record_history) progress_.report.history.push_back(std::move(record));
}

template <Scalar T>
IterationInfo ColumnRun<T>::information() {
  Index still_active = 0;
  for (Index k = 0; k < active_.count(); ++k) still_active += column(k).reason ? 0 : 1;
  return {iteration_, still_active, progress_.residual_norms, progress_.tested_norms};
}

template <Scalar T>
void ColumnRun<T>::write_report() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    const ColumnState& state = columns_[j];
    ColumnReport& column_report = progress_.report.columns[at(numbers_[j])];
    const bool lost = state.reason == StopReason::non_finite;
    if (lost) kernels().fill(T(static_cast<Real<T>>(nan)), column_block(X_, static_cast<Index>(j)));
    column_report.reason = *state.reason;
    column_report.iterations = state.iterations;
    column_report.residual_norm = lost ? nan : state.final_residual_norm;
    column_report.normal_residual_norm = lost ? nan : state.final_normal_norm;
    column_report.operator_norm = state.operator_norm;
    column_report.condition = state.condition;
    progress_.report.iterations = std::max(progress_.report.iterations, state.iterations);
  }
}

template class ColumnRun<float>;
template class ColumnRun<double>;
template class ColumnRun<std::complex<float>>;
template class ColumnRun<std::complex<double>>;

}  // namespace gridlops
