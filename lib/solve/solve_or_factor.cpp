// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/solve_or_factor.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "base/instantiate.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "solve/factor/normal_matrix.hpp"
#include "solve/option_checks.hpp"

namespace gridlops {

namespace {

/// All ranks throw it in the same iteration.
class OutOfTime final : public Error {
 public:
  OutOfTime() : Error(ExitStatus::internal, "the solver has taken as long as a factor would") {}
};

/// Throws OutOfTime on all ranks when one more iteration would take longer than the limit.
class TimeLimit final : public SolveObserver {
 public:
  TimeLimit(Communicator& comm, double seconds) : comm_(comm), limit_(seconds) {}

  bool step(const IterationInfo& info) override {
    if (info.at_start) return false;
    ++iterations_;
    // A batch that has ended is not thrown away for its verdicts.
    if (iterations_ < next_ || info.active_columns == 0) return false;
    const double spent = seconds(), each = spent / static_cast<double>(iterations_);
    if (spent + each > limit_) throw OutOfTime();
    constexpr double most = 1e9;
    // Half of those that are left, since later ones may take longer.
    next_ = iterations_ + std::max<Index>(1, static_cast<Index>(std::min(most, (limit_ - spent) / each / 2)));
    return false;
  }

  /// Since the construction, on the slowest rank (collective). Throws what another observer has thrown on one
  /// rank in this iteration.
  double seconds() const {
    const std::chrono::duration<double> mine = std::chrono::steady_clock::now() - begin_;
    std::vector<double> slowest{mine.count()};
    FailureScope failures;
    failures.reduce(comm_, slowest, ReductionOrder::any, ReduceOp::max);
    return slowest.front();
  }
  Index iterations() const { return iterations_; }

 private:
  Communicator& comm_;
  const double limit_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Index iterations_ = 0, next_ = 1;
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
  limited.observers.push_back(limit);
  SolvedOrFactored solved;
  try {
    solved.report = solve(first, A, B, X, limited);
    solved.at_limit = has(solved.report, StopReason::iteration_limit) && options.max_iterations > 0 &&
                      !has(solved.report, StopReason::user_stop);
  } catch (const OutOfTime&) {
    solved.by_factor = true;
  }
  solved.by_factor = solved.by_factor || solved.at_limit;
  solved.seconds = limit->seconds();
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
