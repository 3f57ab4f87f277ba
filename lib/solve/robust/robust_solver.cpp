// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "dist/matrix_checks.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/solve/robust.hpp"
#include "gridlops/solve/weights.hpp"
#include "solve/batches.hpp"
#include "solve/option_checks.hpp"
#include "solve/robust/column_medians.hpp"
#include "solve/run/active_columns.hpp"

namespace gridlops {

namespace {

constexpr double first_tolerance = 0.1;   // of least squares, where a column begins
constexpr double shortens = 0.3;          // the gradient, in each solve
constexpr double start_tolerance = 1e-2;  // of Huber's solution, where scales stay, and other misfits begin
constexpr double scale_change = 1e-2;     // at which a scale stays
constexpr int most_updates = 30;          // of a scale
constexpr Index most_solves = 1000;       // of a column
constexpr int most_claims = 3;  // of being solved, which the norms from their definitions contradict

struct ReweightedColumn {
  double damp = 0, tolerance = 0;
  double least_scale = 0;  // smaller residuals are rounding
  double scale = 0;
  bool is_settled = false;  // the scale stays
  bool is_huber = true;     // the column has Huber's weights before those that are asked for
  int updates = 0, claims = 0;
  Index solves = 0, iterations = 0, rejected = 0;
  double smoothing = 0;  // for l1: half of what δ adds to the gap, over s²
  double gradient = std::numeric_limits<double>::infinity(), gradient_before = gradient;
  double reference = 0;  // of the last solve; 0: there was none
  bool has_stagnated = false;
  std::optional<StopReason> reason;  // for which a solve ended the column

  /// Whether its weights are those that are asked for, with the scale that stays.
  bool has_its_weights() const { return is_settled && !is_huber; }
  /// Whether its last gradient is that of a start for other weights.
  bool is_near_start() const { return gradient <= start_tolerance * reference; }
  bool is_exhausted(Index most) const { return iterations >= most || solves >= most_solves; }
  /// Whether the gradient seems to be short enough. The verdict's may differ by rounding.
  bool seems_solved() const {
    constexpr double margin = 0.9;
    return has_its_weights() && (gradient == 0 || gradient <= margin * tolerance * reference);
  }
  bool leaves(Index most_iterations) const {
    constexpr double hardly = 0.5;
    return reason || !std::isfinite(gradient) || seems_solved() || is_exhausted(most_iterations) ||
           (has_stagnated && gradient > hardly * gradient_before);
  }
  double next_tolerance() const {
    if (!(reference > 0)) return first_tolerance;
    return std::max(tolerance / 2, std::min(first_tolerance, shortens * gradient / reference));
  }
};

/// The arguments, which all batches share.
template <Scalar T>
struct RobustProblem {
  Solver solver;
  const LinearOperator<T>& A;
  const RobustOptions& robust;
  const SolveOptions& options;
  const SolverOperands<T>& operands;
  const WeightFunction huber = weights_of(Misfit::huber),
                       weights = robust.weights ? robust.weights : weights_of(robust.misfit);

  bool is_convex() const { return !robust.weights && gridlops::is_convex(robust.misfit); }
  bool is_huber() const { return !robust.weights && robust.misfit == Misfit::huber; }
  /// Whether columns begin with Huber's weights.
  bool begins_with_huber() const { return !is_huber() && !(is_convex() && robust.scale) && !is_l2(); }
  bool is_l2() const { return !robust.weights && robust.misfit == Misfit::l2; }
  bool is_l1() const { return !robust.weights && robust.misfit == Misfit::l1; }
};

/// The columns of a batch. Those that are not solved yet are active, and lie side by side in operands of
/// their own for each solve.
template <Scalar T>
class RobustBatch {
 public:
  RobustBatch(const RobustProblem<T>& problem, const ConstDistMatrix<T>& B, DistMatrix<T> X, DistMatrix<T> W,
              std::vector<Index> numbers, const std::vector<double>& largest, RobustReport& report)
      : problem_(problem),
        A_(problem.A),
        grid_(*B.grid()),
        B_(B),
        X_(std::move(X)),
        W_(std::move(W)),
        part_(grid_.my_part(B.layout().cols.axis)),
        numbers_(std::move(numbers)),
        report_(report),
        active_(B.layout().cols.partition),
        columns_(numbers_.size()) {
    constexpr double a_few_epsilon = 64 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
    for (std::size_t j = 0; j < columns_.size(); ++j)
      columns_[j].least_scale = a_few_epsilon * largest[at(numbers_[j])];
  }

  void solve() {
    begin();
    if (!problem_.options.initial_guess) solve_active(false);
    do {
      while (active_.count() > 0) {
        reweigh();
        leave();
        if (active_.count() > 0) solve_active(true);
      }
    } while (verify());
  }

 private:
  ReweightedColumn& column(Index k) { return columns_[at(active_.column(k))]; }
  Communicator& comm() const { return grid_.comm(); }
  Backend& backend() const { return *grid_.backend(); }
  static Index bytes(Index elements) { return elements * Index{sizeof(T)}; }

  void begin() {
    attempt(comm(), [this] {
      U_ = W_.clone();
      const Index columns = B_.local().cols;
      for (Buffer<T>* of_data : {&b_, &w_, &p_})
        of_data->reserve(grid_.backend(), A_.range().local_rows() * columns);
      for (Buffer<T>* of_models : {&x_, &g_})
        of_models->reserve(grid_.backend(), A_.domain().local_rows() * columns);
      magnitudes_.resize(at(B_.local().rows * columns));
    });
    const PerColumn tolerance = tolerance_of(problem_.options, scalar_type_of<T>);
    for (std::size_t j = 0; j < columns_.size(); ++j) {
      ReweightedColumn& column = columns_[j];
      column.damp = problem_.options.damp[numbers_[j]];
      column.tolerance = tolerance[numbers_[j]];
      column.is_huber = problem_.begins_with_huber();
      column.is_settled = problem_.is_l2() || problem_.robust.scale.has_value();
      if (problem_.robust.scale) column.scale = (*problem_.robust.scale)[numbers_[j]];
    }
    if (problem_.options.initial_guess) return;
    X_.set_zero();
  }

  // Copies between a matrix of the batch and the operand that has its active columns. Neighbours in both go
  // in one copy.
  template <class Copy>
  void for_each_run(const Copy& copy_run) const {
    const std::vector<Index>& order = active_.order(part_);
    const Index here = active_.partition().size(part_);
    for (Index k = 0, next; k < here; k = next) {
      for (next = k + 1; next < here && order[at(next)] == order[at(next - 1)] + 1;) ++next;
      copy_run(Range{order[at(k)], next - k}, Range{k, next - k});
    }
  }
  const Kernels<T>& kernels() const { return backend().template kernels<T>(); }
  DistMatrix<T> gathered(const ConstDistMatrix<T>& from, const Space& space, const Buffer<T>& memory) const {
    DistMatrix<T> to = space.matrix(active_.partition(), memory);
    for_each_run([&](Range in_batch, Range here) {
      kernels().copy(from.local().col_block({in_batch.begin, in_batch.size}),
                     to.local().col_block({here.begin, here.size}));
    });
    return to;
  }

  SolveOptions options_of_solve(Index most_iterations) {
    SolveOptions options = problem_.options;
    options.initial_guess = true;
    options.batch = 0;
    options.max_iterations = most_iterations;
    std::vector<double> damps, tolerances;
    for (Index k = 0; k < active_.count(); ++k) {
      damps.push_back(column(k).damp);
      tolerances.push_back(column(k).tolerance);
    }
    if (!options.damp.is_one()) options.damp = damps;
    options.tolerance = tolerances;
    return options;
  }

  /// Solves the weighted problem of every active column, from its x if goes_on, to a part of its tolerance.
  void solve_active(bool goes_on) {
    Index most_used = 0;
    for (Index k = 0; k < active_.count(); ++k) most_used = std::max(most_used, column(k).iterations);
    SolveOptions options = options_of_solve(problem_.options.max_iterations - most_used);
    options.initial_guess = goes_on;
    std::vector<double> tolerances;
    for (Index k = 0; k < active_.count(); ++k) tolerances.push_back(column(k).next_tolerance());
    options.tolerance = tolerances;
    const DistMatrix<T> b = gathered(B_, A_.range(), b_), w = gathered(W_, A_.range(), w_);
    DistMatrix<T> x = gathered(X_, A_.domain(), x_);
    SolverOperands<T> operands = problem_.operands;
    operands.weights = &w;
    const SolveReport found = gridlops::solve<T>(problem_.solver, A_, b, x, options, operands);
    for_each_run([&](Range in_batch, Range here) {
      kernels().copy(x.local().col_block({here.begin, here.size}),
                     X_.local().col_block({in_batch.begin, in_batch.size}));
    });
    keep_records(found);
    std::vector<char> has_ended;
    for (Index k = 0; k < active_.count(); ++k) {
      ReweightedColumn& of = column(k);
      const ColumnReport& result = found.columns[at(k)];
      ++of.solves;
      of.iterations += result.iterations;
      of.reference = result.reference_norm;
      of.has_stagnated = result.reason == StopReason::stagnated;
      if (!is_solved(result.reason) && result.reason != StopReason::iteration_limit)
        of.reason = result.reason;
      // The others get the weights of their last x first.
      has_ended.push_back(of.reason == StopReason::non_finite ? 1 : 0);
    }
    active_.deflate(has_ended, part_);
  }

  /// Adds the records of a solve, whose columns have other numbers in B.
  void keep_records(const SolveReport& found) {
    const auto number = [this](Index k) { return numbers_[at(active_.column(k))]; };
    for (IterationRecord record : found.history) {
      if (record.iteration == 0 && iterations_ > 0) continue;
      record.iteration += iterations_;
      for (Index& k : record.columns) k = number(k);
      report_.solve.history.push_back(std::move(record));
    }
    for (GuardAlarm alarm : found.alarms) {
      alarm.iteration += iterations_;
      alarm.column = number(alarm.column);
      report_.solve.alarms.push_back(alarm);
    }
    report_.solve.guard_products += found.guard_products;
    iterations_ += found.iterations;
  }

  /// W ← w∘√φ of the active columns at their x, and their gradients from the definition.
  void reweigh() {
    const TraceRegion region("reweigh");
    DistMatrix<T> x = gathered(X_, A_.domain(), x_);
    DistMatrix<T> p = A_.range().matrix(active_.partition(), p_),
                  g = A_.domain().matrix(active_.partition(), g_);
    const auto multiply = [this](const auto& product) {
      FailureScope failures;
      product();
      failures.settle(comm());
    };
    multiply([&] { A_.apply(T(1), x, T(0), p); });
    attempt(comm(), [&] { take_residuals(p); });
    take_scales();
    weigh_residuals(p);
    multiply([&] { A_.apply_adjoint(T(1), p, T(0), g); });
    ColumnScalars damps(active_.count());
    for (Index k = 0; k < active_.count(); ++k) damps[k] = column(k).damp;
    x *= damps;  // D² may be out of range where D² x is not
    g -= damps * x;
    const std::vector<double> norms = column_norms<T>(g);
    for (Index k = 0; k < active_.count(); ++k) {
      ReweightedColumn& of = column(k);
      of.gradient_before = std::exchange(of.gradient, norms[at(k)]);
    }
  }

  /// Calls action(c, i, count) for pieces of this rank's active columns.
  template <class Action>
  void for_each_piece(const Action& action) const {
    constexpr Index most = 1 << 14;
    for (Index c = 0; c < active_.partition().size(part_); ++c)
      for (Index i = 0; i < B_.local().rows; i += most) action(c, i, std::min(most, B_.local().rows - i));
  }
  void download(MatrixView<const T> from, Index col, Index row, std::span<T> to) const {
    backend().download(from.column(col) + row, to.data(), bytes(std::ssize(to)));
  }
  void upload(std::span<const T> from, MatrixView<T> to, Index col, Index row) const {
    backend().upload(from.data(), to.column(col) + row, bytes(std::ssize(from)));
  }
  std::span<double> magnitudes(Index c, Index i, Index count) {
    return std::span(magnitudes_).subspan(at(c * B_.local().rows + i), at(count));
  }

  /// P, which is A X, ← w∘(b − A x), and the magnitudes of its elements; −1 where the weight is 0.
  void take_residuals(DistMatrix<T>& P) {
    const std::vector<Index>& order = active_.order(part_);
    for_each_piece([&](Index c, Index i, Index count) {
      std::vector<T> b(at(count)), u = b, e = b;
      download(B_.local(), order[at(c)], i, b);
      download(U_.local(), order[at(c)], i, u);
      download(P.local(), c, i, e);
      const std::span<double> sizes = magnitudes(c, i, count);
      for (std::size_t k = 0; k < e.size(); ++k) {
        e[k] = u[k] == T(0) ? T(0) : u[k] * (b[k] - e[k]);
        sizes[k] = u[k] == T(0) ? -1
                                : std::hypot(static_cast<double>(std::real(e[k])),
                                             static_cast<double>(std::imag(e[k])));
      }
      upload(e, P.local(), c, i);
    });
  }

  /// Updates the scales that do not stay yet, and gives columns the weights that are asked for once they have
  /// come near enough with Huber's.
  void take_scales() {
    std::vector<double> medians, largest(at(active_.count()), 0.0);
    const auto is_settled = [this](Index k) { return column(k).is_settled; };
    bool all_settled = true;
    for (Index k = 0; k < active_.count(); ++k) all_settled = all_settled && is_settled(k);
    if (!all_settled) {
      const Index first = active_.partition().begin(part_);
      medians = column_medians(comm(),
                               {.values = magnitudes(0, 0, B_.local().rows * active_.partition().size(part_)),
                                .rows = B_.local().rows,
                                .first = first,
                                .counts = B_.owned()},
                               active_.count());
      for_each_piece([&](Index c, Index i, Index count) {
        for (const double size : magnitudes(c, i, count))
          largest[at(first + c)] = std::max(largest[at(first + c)], size);
      });
      comm().all_reduce(largest, ReduceOp::max);
    }
    for (Index k = 0; k < active_.count(); ++k) {
      ReweightedColumn& of = column(k);
      if (!of.is_settled) update_scale(of, medians[at(k)], largest[at(k)]);
      if (of.is_settled && (problem_.is_convex() || of.is_near_start())) of.is_huber = false;
    }
  }

  /// median, largest: of the residuals that are not exactly 0.
  static void update_scale(ReweightedColumn& of, double median, double largest) {
    constexpr double of_normal_residuals = 1.482602218505602;  // 1/Φ⁻¹(3/4)
    const double found = of_normal_residuals * median, before = of.scale;
    if (!std::isfinite(found)) return;
    if (of.updates == 0 && largest <= of.least_scale) {
      of.is_settled = true;
      return;
    }
    of.scale = std::max(found, of.least_scale);
    ++of.updates;
    const bool stays = of.is_near_start() && std::abs(of.scale - before) <= scale_change * before;
    of.is_settled = stays || of.updates >= most_updates;
  }

  /// W ← w∘√φ and P ← w∘φ∘P, which is w∘(b − A x).
  void weigh_residuals(DistMatrix<T>& P) {
    std::vector<double> sums(at(2 * active_.count()), 0.0);
    const Index first = active_.partition().begin(part_);
    attempt(comm(), [&] {
      const std::vector<Index>& order = active_.order(part_);
      for_each_piece([&](Index c, Index i, Index count) {
        ReweightedColumn& of = column(first + c);
        std::vector<T> u(at(count)), e = u;
        download(U_.local(), order[at(c)], i, u);
        download(P.local(), c, i, e);
        const std::span<const double> sizes = magnitudes(c, i, count);
        const std::vector<double> phi = weights_at(of, sizes);
        for (std::size_t k = 0; k < e.size(); ++k) {
          e[k] = to_scalar<T>(phi[k]) * u[k] * e[k];
          if (sizes[k] < 0) continue;
          u[k] *= to_scalar<T>(std::sqrt(phi[k]));
          if (!B_.owned()) continue;
          sums[at(2 * (first + c))] += phi[k] < 0.5 ? 1 : 0;
          if (problem_.is_l1() && of.scale > 0)
            sums[at(2 * (first + c) + 1)] += sizes[k] / of.scale * (1 - sizes[k] / of.scale * phi[k]);
        }
        upload(u, W_.local(), order[at(c)], i);
        upload(e, P.local(), c, i);
      });
    });
    comm().all_reduce(sums, ReduceOp::sum);
    for (Index k = 0; k < active_.count(); ++k) {
      column(k).rejected = std::llround(sums[at(2 * k)]);
      column(k).smoothing = sums[at(2 * k + 1)];
    }
  }

  std::vector<double> weights_at(const ReweightedColumn& of, std::span<const double> sizes) const {
    std::vector<double> t(sizes.size()), phi(sizes.size(), 1.0);
    if (!(of.scale > 0)) return phi;
    // A residual that is not finite shows in the gradient.
    for (std::size_t k = 0; k < t.size(); ++k) t[k] = sizes[k] > 0 ? sizes[k] / of.scale : 0;
    (of.is_huber ? problem_.huber : problem_.weights)(t, phi);
    for (std::size_t k = 0; k < t.size(); ++k)
      if (!(phi[k] >= 0 && std::isfinite(phi[k])))
        throw UsageError(message("the weight of a residual of ", t[k], " times the scale is ", phi[k],
                                 "; a weight multiplies a squared residual, and is a finite number ≥ 0"),
                         KnownTo::one_rank);
    return phi;
  }

  void leave() {
    std::vector<char> leaves;
    for (Index k = 0; k < active_.count(); ++k)
      leaves.push_back(column(k).leaves(problem_.options.max_iterations) ? 1 : 0);
    active_.deflate(leaves, part_);
  }

  /// Lets the solver judge every x by its weighted problem, without an iteration. Returns true if some column
  /// goes on.
  bool verify() {
    active_.restore(part_);
    SolverOperands<T> operands = problem_.operands;
    operands.weights = &W_;
    SolveOptions options = options_of_solve(0);
    options.observers.clear();
    options.record_history = false;
    const SolveReport found = gridlops::solve<T>(problem_.solver, A_, B_, X_, options, operands);
    std::vector<char> goes_on;
    for (std::size_t j = 0; j < columns_.size(); ++j) {
      ReweightedColumn& of = columns_[j];
      const bool claims = !of.reason && of.seems_solved() && ++of.claims < most_claims;
      of.reference = found.columns[j].reference_norm;
      const bool is_judged = is_solved(found.columns[j].reason) && !lacks_data(of);
      goes_on.push_back(claims && !is_judged && !of.is_exhausted(problem_.options.max_iterations) ? 1 : 0);
    }
    if (std::find(goes_on.begin(), goes_on.end(), 1) != goes_on.end()) {
      active_.activate(goes_on, part_);
      return true;
    }
    write_report(found);
    return false;
  }

  /// Whether the weights of its x leave nothing of its data, though the caller's do, so that the solver made
  /// x zero, whose weights may be others.
  static bool lacks_data(const ReweightedColumn& of) { return of.reference == 0 && of.rejected > 0; }

  void write_report(const SolveReport& found) {
    for (std::size_t j = 0; j < columns_.size(); ++j) {
      const ReweightedColumn& of = columns_[j];
      ColumnReport column = found.columns[j];
      const bool is_judged = is_solved(column.reason) && of.has_its_weights() && !lacks_data(of);
      if (!is_judged && column.reason != StopReason::non_finite)
        column.reason =
            of.reason.value_or(lacks_data(of)                             ? StopReason::breakdown
                               : of.has_stagnated && of.has_its_weights() ? StopReason::stagnated
                                                                          : StopReason::iteration_limit);
      column.iterations = of.iterations;
      const double gap_root =
          std::hypot(of.scale * std::sqrt(2 * of.smoothing), column.normal_residual_norm / of.damp);
      const bool is_bounded = problem_.is_convex() && of.damp > 0 && of.has_its_weights() &&
                              column.reason != StopReason::non_finite;
      report_.columns[at(numbers_[j])] = {
          of.scale, of.solves, of.rejected,
          is_bounded ? gap_root / of.damp : std::numeric_limits<double>::infinity()};
      report_.solve.columns[at(numbers_[j])] = column;
      report_.solve.iterations = std::max(report_.solve.iterations, of.iterations);
    }
  }

  const RobustProblem<T>& problem_;
  const LinearOperator<T>& A_;
  const ProcessGrid& grid_;
  const ConstDistMatrix<T>& B_;
  DistMatrix<T> X_, W_;
  const int part_;  // of the columns, that this rank holds
  const std::vector<Index> numbers_;
  RobustReport& report_;
  ActiveColumns active_;
  std::vector<ReweightedColumn> columns_;
  DistMatrix<T> U_;                 // w
  Buffer<T> b_, w_, x_, p_, g_;     // of active columns
  std::vector<double> magnitudes_;  // of residuals of active columns, in columns
  Index iterations_ = 0;            // of all solves
};

template <Scalar T>
void check(Solver solver, const RobustOptions& robust, const SolveOptions& options,
           const SolverOperands<T>& operands, Index nrhs) {
  const SolverRow& row = row_of(solver);
  require<UsageError>(row.has(Feature::misfit), "robust_solve: ", row.name, " does not take a misfit; take ",
                      names_of(solvers_with(Feature::misfit)));
  if (robust.scale) {
    require<ShapeError>(robust.scale->is_one() || std::ssize(robust.scale->values()) == nrhs,
                        robust.scale->values().size(), " scales were given for ", nrhs,
                        " right-hand sides; give one for each, or one for all");
    for (const double scale : robust.scale->values())
      require<UsageError>(scale > 0 && std::isfinite(scale), "the scale of a misfit is ", scale,
                          "; residuals are divided by it: it must be a finite number > 0");
  }
  require<UsageError>(operands.weights == nullptr,
                      "robust_solve: weights are its argument W, and no operand, since it changes them");
  require<UsageError>(!options.one_pass,
                      "robust_solve: one pass gives A^H A P, without the weights between; leave it out");
  require<UsageError>(options.checkpoint.directory.empty() && options.checkpoint.restart.empty(),
                      "a checkpoint belongs to one solve, but a misfit takes several; leave it out");
  require<UsageError>(options.error == 0 && options.sigma_min == 0 && options.residual_ratio == 0,
                      "robust_solve: error, sigma_min and residual_ratio belong to one weighted problem, but "
                      "a misfit has one "
                      "for each x; leave them out");
}

}  // namespace

template <Scalar T>
RobustReport robust_solve(Solver solver, const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
                          DistMatrix<T>& X, DistMatrix<T>& W, const RobustOptions& robust,
                          const SolveOptions& options, const SolverOperands<T>& operands) {
  agree(B.grid(), "robust_solve", [&](Agreement& agreement) {
    agreement.on("the solver", name_of(solver))
        .on("the misfit", robust.weights ? "given" : name_of(robust.misfit));
    std::string scales;
    if (robust.scale)
      for (const double scale : robust.scale->values()) scales += message(scale, " ");
    agreement.on("the scale", robust.scale ? scales : "unset");
    describe_options(agreement, options);
    check(solver, robust, options, operands, B.cols());
    check_options(name_of(solver), row_of(solver).features, options, B.cols());
    A.require_operands(X, B, "robust_solve");
    require_same_layout<T>(B, W, "weights");
    require_apart<T>(B, W, "robust_solve", "its right-hand sides and their weights");
    require_apart<T>(W, X, "robust_solve", "its weights and its solutions");
    require_apart<T>(B, X, "robust_solve", "its right-hand sides and its solutions");
  });
  RobustReport report;
  report.solve.solver = name_of(solver);
  if (!B.grid()->is_member()) return report;
  std::vector<double> largest;
  {
    DistMatrix<T> weighted = allocate_matrix<T>(B.grid(), B.layout());
    copy(B, weighted);
    weigh<T>(W, weighted);  // refuses weights that are none
    largest = column_norms<T>(weighted, std::numeric_limits<double>::infinity());
  }
  report.solve.weighted = true;
  report.solve.columns.resize(at(B.cols()));
  report.columns.resize(at(B.cols()));
  const RobustProblem<T> problem{solver, A, robust, options, operands};
  const Partition& columns = B.layout().cols.partition;
  for (const ColumnBatch& batch : column_batches(columns, options.batch)) {
    const ConstDistMatrix<T> of_batch = B.column_slice(batch.first, batch.sizes);
    RobustBatch<T>(problem, of_batch, X.column_slice(batch.first, batch.sizes),
                   W.column_slice(batch.first, batch.sizes), batch.numbers_in(columns), largest, report)
        .solve();
  }
  return report;
}

#define GRIDLOPS_INSTANTIATE(T)                                                                   \
  template RobustReport robust_solve(Solver, const LinearOperator<T>&, const ConstDistMatrix<T>&, \
                                     DistMatrix<T>&, DistMatrix<T>&, const RobustOptions&,        \
                                     const SolveOptions&, const SolverOperands<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
