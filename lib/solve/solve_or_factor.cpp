// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/solve_or_factor.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "solve/factor/normal_matrix.hpp"
#include "solve/option_checks.hpp"
#include "solve/solve_log.hpp"

namespace gridlops {

namespace {

/// Notes whether an observer of the caller asks for the end.
class NotedObserver final : public SolveObserver {
 public:
  NotedObserver(std::shared_ptr<SolveObserver> observer, bool& asks)
      : observer_(std::move(observer)), asks_(asks) {}
  void start(const SolveStart& start) override { observer_->start(start); }
  bool step(const IterationInfo& info) override {
    const bool asks = observer_->step(info);
    asks_ = asks_ || asks;
    return asks;
  }
  void end(const SolveReport& report) override { observer_->end(report); }

 private:
  const std::shared_ptr<SolveObserver> observer_;
  bool& asks_;
};

/// Gives up a solve when one more iteration would take longer than the limit, unless an observer of the
/// caller has asked for the end.
class TimeLimit final : public AbandoningObserver {
 public:
  /// seconds: the largest of any rank is the limit (collective).
  TimeLimit(Communicator& comm, double seconds) : comm_(comm), limit_(largest({seconds}).front()) {}

  /// The observers of the caller, and behind them this one, which must live as long.
  std::vector<std::shared_ptr<SolveObserver>> with(
      const std::vector<std::shared_ptr<SolveObserver>>& observers, const std::shared_ptr<TimeLimit>& self) {
    std::vector<std::shared_ptr<SolveObserver>> all;
    for (const auto& observer : observers)
      all.push_back(std::make_shared<NotedObserver>(observer, end_is_asked_here_));
    all.push_back(self);
    return all;
  }

  bool step(const IterationInfo& info) override {
    if (info.at_start) return false;
    ++iterations_;
    // A batch that has ended is not thrown away for its verdicts.
    if (iterations_ < next_ || info.active_columns == 0) return false;
    const auto [spent, end_is_asked] = so_far();
    const double each = spent / static_cast<double>(iterations_);
    if (spent + each > limit_) {
      has_abandoned_ = !end_is_asked;
      return false;
    }
    constexpr double most = 1e9;
    // Half of those that are left, since later ones may take longer.
    next_ = iterations_ + std::max<Index>(1, static_cast<Index>(std::min(most, (limit_ - spent) / each / 2)));
    return false;
  }
  bool has_abandoned() const override { return has_abandoned_; }

  struct SoFar {
    double seconds;     ///< since the construction, on the slowest rank
    bool end_is_asked;  ///< by an observer of the caller, on any rank
  };
  /// Collective. Throws what another observer has thrown on one rank in this iteration.
  SoFar so_far() const {
    const std::chrono::duration<double> mine = std::chrono::steady_clock::now() - begin_;
    const std::vector<double> all = largest({mine.count(), end_is_asked_here_ ? 1.0 : 0.0});
    return {all[0], all[1] > 0};
  }
  Index iterations() const { return iterations_; }

 private:
  std::vector<double> largest(std::vector<double> values) const {
    FailureScope failures;
    failures.reduce(comm_, values, ReductionOrder::any, ReduceOp::max);
    return values;
  }

  Communicator& comm_;
  const double limit_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Index iterations_ = 0, next_ = 1;
  bool end_is_asked_here_ = false, has_abandoned_ = false;
};

/// Throws UsageError unless either solver may find X.
template <Scalar T>
void check_both(Solver first, const LinearOperator<T>& A, const SolveOptions& options, double seconds,
                Index nrhs) {
  const SolverRow& row = row_of(first);
  require<UsageError>(first == Solver::cgls || first == Solver::block_cgls, row.name,
                      " cannot be followed by direct; begin with ", row_of(Solver::cgls).name, " or ",
                      row_of(Solver::block_cgls).name);
  require<UsageError>(seconds >= 0, "a solver may take ", seconds,
                      " seconds before a factor takes its place; it must be a number that is not negative");
  require<UsageError>(options.checkpoint.directory.empty() && options.checkpoint.restart.empty(),
                      "a checkpoint belongs to one solver, but ", row.name,
                      " may be followed by direct; name one of them");
  require_factor(A, options.damp.one_or(0));
  SolveOptions of_direct = options;
  of_direct.one_pass = false;
  check_options(name_of(Solver::direct), row_of(Solver::direct).features, of_direct, nrhs);
}

bool has(const SolveReport& report, StopReason reason) {
  return std::any_of(report.columns.begin(), report.columns.end(),
                     [reason](const ColumnReport& column) { return column.reason == reason; });
}

}  // namespace

template <Scalar T>
SolvedOrFactored solve_or_factor(Solver first, const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
                                 DistMatrix<T>& X, double seconds, const SolveOptions& options) {
  const auto& grid = B.grid();
  agree(grid, "solve_or_factor", [&](Agreement& agreement) {
    agreement.on("the solver", name_of(first)).on("its seconds", seconds);
    describe_options(agreement, options);
    check_both(first, A, options, seconds, B.cols());
    A.require_operands(X, B, name_of(first));
  });
  if (!grid->is_member()) return {.report = solve(first, A, B, X, options)};
  std::optional<DistMatrix<T>> guess;
  if (options.initial_guess) copy(X, guess.emplace(allocate_matrix<T>(grid, X.layout())));
  const auto limit = std::make_shared<TimeLimit>(grid->comm(), seconds);
  SolveOptions limited = options;
  limited.observers = limit->with(options.observers, limit);
  SolvedOrFactored solved;
  solved.report = solve(first, A, B, X, limited);
  const auto [spent, end_is_asked] = limit->so_far();
  solved.at_limit = !limit->has_abandoned() && !end_is_asked && options.max_iterations > 0 &&
                    has(solved.report, StopReason::iteration_limit);
  solved.by_factor = limit->has_abandoned() || solved.at_limit;
  solved.seconds = spent;
  solved.iterations = limit->iterations();
  if (!solved.by_factor) return solved;
  if (guess) copy(*guess, X);
  guess.reset();
  SolveOptions of_direct = options;
  of_direct.one_pass = false;
  solved.report = solve(Solver::direct, A, B, X, of_direct);
  return solved;
}

#define GRIDLOPS_INSTANTIATE(T)                                                                          \
  template SolvedOrFactored solve_or_factor(Solver, const LinearOperator<T>&, const ConstDistMatrix<T>&, \
                                            DistMatrix<T>&, double, const SolveOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
