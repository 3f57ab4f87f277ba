// SPDX-License-Identifier: BSD-3-Clause
#include "solve/column_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "dist/together.hpp"
#include "gridlops/checkpoint.hpp"
#include "gridlops/error.hpp"
#include "gridlops/trace.hpp"
#include "solve/column_blocks.hpp"
#include "solve/problem_scale.hpp"

namespace gridlops {

namespace {

template <Scalar T>
VerdictRules rules_of(const ColumnMethod<T>& method, bool x_is_correction) {
  const MethodTraits& traits = method.traits();
  return {.test = traits.test,
          .default_tolerance = default_tolerance(scalar_type_of<T>),
          .absolute_tolerance = traits.absolute_tolerance,
          .judges_start = traits.judges_start,
          .x_is_correction = x_is_correction,
          .epsilon = static_cast<double>(std::numeric_limits<Real<T>>::epsilon()),
          .longest_sum = std::max<Index>({method.op().rows(), method.op().cols(), 1})};
}

}  // namespace

template <Scalar T>
ColumnRun<T>::ColumnRun(ColumnMethod<T>& method, const SolveOptions& options, MethodState<T>& state,
                        SolveLog<T>& log, Checkpoints<T>& checkpoints, const Guard& guard,
                        const ConstDistMatrix<T>& B, const ConstDistMatrix<T>* residuals, DistMatrix<T>& X,
                        const ColumnBatch& batch)
    : method_(method),
      options_(options),
      state_(state),
      log_(log),
      checkpoints_(checkpoints),
      guard_(guard),
      grid_(*B.grid()),
      batch_(batch),
      B_(B.column_slice(batch.first, batch.sizes)),
      whole_X_(X),
      begins_from_x_(options.initial_guess),
      sums_(B.grid(), options.column_stable ? ReductionOrder::by_rank : ReductionOrder::any),
      block_(state, batch.sizes, grid_.my_part(B.layout().cols.axis)),
      verdicts_(rules_of(method, residuals != nullptr), options, log.numbers()) {
  if (residuals != nullptr) residuals_.emplace(residuals->column_slice(batch.first, batch.sizes));
}

template <Scalar T>
void ColumnRun<T>::solve() {
  reserve();
  if (checkpoints_.has_saved()) {
    resume();
  } else {
    start();
  }
  run();
}

template <Scalar T>
void ColumnRun<T>::solve_again() {
  begins_from_x_ = true;
  reserve();
  start();
  run();
}

template <Scalar T>
void ColumnRun<T>::run() {
  try {
    do {
      while (block_.count() > 0) iterate();
    } while (verify());
  } catch (const Suspended&) {
    undo_scale(whole_X_, ActiveColumns(batch_.sizes));
    throw;
  }
  write_report();
}

/// All memory that iterations need is taken here, on all ranks or on none.
template <Scalar T>
void ColumnRun<T>::reserve() {
  const TraceRegion region("reserve");
  succeed_together(grid_.comm(), [this] {
    state_.begin_batch(whole_X_, batch_);
    sums_.reserve(B_.local().cols);
  });
  state_.show(block_.columns());
}

template <Scalar T>
void ColumnRun<T>::start() {
  const TraceRegion region("start");
  if (!begins_from_x_) state_.x().set_zero();
  if (method_.traits().test == ToleranceTest::own) {
    method_.start(*this);
  } else {
    scale_data();
    method_.start(*this);
    for (int tries = 0; scale_operator(tries); ++tries) method_.start(*this);
    take_exact_zeros();
  }
  // Where this goes on from another solve, that has made iterations, and found out about ‖A‖.
  for (Index j = 0; j < block_.count(); ++j) {
    const ColumnReport& before = log_.report().columns[at(right_hand_side(j))];
    column(j).iterations = before.iterations;
    column(j).operator_norm =
        std::max(column(j).operator_norm, std::ldexp(before.operator_norm, column(j).scale.A));
  }
  for (ColumnState& column : verdicts_.all()) column.first_residual_norm = column.residual_norm;
  begin_descents();
  test_convergence();
  log_.record(iteration_, block_.columns(), verdicts_);
  tell_observers(true);
  end_iteration();
}

/// Multiplies columns of B that are very large or small by powers of two.
template <Scalar T>
void ColumnRun<T>::scale_data() {
  const std::vector<int> powers = powers_of_columns(B_);
  std::vector<ColumnScale> scales(powers.size());
  for (std::size_t j = 0; j < powers.size(); ++j)
    if (std::abs(powers[j]) > unscaled_powers<T>) scales[j].b = -powers[j];
  set_scales(scales);
}

/// Multiplies A and D by a power of two if the norms at the start show that they are very large or small.
/// True if the method has to start with that. tries: how often that was so before.
template <Scalar T>
bool ColumnRun<T>::scale_operator(int tries) {
  // Norms whose squares are out of range are 0 or infinite, and show only on which side.
  constexpr int far = sizeof(Real<T>) == 4 ? 60 : 600, farthest = 2 * far;
  const bool adds_D2_to_A = method_.traits().test == ToleranceTest::residual;
  double norm = 0;
  bool has_data = false;
  for (const ColumnState& column : verdicts_.all()) {
    if (column.data_norm == 0 || !std::isfinite(column.data_norm)) continue;
    has_data = true;
    const double of_column =
        std::isnan(column.operator_norm) ? std::numeric_limits<double>::infinity() : column.operator_norm;
    norm = std::max({norm, of_column, adds_D2_to_A ? column.damp * column.damp : column.damp});
  }
  const int before = operator_power();
  if (!has_data || std::abs(before) >= farthest) return false;
  int change = 0;
  if (norm == 0) {
    change = tries == 0 ? far : -before;  // nothing of the data is in the range of A, whatever its size
  } else if (!std::isfinite(norm)) {
    change = -far;
  } else if (std::abs(std::ilogb(norm)) > unscaled_powers<T>) {
    change = -std::ilogb(norm) / 2 * 2;
  }
  if (change == 0) return false;
  std::vector<ColumnScale> scales;
  for (const ColumnState& column : verdicts_.all()) {
    const int power = before + change;
    scales.push_back({.A = power, .b = column.scale.b, .damp = adds_D2_to_A ? power / 2 : power});
  }
  set_scales(scales);
  return true;
}

/// Takes these scales for the columns, which are all in their places.
template <Scalar T>
void ColumnRun<T>::set_scales(const std::vector<ColumnScale>& scales) {
  std::vector<int> changes;
  for (std::size_t j = 0; j < scales.size(); ++j) {
    const auto column = static_cast<Index>(j);
    changes.push_back(scales[j].x() - verdicts_[column].scale.x());
    verdicts_.set_scale(column, scales[j]);
  }
  if (begins_from_x_) multiply_by_powers(state_.x(), changes);
  method_.scale_operator(operator_power(), batch_.sizes);
}

/// Gives X the units of the problem as it was given. columns: where the columns lie.
template <Scalar T>
void ColumnRun<T>::undo_scale(DistMatrix<T>& whole_X, const ActiveColumns& columns) const {
  std::vector<int> powers;
  for (int part = 0; part < batch_.sizes.parts(); ++part)
    for (const Index column : columns.order(part))
      powers.push_back(-verdicts_[batch_.sizes.begin(part) + column].scale.x());
  DistMatrix<T> of_batch = whole_X.column_slice(batch_.first, batch_.sizes);
  multiply_by_powers(of_batch, powers);
}

/// If nothing of b is in the range of A, as the reference says, x = 0 is a solution, and is taken in place of
/// a guess: no tolerance relative to 0 could be met.
template <Scalar T>
void ColumnRun<T>::take_exact_zeros() {
  if (!begins_from_x_ || residuals_) return;
  for (Index j = 0; j < block_.count(); ++j) {
    ColumnState& state = column(j);
    if (state.reference != 0) continue;
    grid_.backend()->template kernels<T>().fill(T(0), column_block(state_.x(), j));
    state.tested_norm = state.x_norm = 0;
    state.residual_norm = state.data_norm;
  }
}

template <Scalar T>
void ColumnRun<T>::iterate() {
  const TraceRegion region("iteration");
  ++iteration_;
  flags_are_due_ = true;
  method_.iterate(*this);
  for (Index k = 0; k < block_.count(); ++k) {
    if (ends()) column(k).reason = StopReason::user_stop;
    if (!column(k).reason) ++column(k).iterations;
  }
  if (!ends()) {
    const bool checks = guard_.is_due(iteration_);
    if (checks) check_residuals(false);
    keep_best(checks || !guard_.is_on());
    test_convergence();
    if (guard_.is_on()) check_norms();
    log_.record(iteration_, block_.columns(), verdicts_);
    tell_observers(false);
  }
  end_iteration();
}

/// Recomputes the norms of all columns from their definitions. True if some column goes on from there.
template <Scalar T>
bool ColumnRun<T>::verify() {
  const TraceRegion region("verify");
  block_.restore();
  flags_are_due_ = true;
  if (guard_.is_on()) check_residuals(true);
  const TrueNorms norms = method_.true_norms(*this);
  std::vector<char> goes_on(verdicts_.all().size(), 0);
  for (Index j = 0; j < block_.count(); ++j) {
    ColumnState& state = column(j);
    state.final_residual_norm = norms.residual[j];
    state.final_normal_norm = norms.normal[j];
    state.x_norm = norms.x[j];
    if (norms.reference.size() > 0) state.reference = norms.reference[j];
    if (norms.rounding.size() > 0) state.rounding_norm = norms.rounding[j];
    goes_on[at(j)] = verdicts_.verify(state, norms.tested[j], ends()) ? 1 : 0;
  }
  if (std::find(goes_on.begin(), goes_on.end(), 1) == goes_on.end()) return false;
  method_.restart(*this);
  begin_descents();
  block_.activate(goes_on);
  return true;
}

template <Scalar T>
void ColumnRun<T>::write_report() {
  const T nan(std::numeric_limits<Real<T>>::quiet_NaN());
  undo_scale(whole_X_, block_.columns());
  for (Index j = 0; j < block_.count(); ++j) {
    ColumnState& state = column(j);
    const double x_norm = std::ldexp(state.x_norm, -state.scale.x());
    if (x_norm > static_cast<double>(std::numeric_limits<Real<T>>::max()))
      state.reason = StopReason::non_finite;
    if (x_norm < static_cast<double>(std::numeric_limits<Real<T>>::min()) && state.x_norm > 0)
      state.reason = StopReason::breakdown;
    if (state.reason == StopReason::non_finite)
      grid_.backend()->template kernels<T>().fill(nan, column_block(state_.x(), j));
  }
  log_.report_batch(verdicts_);
}

template <Scalar T>
void ColumnRun<T>::tell_observers(bool at_start) {
  const auto is_scaled = [](const ColumnState& column) { return column.scale.x() != 0; };
  if (options_.observers.empty() || std::none_of(verdicts_.all().begin(), verdicts_.all().end(), is_scaled))
    return log_.tell_observers(whole_X_, iteration_, at_start, block_.columns(), verdicts_);
  DistMatrix<T> X = clone_together(whole_X_);
  undo_scale(X, block_.columns());
  log_.tell_observers(X, iteration_, at_start, block_.columns(), verdicts_);
}

template <Scalar T>
ColumnScalars ColumnRun<T>::steps(const ColumnScalars& gamma, const ColumnScalars& delta) {
  ColumnScalars alpha(block_.count());
  for (Index k = 0; k < block_.count(); ++k) {
    const bool fits_type = std::isfinite(static_cast<Real<T>>(gamma[k] / delta[k]));
    alpha[k] = verdicts_.step(column(k), gamma[k], delta[k], fits_type);
  }
  return alpha;
}

template <Scalar T>
void ColumnRun<T>::raise_operator_norms(const ColumnScalars& from_below) {
  for (Index k = 0; k < block_.count(); ++k)
    column(k).operator_norm = std::max(column(k).operator_norm, from_below[k]);
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
  set(norms.condition, &ColumnState::condition);
  set(norms.reference, &ColumnState::reference);
  set(norms.data, &ColumnState::data_norm);
  set(norms.objective, &ColumnState::objective);
  set(norms.rounding, &ColumnState::rounding_norm);
}

template <Scalar T>
ColumnFactors ColumnRun<T>::damping() const {
  if (options_.damp.is_one()) return ColumnFactors(block_.count() > 0 ? column(0).damp : 0);
  ColumnScalars each(block_.count());
  for (Index k = 0; k < block_.count(); ++k) each[k] = column(k).damp;
  return ColumnFactors(std::move(each));
}

template <Scalar T>
ColumnFactors ColumnRun<T>::squared_damping() const {
  if (!options_.damp.is_one()) return ColumnFactors(damping() * damping());
  const double damp = block_.count() > 0 ? column(0).damp : 0;
  return ColumnFactors(damp * damp);
}

template <Scalar T>
ColumnScalars ColumnRun<T>::damped_residual_norms() const {
  ColumnScalars norms(block_.count());
  for (Index k = 0; k < block_.count(); ++k) norms[k] = column(k).damped_residual_norm();
  return norms;
}

/// Y ← the active columns of B, as they lie now, in their scale.
template <Scalar T>
void ColumnRun<T>::copy_columns_of(const ConstDistMatrix<T>& B, DistMatrix<T>& Y) const {
  const std::vector<Index>& order = block_.columns().order(grid_.my_part(B_.layout().cols.axis));
  const Kernels<T>& kernels = grid_.backend()->template kernels<T>();
  for (Index k = 0; k < Y.local().cols; ++k)
    kernels.copy(B.local().col_block({order[at(k)], 1}), Y.local().col_block({k, 1}));
  std::vector<int> powers;
  for (Index k = 0; k < block_.count(); ++k) powers.push_back(column(k).scale.b);
  multiply_by_powers(Y, powers);
}

/// Makes x the best iterate so far.
template <Scalar T>
void ColumnRun<T>::begin_descents() {
  copy(state_.x(), state_.best_x());
  for (Index k = 0; k < block_.count(); ++k) column(k).begin_descent();
}

/// Keeps x where it has become much better, so that a column that comes to no good can go back. With a guard
/// only what that has checked is kept.
template <Scalar T>
void ColumnRun<T>::keep_best(bool x_is_checked) {
  std::vector<char> better(at(block_.count()), 0);
  for (Index k = 0; k < block_.count(); ++k) {
    ColumnState& state = column(k);
    if (state.reason || !state.finite()) continue;
    state.largest_x_norm = std::max(state.largest_x_norm, state.x_norm);
    better[at(k)] = x_is_checked && state.is_to_be_kept() ? 1 : 0;
  }
  copy_columns(better, state_.x(), state_.best_x());
}

/// Compares the recurrence with x, after an iteration or, with all columns in their places, at the end. There
/// columns that have gone back to the best iterate are left out, since r is not theirs.
template <Scalar T>
void ColumnRun<T>::check_residuals(bool at_end) {
  const TraceRegion region("guard");
  ColumnScalars gap = method_.residual_gap(*this);
  if (!at_end) gap = max(gap, method_.direction_gap(*this));
  log_.count_guard_products(block_.count());
  std::vector<char> fails(at(block_.count()), 0);
  for (Index k = 0; k < block_.count(); ++k) {
    const std::optional<StopReason>& reason = column(k).reason;
    if (at_end ? reason == StopReason::non_finite || verdicts_.goes_back_to_best(column(k))
               : reason.has_value())
      continue;
    const double limit = guard_.largest_gap(column(k), method_.traits().follows_residual);
    if (gap[k] <= limit) {
      column(k).failed_checks = 0;
    } else {
      raise_alarm(k, std::isfinite(gap[k]) ? GuardAlarm::Kind::gap : GuardAlarm::Kind::non_finite, gap[k],
                  limit);
      fails[at(k)] = 1;
    }
  }
  if (at_end) copy_columns(fails, state_.best_x(), state_.x());
}

/// Distrusts numbers that only a fault can have brought into an iteration, before they end a column.
template <Scalar T>
void ColumnRun<T>::check_norms() {
  for (Index k = 0; k < block_.count(); ++k) {
    const ColumnState& state = column(k);
    if (state.reason == StopReason::corrupted) continue;
    if (state.reason == StopReason::non_finite) {
      if (state.iterations > 0 && state.failed_checks == 0)
        raise_alarm(k, GuardAlarm::Kind::non_finite, std::numeric_limits<double>::quiet_NaN(), 0);
    } else if (const double limit = guard_.largest_norm(state); state.operator_norm > limit) {
      raise_alarm(k, GuardAlarm::Kind::norm, state.operator_norm, limit);
    }
  }
}

/// The column goes back to the best iterate when it leaves the products.
template <Scalar T>
void ColumnRun<T>::raise_alarm(Index k, GuardAlarm::Kind kind, double found, double limit) {
  ColumnState& state = column(k);
  const int power = kind == GuardAlarm::Kind::norm ? state.scale.A : state.scale.b;
  log_.raise_alarm(
      {kind, iteration_, right_hand_side(k), std::ldexp(found, -power), std::ldexp(limit, -power)});
  state.reason = StopReason::corrupted;
  state.operator_norm = std::isfinite(norm_A()) ? norm_A() : 0;
  ++state.failed_checks;
}

template <Scalar T>
void ColumnRun<T>::test_convergence() {
  for (Index k = 0; k < block_.count(); ++k) verdicts_.test(column(k));
}

/// Columns at the limit of iterations leave only after the state is saved. So a restart that allows more
/// iterations goes on with all columns that a run without interruption has.
template <Scalar T>
void ColumnRun<T>::end_iteration() {
  const bool saves = is_to_be_saved();
  deflate([](StopReason reason) { return reason != StopReason::iteration_limit; });
  if (saves) save();
  deflate([](StopReason) { return true; });
}

/// Columns that have ended for one of these reasons leave the products.
template <Scalar T>
void ColumnRun<T>::deflate(const std::function<bool(StopReason)>& which) {
  std::vector<char> leaves(at(block_.count()), 0), goes_back = leaves;
  for (Index k = 0; k < block_.count(); ++k) {
    if (!column(k).reason || !which(*column(k).reason)) continue;
    leaves[at(k)] = 1;
    goes_back[at(k)] = verdicts_.goes_back_to_best(column(k)) ? 1 : 0;
  }
  copy_columns(goes_back, state_.best_x(), state_.x());
  block_.deflate(leaves);
}

/// Whether the state is saved after this iteration; the same on all ranks.
template <Scalar T>
bool ColumnRun<T>::is_to_be_saved() const {
  if (!checkpoints_.saves() || log_.stop_is_asked()) return false;
  const auto is_at_limit = [](const ColumnState& state) {
    return state.reason == StopReason::iteration_limit;
  };
  const auto all = std::count_if(verdicts_.all().begin(), verdicts_.all().end(), is_at_limit);
  Index now = 0;
  for (Index k = 0; k < block_.count(); ++k) now += is_at_limit(verdicts_[number(k)]) ? 1 : 0;
  // Once a column has come to the limit, a restart of other columns is something that a run with more
  // iterations would not do. So the state after it is not saved to go on from.
  if (all > now) return checkpoints_.suspends();
  return now > 0 || checkpoints_.due(iteration_);
}

/// Columns are saved in their own places, so that any grid can go on with them.
template <Scalar T>
void ColumnRun<T>::save() {
  const TraceRegion region("checkpoint");
  StateArchive numbers = checkpoints_.begin_numbers();
  numbers.visit(log_);
  std::vector<Index> of_batch = log_.numbers();
  ActiveColumns columns = block_.columns();
  numbers.visit_list(of_batch);
  numbers.visit(columns);
  block_.in_their_places([&] {
    visit(numbers);
    checkpoints_.save(numbers, state_.lasting(), iteration_);
  });
}

template <Scalar T>
void ColumnRun<T>::resume() {
  StateArchive& numbers = checkpoints_.saved_numbers();
  std::vector<Index> saved_columns;
  numbers.visit_list(saved_columns);
  require<InputError>(saved_columns == log_.numbers(),
                      "the checkpoint is of a batch of other right-hand sides: batches of what is cut over "
                      "the grid are as its parts are; go on with as many parts, or with all columns uncut");
  ActiveColumns saved_order = block_.columns();
  numbers.visit(saved_order);
  visit(numbers);
  checkpoints_.take_saved(state_.lasting());
  state_.show(block_.columns());
  std::vector<char> unfinished;
  for (Index j = 0; j < batch_.sizes.total(); ++j) {
    verdicts_.set_scale(j, verdicts_[j].scale);
    verdicts_.judge_anew(verdicts_[j]);
    unfinished.push_back(verdicts_[j].reason ? 0 : 1);
  }
  method_.scale_operator(operator_power(), batch_.sizes);
  if (saved_order.same_partition(block_.columns()) && saved_order.has_active(unfinished)) {
    block_.arrange_as(saved_order);
  } else {
    block_.activate(unfinished);
  }
  tell_observers(true);
  deflate([](StopReason) { return true; });
}

template <Scalar T>
void ColumnRun<T>::visit(StateArchive& archive) {
  archive.visit(iteration_);
  archive.visit_list(verdicts_.all());
  state_.visit(archive);
}

/// Appends flags for what some rank alone knows: that the end, or a checkpoint, is wanted.
template <Scalar T>
void ColumnRun<T>::add_flags(std::vector<double>& numbers) {
  if (!flags_are_due_) return;
  numbers.push_back(log_.stop_is_wanted() ? 1 : 0);
  checkpoints_.add_flags(numbers);
}

template <Scalar T>
void ColumnRun<T>::take_flags(std::vector<double>& numbers) {
  if (!flags_are_due_) return;
  flags_are_due_ = false;
  checkpoints_.take_flags(numbers);
  log_.set_stop_is_asked(numbers.back() > 0);
  numbers.pop_back();
}

template <Scalar T>
ColumnScalars ColumnMethod<T>::direction_gap(ColumnRun<T>& run) {
  return ColumnScalars(run.active_count());
}

#define GRIDLOPS_INSTANTIATE(T)                                         \
  template ColumnScalars ColumnMethod<T>::direction_gap(ColumnRun<T>&); \
  template class ColumnRun<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
