// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure_scope.hpp"
#include "dist/apart.hpp"
#include "gridlops/error.hpp"
#include "gridlops/spectrum.hpp"
#include "gridlops/trace.hpp"
#include "solve/column_run.hpp"

namespace gridlops {

namespace {

/// Checks what was given for each column.
void check_column_values(const char* what, const std::vector<double>& each, Index columns, bool one_for_all) {
  if (each.empty()) return;
  require<UsageError>(!one_for_all, "a ", what, " for all columns and one for each exclude each other");
  require<ShapeError>(static_cast<Index>(each.size()) == columns, each.size(), " values of the ", what,
                      " were given for ", columns, " right-hand sides; give one for each");
  for (std::size_t j = 0; j < each.size(); ++j)
    require<UsageError>(each[j] >= 0 && std::isfinite(each[j]), "the ", what, " of column ", j, " is ",
                        each[j], "; it must be a finite number ≥ 0");
}

template <Scalar T>
void check_solve_arguments(const ColumnMethod<T>& method, const ConstDistMatrix<T>& B,
                           const ConstDistMatrix<T>& X, const SolveOptions& options) {
  method.op().require_operands(X, B, method.name());
  require<UsageError>(options.max_iterations >= 0, "a limit of ", options.max_iterations,
                      " iterations is impossible");
  require<UsageError>(options.damp >= 0 && std::isfinite(options.damp), "the damping is ", options.damp,
                      "; it must be a finite number ≥ 0");
  require<UsageError>(!options.tolerance || (*options.tolerance >= 0 && std::isfinite(*options.tolerance)),
                      "the tolerance is ", options.tolerance.value_or(0), "; it must be a finite number ≥ 0");
  check_column_values("damping", options.damps, B.cols(), options.damp > 0);
  check_column_values("tolerance", options.tolerances, B.cols(), options.tolerance.has_value());
  require<UsageError>(options.damps.empty() || method.refuses_damps() == nullptr, method.name(),
                      " takes one damping for all columns, because ",
                      method.refuses_damps() == nullptr ? "" : method.refuses_damps(),
                      "; cgls(), lsqr(), lsmr() and cg() take one for each");
  require<UsageError>(options.residual_ratio >= 0 && std::isfinite(options.residual_ratio),
                      "the residual ratio is ", options.residual_ratio, "; it must be a finite number ≥ 0");
  require<UsageError>(options.guard >= 0, "a guard every ", options.guard,
                      " iterations is impossible; 0 leaves it out");
  require<UsageError>(options.batch >= 0, "batches of ", options.batch,
                      " columns are impossible; 0 takes all at once");
}

/// Estimates ‖A‖ from a few products (collective over the grid).
template <Scalar T>
Guard make_guard(const LinearOperator<T>& A, const SolveOptions& options, SolveReport& report) {
  if (options.guard == 0) return {};
  constexpr int steps = 5;
  const Index before = A.activity().forward_columns + A.activity().adjoint_columns;
  const double norm = estimate_norm(A, steps);
  report.guard_products += A.activity().forward_columns + A.activity().adjoint_columns - before;
  return {options.guard, norm, static_cast<double>(std::numeric_limits<Real<T>>::epsilon()),
          std::max(A.rows(), A.cols())};
}

std::string text_or_unset(const std::optional<double>& value) { return value ? message(*value) : "unset"; }

}  // namespace

std::string list_of(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += message(text.empty() ? "" : ", ", value);
  return text;
}

template <Scalar T>
void agree_on_problem(Agreement& agreement, const ConstDistMatrix<T>& B, const ConstDistMatrix<T>& X,
                      const SolveOptions& options) {
  agreement.on("the element type", name_of(scalar_type_of<T>));
  agree_on_layout(agreement, "the right-hand sides", B.layout());
  agree_on_layout(agreement, "the solutions", X.layout());
  agreement.on("the tolerance", text_or_unset(options.tolerance))
      .on("the limit of iterations", options.max_iterations)
      .on("the damping", options.damp)
      .on("the dampings", list_of(options.damps))
      .on("the tolerances", list_of(options.tolerances))
      .on("atol", text_or_unset(options.atol))
      .on("btol", text_or_unset(options.btol))
      .on("the limit of the condition", options.condition_limit)
      .on("the residual ratio", options.residual_ratio)
      .on("the initial guess", options.initial_guess ? "given" : "none")
      .on("the size of batches", options.batch)
      .on("the guard", options.guard)
      .on("column_stable", options.column_stable)
      .on("one_pass", options.one_pass)
      .on("the directory of checkpoints", options.checkpoint.directory)
      .on("the iterations between checkpoints", options.checkpoint.every_iterations)
      .on("the checkpoint to go on from", options.checkpoint.restart);
  require_apart<T>(B, X, "a solver", "its right-hand sides and its solutions");
}

template <Scalar T>
std::unique_ptr<ColumnMethod<T>> begin_solve(
    const std::function<std::unique_ptr<ColumnMethod<T>>(Agreement&)>& make, const ConstDistMatrix<T>& B,
    const ConstDistMatrix<T>& X, const SolveOptions& options) {
  std::unique_ptr<ColumnMethod<T>> method;
  agree_on_grid(B.grid(), "a solver", [&](Agreement& agreement) {
    agree_on_problem(agreement, B, X, options);
    method = make(agreement);
    agreement.on("the solver", method->name())
        .on("its parameters", method->parameters())
        .on("the operator", method->op().rows(), " x ", method->op().cols());
    require_taken(method->name(), options);
    check_solve_arguments(*method, B, X, options);
  });
  return method;
}

template <Scalar T>
SolveReport solve_columns(ColumnMethod<T>& method, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                          const SolveOptions& options, const ConstDistMatrix<T>* residuals,
                          const SolveReport* before) {
  SolveLog<T> log(method.name(), options, X);
  if (!B.grid()->is_member()) {
    SolveReport of_idle_rank;
    of_idle_rank.solver = method.name();
    return of_idle_rank;
  }
  if (before != nullptr) log.report().columns = before->columns;
  const TraceRegion region(method.name());
  FailureScope failures;
  log.start({method.name(), method.op().rows(), method.op().cols(), B.cols(), scalar_type_of<T>,
             options.tolerance.value_or(default_tolerance(scalar_type_of<T>)), options.damp,
             options.max_iterations, B.grid()->comm().rank(),
             batch_count(B.layout().cols.partition, options.batch)});
  const Guard guard = make_guard(method.op(), options, log.report());
  MethodState<T> state(method.op().domain());
  method.describe(state);
  Checkpoints<T> checkpoints(method, options, B, X, state.lasting_count() + 2);  // and X and the numbers
  if (checkpoints.has_saved()) log.visit(checkpoints.saved_numbers());
  const std::vector<ColumnBatch> batches = column_batches(B.layout().cols.partition, options.batch);
  const auto run_of = [&](Index batch) {
    log.begin_batch(batch, batches[at(batch)]);
    return ColumnRun<T>(method, options, state, log, checkpoints, guard, B, residuals, X, batches[at(batch)]);
  };
  const Index first = log.batch(), ended = log.has_other_limits() ? first : 0;
  for (Index batch = first; batch < static_cast<Index>(batches.size()); ++batch) run_of(batch).solve();
  // What was solved before a restart under other limits may not be, under these.
  for (Index batch = 0; batch < ended; ++batch) run_of(batch).solve_again();
  log.end();
  failures.settle(B.grid()->comm());
  return std::move(log.report());
}

#define GRIDLOPS_INSTANTIATE(T)                                                                      \
  template void agree_on_problem(Agreement&, const ConstDistMatrix<T>&, const ConstDistMatrix<T>&,   \
                                 const SolveOptions&);                                               \
  template std::unique_ptr<ColumnMethod<T>> begin_solve(                                             \
      const std::function<std::unique_ptr<ColumnMethod<T>>(Agreement&)>&, const ConstDistMatrix<T>&, \
      const ConstDistMatrix<T>&, const SolveOptions&);                                               \
  template SolveReport solve_columns(ColumnMethod<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&,    \
                                     const SolveOptions&, const ConstDistMatrix<T>*, const SolveReport*);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
