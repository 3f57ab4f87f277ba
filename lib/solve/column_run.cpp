// SPDX-License-Identifier: BSD-3-Clause
#include "solve/column_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "dist/together.hpp"
#include "gridlops/error.hpp"
#include "solve/column_method.hpp"

namespace gridlops {

namespace {

template <class T>
const T& read_only(T& value) {
  return value;
}

}  // namespace

void SolveProgress::visit(StateArchive& archive) {
  archive.visit(batch, report.iterations);
  archive.visit_list(residual_norms);
  archive.visit_list(tested_norms);
  archive.visit_list(x_norms);
  for (ColumnReport& column : report.columns)
    archive.visit(column.reason, column.iterations, column.residual_norm, column.normal_residual_norm,
                  column.operator_norm, column.condition);
  Index records = static_cast<Index>(report.history.size());
  archive.visit(records);
  report.history.resize(at(records));
  for (IterationRecord& record : report.history) {
    archive.visit(record.iteration);
    archive.visit_list(record.columns);
    archive.visit_list(record.residual_norms);
    archive.visit_list(record.tested_norms);
  }
}

template <Scalar T>
ColumnRun<T>::ColumnRun(ColumnMethod<T>& method, const SolveOptions& options, SolveProgress& progress,
                        Checkpoints<T>& checkpoints, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                        const ColumnBatch& columns)
    : method_(method),
      options_(options),
      tolerance_(options.tolerance.value_or(default_tolerance<T>)),
      progress_(progress),
      checkpoints_(checkpoints),
      grid_(*B.grid()),
      part_(grid_.my_part(B.layout().cols.axis)),
      batch_(columns),
      B_(B.column_slice(columns.first, columns.sizes)),
      X_(X.column_slice(columns.first, columns.sizes)),
      sums_(grid_, options.column_stable ? ReductionOrder::by_rank : ReductionOrder::any),
      active_(columns.sizes),
      columns_(at(columns.sizes.total())),
      numbers_(columns.numbers_in(B.layout().cols.partition)) {}

/// All that iterations need is taken here.
template <Scalar T>
void ColumnRun<T>::reserve() {
  succeed_together(grid_.comm(), [this] {
    const Index columns = X_.local().cols;
    spare_.reserve(grid_.backend(), std::max(B_.local().rows, X_.local().rows));
    device_scalars_.reserve(grid_.backend(), columns);
    sums_.reserve(columns);
    method_.prepare(*this);
    lasting_matrices();
  });
}

template <Scalar T>
void ColumnRun<T>::solve() {
  reserve();
  if (checkpoints_.has_saved()) {
    resume();
  } else {
    start();
  }
  do {
    iterate();
  } while (verify());
  write_report();
}

template <Scalar T>
void ColumnRun<T>::start() {
  if (!options_.initial_guess) X_.set_zero();
  method_.start(*this, !options_.initial_guess);
  for (ColumnState& state : columns_) state.first_residual_norm = state.residual_norm;
  begin_descents();
  give_up_lost_columns();
  judge_active();
  record();
  tell_observers();
  end_iteration();
}

/// Zero that is none would pass for a solution.
template <Scalar T>
void ColumnRun<T>::give_up_lost_columns() {
  for (std::size_t j = 0; j < columns_.size(); ++j)
    if (method_.starts_too_small(columns_[j]) && is_lost(static_cast<Index>(j)))
      columns_[j].reason = StopReason::non_finite;
}

/// Whether the norm of r = b − Ax or of Aᴴr, as it was summed, lacks what is below the range of the numbers:
/// if neither is zero when r is as long as can be.
template <Scalar T>
bool ColumnRun<T>::is_lost(Index j) {
  const Partition& columns = B_.layout().cols.partition;
  const int part = columns.owner_of(j);
  std::vector<Index> first(at(columns.parts()), 0), sizes = first;
  first[at(part)] = j - columns.begin(part);
  sizes[at(part)] = 1;
  const Partition one = Partition::with_sizes(sizes);
  const LinearOperator<T>& A = method_.A();
  DistMatrix<T> r = clone_together(B_.column_slice(first, one)),
                s = make_together<T>(X_.grid(), A.domain().layout(one));
  if (options_.initial_guess) A.apply(T(-1), X_.column_slice(first, one), T(1), r);

  constexpr int most = sizeof(Real<T>) == 4 ? 100 : 900;  // in powers of two
  const double norm = columns_[at(j)].residual_norm;
  const int power = norm >= smallest_safe_norm ? std::clamp(-std::ilogb(norm), -most, most) : most;
  const auto scaled_norm = [](int by, DistMatrix<T>& v) {
    FailureScope().run([&] { column_scale({to_scalar<T>(std::ldexp(1.0, by))}, v); });
    return column_norms(v)[0];
  };
  // What is smaller may have been lost: squares in double precision, elements in their own.
  const double least = std::max(
      smallest_safe_norm,
      static_cast<double>(std::numeric_limits<Real<T>>::min() / std::numeric_limits<Real<T>>::epsilon()));
  const double length = std::ldexp(scaled_norm(power, r), -power);
  // Alone, a column may be rounded otherwise: zeros of cancellation become what can be squared.
  if (length == 0 || (norm < smallest_safe_norm && length >= least)) return false;
  A.apply_adjoint(T(1), r, T(0), s);
  const double gradient = std::ldexp(scaled_norm(most, s), -most);
  if (norm >= smallest_safe_norm && std::min(gradient, gradient * norm) >= least) return false;
  return gradient != 0;
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
      FailureScope().run([this] {
        if (options_.callback && options_.callback(information())) progress_.stop_wished = true;
      });
      tell_observers();
    } else {
      for (Index k = 0; k < active_.count(); ++k) column(k).reason = StopReason::user_stop;
    }
    end_iteration();
  }
}

/// Columns at the limit of iterations leave only when the state is saved: a restart that allows more goes on
/// with all columns where a run without interruption has them.
template <Scalar T>
void ColumnRun<T>::end_iteration() {
  const bool saves = is_to_be_saved();
  retire([](StopReason reason) { return reason != StopReason::iteration_limit; });
  if (saves) save();
  retire_ended();
}

/// The same on all ranks.
template <Scalar T>
bool ColumnRun<T>::is_to_be_saved() const {
  if (!checkpoints_.saves() || progress_.stop_asked) return false;
  const auto is_at_limit = [](const ColumnState& state) {
    return state.reason == StopReason::iteration_limit;
  };
  const auto all = std::count_if(columns_.begin(), columns_.end(), is_at_limit);
  Index now = 0;
  for (Index k = 0; k < active_.count(); ++k) now += is_at_limit(columns_[at(active_.column(k))]) ? 1 : 0;
  // What is done after the first of them came to the limit, once columns have been restarted, is no part of a
  // run with more iterations.
  if (all > now) return checkpoints_.suspends();
  return now > 0 || checkpoints_.due(iteration_);
}

template <Scalar T>
bool ColumnRun<T>::reduce() {
  const std::size_t stop = sums_.add_number(progress_.stop_wished ? 1 : 0);
  checkpoints_.add_wishes(sums_);
  sums_.reduce();
  progress_.stop_asked = sums_.number(stop) > 0;
  checkpoints_.learn_wishes(sums_);
  return progress_.stop_asked;
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
  for (Index j = 0; j < mine.size; ++j) host_scalars_[at(j)] = to_scalar<T>(scalars[at(mine.begin + j)]);
  grid_.backend()->upload(host_scalars_.data(), device_scalars_.data(),
                          mine.size * static_cast<Index>(sizeof(T)));
  return device_scalars_.data();
}

template <Scalar T>
void ColumnRun<T>::axpy(const std::vector<double>& alpha, const ConstDistMatrix<T>& X, DistMatrix<T>& Y) {
  kernels().column_axpy(local_scalars(alpha), X.local(), Y.local());
}

template <Scalar T>
void ColumnRun<T>::xpby(const ConstDistMatrix<T>& X, const std::vector<double>& beta, DistMatrix<T>& Y) {
  kernels().column_xpby(X.local(), local_scalars(beta), Y.local());
}

template <Scalar T>
void ColumnRun<T>::scale(const std::vector<double>& alpha, DistMatrix<T>& X) {
  kernels().column_scale(local_scalars(alpha), X.local());
}

template <Scalar T>
void ColumnRun<T>::threshold(Threshold kind, const std::vector<double>& t, DistMatrix<T>& X) {
  const Range mine = active_.partition().range(part_);
  grid_.backend()->upload(t.data() + mine.begin, device_thresholds_.data(),
                          mine.size * static_cast<Index>(sizeof(double)));
  kernels().column_threshold(kind, device_thresholds_.data(), X.local());
}

/// Neighbours go in one copy.
template <Scalar T>
void ColumnRun<T>::copy_columns(const std::vector<char>& chosen, const ConstDistMatrix<T>& X,
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
  } else if (options_.residual_ratio > 0 &&
             state.residual_norm <= options_.residual_ratio * state.first_residual_norm) {
    state.reason = StopReason::user_stop;
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
  retire([](StopReason) { return true; });
}

/// Columns that have ended for one of these reasons leave the products.
template <Scalar T>
void ColumnRun<T>::retire(const std::function<bool(StopReason)>& which) {
  std::vector<char> leaves(at(active_.count()), 0);
  DistMatrix<T> kept = matrix(best_, method_.A().domain());
  for (Index k = 0; k < active_.count(); ++k) {
    const ColumnState& state = column(k);
    if (!state.reason || !which(*state.reason)) continue;
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
  std::vector<NamedMatrix<T>> matrices = lasting_matrices();
  matrices.push_back({"x", X_.column_slice(std::vector<Index>(at(all.parts()), 0), all)});
  for (const auto& [i, j] : swaps) {
    for (NamedMatrix<T>& named : matrices) {
      const MatrixView<T> block = named.matrix.local();
      const MatrixView<T> first = block.col_block({i, 1}), second = block.col_block({j, 1});
      const MatrixView<T> spare(spare_.data(), first.rows, 1);
      kernels().copy(first, spare);
      kernels().copy(second, first);
      kernels().copy(spare, second);
    }
  }
}

/// What follows the columns, besides x.
template <Scalar T>
std::vector<NamedMatrix<T>> ColumnRun<T>::lasting_matrices() {
  const Partition& all = X_.layout().cols.partition;
  std::vector<NamedMatrix<T>> matrices = method_.lasting(all);
  matrices.push_back({"best", best_.matrix(method_.A().domain(), all)});
  return matrices;
}

template <Scalar T>
void ColumnRun<T>::visit(StateArchive& archive) {
  archive.visit(iteration_);
  archive.visit_list(columns_);
  method_.visit(archive);
}

/// Columns are saved in their own places, so that any grid can go on with them.
template <Scalar T>
void ColumnRun<T>::save() {
  StateArchive numbers = checkpoints_.begin_numbers();
  numbers.visit(progress_);
  numbers.visit_list(numbers_);
  numbers.visit(active_);
  visit(numbers);
  ActiveColumns in_their_places = active_;
  ActiveColumns::Swaps swaps = in_their_places.restore(part_);
  swap_columns(swaps);
  std::vector<NamedMatrix<T>> matrices = lasting_matrices();
  for (NamedMatrix<T>& named : method_.shared()) matrices.push_back(std::move(named));
  checkpoints_.save(numbers, matrices, iteration_);
  std::reverse(swaps.begin(), swaps.end());
  swap_columns(swaps);
}

template <Scalar T>
void ColumnRun<T>::resume() {
  StateArchive& numbers = checkpoints_.saved_numbers();
  std::vector<Index> saved_columns;
  numbers.visit_list(saved_columns);
  require<InputError>(saved_columns == numbers_,
                      "the checkpoint is of a batch of other right-hand sides: batches of what is cut over "
                      "the grid are as its parts are; go on with as many parts, or with all columns uncut");
  ActiveColumns saved_order = active_;
  numbers.visit(saved_order);
  visit(numbers);
  std::vector<NamedMatrix<T>> matrices = lasting_matrices();
  for (NamedMatrix<T>& named : method_.shared()) matrices.push_back(std::move(named));
  checkpoints_.take_saved(std::move(matrices));
  std::vector<char> unfinished;
  for (ColumnState& state : columns_) {
    // More iterations, or fewer, may be allowed now.
    const bool at_limit = state.iterations >= options_.max_iterations;
    if (state.reason == StopReason::iteration_limit && !at_limit) state.reason.reset();
    if (!state.reason && at_limit) state.reason = StopReason::iteration_limit;
    unfinished.push_back(state.reason ? 0 : 1);
  }
  const bool as_saved = saved_order.same_partition(active_) && saved_order.has_active(unfinished);
  swap_columns(as_saved ? active_.arrange_as(saved_order, part_) : active_.activate(unfinished, part_));
  tell_observers();
  retire_ended();
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
      // Where x is zero after all its steps, they were too small for the elements' type.
      state.reason = state.x_norm == 0 ? StopReason::breakdown : StopReason::stagnated;
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
    progress_.x_norms[at(number)] = column(k).x_norm;
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
  return {iteration_,        still_active,           progress_.residual_norms, progress_.tested_norms,
          progress_.x_norms, progress_.first_element};
}

/// Where column 0 has ended it is as it was.
template <Scalar T>
void ColumnRun<T>::note_first_element() {
  if (numbers_.empty() || numbers_.front() != 0 || X_.local_row_range().begin != 0) return;
  for (Index k = 0; k < active_.count(); ++k) {
    if (active_.column(k) != 0) continue;
    const MatrixView<T> block = column_block(X_, k);
    if (block.rows == 0 || block.cols == 0) return;
    T element;
    grid_.backend()->download(block.data, &element, static_cast<Index>(sizeof(T)));
    progress_.first_element = {static_cast<double>(std::real(element)),
                               static_cast<double>(std::imag(element))};
    return;
  }
}

template <Scalar T>
void ColumnRun<T>::tell_observers() {
  if (options_.observers.empty()) return;
  note_first_element();
  const IterationInfo info = information();
  FailureScope().run([&] {
    for (const auto& observer : options_.observers)
      if (observer->step(info)) progress_.stop_wished = true;
  });
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

#define GRIDLOPS_INSTANTIATE(T) template class ColumnRun<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
