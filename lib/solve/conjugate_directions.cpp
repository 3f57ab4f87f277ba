// SPDX-License-Identifier: BSD-3-Clause
#include "solve/conjugate_directions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/message.hpp"
#include "gridlops/error.hpp"
#include "ops/scratch.hpp"
#include "solve/active_columns.hpp"
#include "solve/batches.hpp"

namespace gridlops {

namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

template <class T>
const T& read_only(T& value) {
  return value;
}

/// What all batches of a run share.
struct Run {
  SolveReport report;
  std::vector<double> residual_norms, tested_norms;  // the last known, per column of B
  bool stop_asked = false;                           // by a callback, on this rank or, once agreed, on any
};

/// The right-hand sides that are solved together.
template <Scalar T>
class Batch {
 public:
  Batch(const ConjugateDirections<T>& method, const SolveOptions& options, Run& run, const DistMatrix<T>& B,
        DistMatrix<T>& X, const ColumnBatch& columns)
      : method_(method),
        options_(options),
        tolerance_(options.tolerance.value_or(sizeof(Real<T>) == 4 ? 1e-4 : 1e-8)),
        run_(run),
        grid_(*B.grid()),
        part_(grid_.my_part(B.layout().cols.axis)),
        B_(B.column_slice(columns.first, columns.sizes)),
        X_(X.column_slice(columns.first, columns.sizes)),
        sums_(grid_, options.column_stable ? ReductionOrder::by_rank : ReductionOrder::any),
        active_(columns.sizes),
        columns_(at(columns.sizes.total())),
        numbers_(columns.numbers_in(B.layout().cols.partition)),
        spare_(grid_.backend(), std::max(B.local().rows, X.local().rows)) {}

  void solve() {
    start();
    do {
      iterate();
    } while (verify());
    write_report();
  }

 private:
  // Vectors. Their blocks are as wide as the batch; the active columns come first.

  Directions<T> directions() {
    const Partition& columns = active_.partition();
    DistMatrix<T> r = r_.matrix(method_.A().range(), columns);
    DistMatrix<T> s = method_.tests_residual() ? DistMatrix<T>(r.grid(), r.layout(), r.local())
                                               : s_.matrix(method_.A().domain(), columns);
    return {X_.column_slice(std::vector<Index>(at(columns.parts()), 0), columns), std::move(r),
            p_.matrix(method_.A().domain(), columns), q_.matrix(method_.A().range(), columns), std::move(s)};
  }
  DistMatrix<T> best() { return best_.matrix(method_.A().domain(), active_.partition()); }
  const Kernels<T>& kernels() const { return grid_.backend()->template kernels<T>(); }
  ColumnState& column(Index k) { return columns_[at(active_.column(k))]; }

  /// Column k of the active ones as this rank has it; empty if another rank does.
  MatrixView<T> column_block(DistMatrix<T>& X, Index k) const {
    const Range mine = active_.partition().range(part_);
    return X.local().col_block(intersect({k - mine.begin, 1}, {0, mine.size}));
  }

  void start() {
    Directions<T> v = directions();
    best_.matrix(method_.A().domain(), active_.partition());
    kernels().copy(B_.local(), v.r.local());
    if (options_.initial_guess) {
      // The reference is the larger of the tested norms for x = 0 and for x₀, neither with damping.
      method_.compute_gradient(v);
      reduce_norms(v);
      raise_references();
      method_.A().apply(T(-1), v.x, T(1), v.r);
    } else {
      v.x.set_zero();
    }
    method_.compute_gradient(v);
    reduce_norms(v);
    raise_references();
    if (options_.initial_guess && method_.damp() > 0) {
      method_.add_damping(-1, v.x, v.s);
      reduce_norms(v);
    }
    for (Index k = 0; k < active_.count(); ++k) {
      take_norms(column(k), k);
      column(k).begin_descent();
      judge(column(k));
    }
    aim(v);
    record();
    retire_ended();
  }

  void reduce_norms(const Directions<T>& v) {
    sums_.begin(active_.count());
    sums_.add_norms_squared(v.s);
    sums_.add_norms_squared(v.r);
    sums_.add_norms_squared(v.x);
    sums_.reduce();
  }
  void take_norms(ColumnState& state, Index k) const {
    state.gamma = sums_.of(0, k);
    state.residual_norm = std::sqrt(sums_.of(1, k));
    state.x_norm = std::sqrt(sums_.of(2, k));
  }
  void raise_references() {
    for (Index k = 0; k < active_.count(); ++k)
      column(k).reference = std::max(column(k).reference, std::sqrt(sums_.of(0, k)));
  }

  /// A descent begins: p ← s, and x is the best so far.
  void aim(Directions<T>& v) {
    kernels().copy(read_only(v.s).local(), v.p.local());
    kernels().copy(read_only(v.x).local(), best().local());
  }

  void iterate() {
    while (active_.count() > 0) {
      ++iteration_;
      Directions<T> v = directions();
      method_.compute_product(v);
      reduce_for_steps(v);
      if (run_.stop_asked) {
        for (Index k = 0; k < active_.count(); ++k) column(k).reason = StopReason::user_stop;
      } else {
        find_steps();
        kernels().column_axpy(local_scalars(-1), read_only(v.q).local(), v.r.local());
        kernels().column_axpy(local_scalars(+1), read_only(v.p).local(), v.x.local());
        method_.update_gradient(v);
        reduce_norms(v);
        advance(v);
        record();
        run_.stop_asked = options_.callback && options_.callback(information());
      }
      retire_ended();
    }
  }

  void reduce_for_steps(const Directions<T>& v) {
    sums_.begin(active_.count());
    sums_.add_norms_squared(v.q);
    sums_.add_norms_squared(v.p);
    method_.add_denominator(v, sums_);
    reduce_with_stop();
  }
  /// Makes the sums, and makes known to all ranks that a callback asked any of them to stop.
  void reduce_with_stop() {
    sums_.add_flag(run_.stop_asked ? 1 : 0);
    sums_.reduce();
    run_.stop_asked = sums_.flag() > 0;
  }

  /// α for every active column; 0 for those that end here.
  void find_steps() {
    scalars_of_columns_.assign(at(active_.count()), T(0));
    for (Index k = 0; k < active_.count(); ++k) {
      ColumnState& state = column(k);
      const double delta = method_.denominator(sums_, k);
      const auto step = static_cast<Real<T>>(state.gamma / delta);
      state.operator_norm = std::max(state.operator_norm, std::sqrt(sums_.of(0, k) / sums_.of(1, k)));
      if (!std::isfinite(delta)) {
        state.reason = StopReason::non_finite;
      } else if (delta <= 0 || !std::isfinite(step)) {
        state.reason = StopReason::breakdown;
      } else if (state.iterations == 0 && method_.at_rounding_level(state)) {
        state.reason = StopReason::stagnated;  // nothing of b is in the range of A
      } else {
        scalars_of_columns_[at(k)] = T(step);
      }
    }
  }

  /// The new norms, p ← s + β p, and who ends.
  void advance(Directions<T>& v) {
    for (Index k = 0; k < active_.count(); ++k) {
      ColumnState& state = column(k);
      const double old_gamma = state.gamma;
      scalars_of_columns_[at(k)] = T(0);
      if (state.reason) continue;
      take_norms(state, k);
      ++state.iterations;
      scalars_of_columns_[at(k)] = T(static_cast<Real<T>>(state.gamma / old_gamma));
      if (state.finite() && state.note_descent()) keep_as_best(v.x, k);
      judge(state);
    }
    kernels().column_xpby(read_only(v.s).local(), local_scalars(+1), v.p.local());
  }

  /// This rank's share of the scalars, times sign, in the backend's memory.
  const T* local_scalars(int sign) {
    const Range mine = active_.partition().range(part_);
    host_scalars_.resize(at(mine.size));
    for (Index j = 0; j < mine.size; ++j)
      host_scalars_[at(j)] = static_cast<Real<T>>(sign) * scalars_of_columns_[at(mine.begin + j)];
    device_scalars_.reserve(grid_.backend(), mine.size);
    grid_.backend()->upload(host_scalars_.data(), device_scalars_.data(),
                            mine.size * static_cast<Index>(sizeof(T)));
    return device_scalars_.data();
  }

  void judge(ColumnState& state) const {
    if (!state.finite()) {
      state.reason = StopReason::non_finite;
    } else if (state.tested_norm() <= tolerance_ * state.reference) {
      state.reason = StopReason::converged;
    } else if (state.iterations > 0 && (method_.at_rounding_level(state) || state.stopped_falling())) {
      state.reason = StopReason::stagnated;
    } else if (state.iterations >= options_.max_iterations) {
      state.reason = StopReason::iteration_limit;
    }
  }

  void keep_as_best(DistMatrix<T>& x, Index k) {
    DistMatrix<T> kept = best();
    kernels().copy(column_block(x, k), column_block(kept, k));
  }

  void retire_ended() {
    std::vector<char> leaves(at(active_.count()), 0);
    DistMatrix<T> kept = best();
    for (Index k = 0; k < active_.count(); ++k) {
      const ColumnState& state = column(k);
      if (!state.reason) continue;
      leaves[at(k)] = 1;
      // At the rounding level this iterate is as good as any, and where that is one of ‖r‖ an earlier one
      // with less ‖s‖ may be far worse.
      if (state.reason == StopReason::stagnated && !method_.at_rounding_level(state) &&
          state.tested_norm() > state.snapshot_norm)
        kernels().copy(column_block(kept, k), column_block(X_, k));
    }
    swap_columns(active_.retire(leaves, part_));
  }

  /// Lets columns of all that lasts from one iteration to the next change places.
  void swap_columns(const ActiveColumns::Swaps& swaps) {
    const Partition& all = X_.layout().cols.partition;
    DistMatrix<T> r = r_.matrix(method_.A().range(), all), p = p_.matrix(method_.A().domain(), all),
                  kept = best_.matrix(method_.A().domain(), all);
    for (const auto& [i, j] : swaps) {
      for (DistMatrix<T>* X : {&X_, &r, &p, &kept}) {
        const MatrixView<T> first = X->local().col_block({i, 1}), second = X->local().col_block({j, 1});
        const MatrixView<T> spare(spare_.data(), first.rows, 1);
        kernels().copy(first, spare);
        kernels().copy(second, first);
        kernels().copy(spare, second);
      }
    }
  }

  /// The norms of all columns from their definitions. True if some column goes on from there: one that
  /// claimed to have converged, has not, and has come closer since it was last restarted.
  bool verify() {
    swap_columns(active_.restore(part_));
    Directions<T> v = directions();
    kernels().copy(B_.local(), v.r.local());
    method_.A().apply(T(-1), v.x, T(1), v.r);
    sums_.begin(active_.count());
    sums_.add_norms_squared(v.r);
    sums_.add_norms_squared(method_.compute_normal_residual(v));
    if (method_.tests_residual()) method_.add_damping(-1, v.x, v.s);
    sums_.add_norms_squared(v.s);
    reduce_with_stop();
    std::vector<char> goes_on(columns_.size(), 0);
    for (std::size_t j = 0; j < columns_.size(); ++j)
      goes_on[j] = conclude(columns_[j], static_cast<Index>(j)) ? 1 : 0;
    if (std::find(goes_on.begin(), goes_on.end(), 1) == goes_on.end()) return false;
    aim(v);
    swap_columns(active_.activate(goes_on, part_));
    return true;
  }

  bool conclude(ColumnState& state, Index j) {
    state.final_residual_norm = std::sqrt(sums_.of(0, j));
    state.final_normal_norm = std::sqrt(sums_.of(1, j));
    const double tested = std::sqrt(sums_.of(2, j));
    if (!std::isfinite(tested)) state.reason = StopReason::non_finite;
    if (state.reason == StopReason::non_finite) return false;
    const bool claimed = state.reason == StopReason::converged;
    if (tested <= tolerance_ * state.reference) {
      state.reason = StopReason::converged;
    } else if (claimed) {
      const bool closer = state.verified_norm == 0 || tested < 0.5 * state.verified_norm;
      if (state.iterations >= options_.max_iterations) {
        state.reason = StopReason::iteration_limit;
      } else if (!closer) {
        state.reason = StopReason::stagnated;
      } else if (run_.stop_asked) {
        state.reason = StopReason::user_stop;
      } else {
        state.reason.reset();
        state.verified_norm = tested;
        state.gamma = tested * tested;
        state.begin_descent();
        return true;
      }
    }
    return false;
  }

  void record() {
    IterationRecord record;
    record.iteration = iteration_;
    for (Index k = 0; k < active_.count(); ++k) {
      const Index number = numbers_[at(active_.column(k))];
      run_.residual_norms[at(number)] = column(k).residual_norm;
      run_.tested_norms[at(number)] = column(k).relative_norm();
      if (!options_.record_history) continue;
      record.columns.push_back(number);
      record.residual_norms.push_back(column(k).residual_norm);
      record.tested_norms.push_back(column(k).relative_norm());
    }
    if (options_.record_history) run_.report.history.push_back(std::move(record));
  }

  IterationInfo information() {
    Index still_active = 0;
    for (Index k = 0; k < active_.count(); ++k) still_active += column(k).reason ? 0 : 1;
    return {iteration_, still_active, run_.residual_norms, run_.tested_norms};
  }

  void write_report() {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t j = 0; j < columns_.size(); ++j) {
      const ColumnState& state = columns_[j];
      const bool lost = state.reason == StopReason::non_finite;
      if (lost) kernels().fill(T(static_cast<Real<T>>(nan)), column_block(X_, static_cast<Index>(j)));
      run_.report.columns[at(numbers_[j])] = {*state.reason, state.iterations,
                                              lost ? nan : state.final_residual_norm,
                                              lost ? nan : state.final_normal_norm};
      run_.report.iterations = std::max(run_.report.iterations, state.iterations);
    }
  }

  const ConjugateDirections<T>& method_;
  const SolveOptions& options_;
  const double tolerance_;
  Run& run_;
  const ProcessGrid& grid_;
  const int part_;
  const DistMatrix<T> B_;
  DistMatrix<T> X_;
  ColumnSums<T> sums_;
  ActiveColumns active_;
  std::vector<ColumnState> columns_;
  std::vector<Index> numbers_;  // of the batch's columns in B
  Scratch<T> r_, p_, q_, s_, best_;
  Buffer<T> spare_;  // one column
  std::vector<T> scalars_of_columns_, host_scalars_;
  Buffer<T> device_scalars_;
  Index iteration_ = 0;
};

template <Scalar T>
void check_arguments(const ConjugateDirections<T>& method, const DistMatrix<T>& B, const DistMatrix<T>& X,
                     const SolveOptions& options) {
  const auto require_in = [&](const Space& space, const DistMatrix<T>& M, const char* what) {
    require<ShapeError>(space.contains(M), method.name(), ": ", what, " is ", M.layout().describe(),
                        ", but the ", method.A().rows(), " x ", method.A().cols(), " operator needs ",
                        space.layout(M.cols()).describe(), " cut as its own space is");
  };
  require_in(method.A().range(), B, "B");
  require_in(method.A().domain(), X, "X");
  require<ShapeError>(B.layout().cols.partition == X.layout().cols.partition, method.name(), ": B has ",
                      B.cols(), " columns and X has ", X.cols(),
                      ", or they are cut at different places; they must agree");
  require<UsageError>(options.max_iterations >= 0, "a limit of ", options.max_iterations,
                      " iterations is impossible");
  require<UsageError>(options.damp >= 0 && std::isfinite(options.damp), "the damping is ", options.damp,
                      "; it must be a finite number ≥ 0");
  require<UsageError>(!options.tolerance || (*options.tolerance >= 0 && std::isfinite(*options.tolerance)),
                      "the tolerance is ", options.tolerance.value_or(0), "; it must be a finite number ≥ 0");
  require<UsageError>(options.batch >= 0, "batches of ", options.batch,
                      " columns are impossible; 0 takes all at once");
}

}  // namespace

template <Scalar T>
SolveReport run_conjugate_directions(const ConjugateDirections<T>& method, const DistMatrix<T>& B,
                                     DistMatrix<T>& X, const SolveOptions& options) {
  check_arguments(method, B, X, options);
  Run run;
  run.report.solver = method.name();
  if (!B.grid()->is_member()) return run.report;
  run.report.columns.resize(at(B.cols()));
  run.residual_norms.resize(at(B.cols()), 0.0);
  run.tested_norms.resize(at(B.cols()), 0.0);
  for (const ColumnBatch& columns : column_batches(B.layout().cols.partition, options.batch))
    Batch<T>(method, options, run, B, X, columns).solve();
  return run.report;
}

template SolveReport run_conjugate_directions(const ConjugateDirections<float>&, const DistMatrix<float>&,
                                              DistMatrix<float>&, const SolveOptions&);
template SolveReport run_conjugate_directions(const ConjugateDirections<double>&, const DistMatrix<double>&,
                                              DistMatrix<double>&, const SolveOptions&);
template SolveReport run_conjugate_directions(const ConjugateDirections<std::complex<float>>&,
                                              const DistMatrix<std::complex<float>>&,
                                              DistMatrix<std::complex<float>>&, const SolveOptions&);
template SolveReport run_conjugate_directions(const ConjugateDirections<std::complex<double>>&,
                                              const DistMatrix<std::complex<double>>&,
                                              DistMatrix<std::complex<double>>&, const SolveOptions&);

}  // namespace gridlops
