// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>
#include <optional>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "dist/matrix_checks.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "solve/run/column_run.hpp"

namespace gridlops {

namespace {

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

}  // namespace

template <Scalar T>
void describe_problem(Agreement& agreement, const ConstDistMatrix<T>& B, const ConstDistMatrix<T>& X,
                      const SolveOptions& options) {
  agreement.on("the element type", name_of(scalar_type_of<T>));
  describe_layout(agreement, "the right-hand sides", B.layout());
  describe_layout(agreement, "the solutions", X.layout());
  describe_options(agreement, options);
  require_apart<T>(B, X, "a solver", "its right-hand sides and its solutions");
}

template <Scalar T>
std::unique_ptr<ColumnMethod<T>> begin_solve(
    const std::function<std::unique_ptr<ColumnMethod<T>>(Agreement&)>& make, const ConstDistMatrix<T>& B,
    const ConstDistMatrix<T>& X, const SolveOptions& options) {
  std::unique_ptr<ColumnMethod<T>> method;
  agree(B.grid(), "a solver", [&](Agreement& agreement) {
    describe_problem(agreement, B, X, options);
    method = make(agreement);
    agreement.on("the solver", method->name())
        .on("its parameters", method->traits().parameters)
        .on("the operator", method->op().rows(), " x ", method->op().cols());
    method->op().require_operands(X, B, method->name());
    check_options(method->name(), method->traits().features, options, B.cols());
    check_error_options(options, method->op().rows(), method->op().cols());
  });
  return method;
}

template <Scalar T>
SolveReport solve_columns(ColumnMethod<T>& method, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                          SolveOptions& options, const SolvedBefore<T>& before,
                          const RowWeights<T>* weights) {
  SolveLog<T> log(method.name(), method.traits().test, options, X);
  if (!B.grid()->is_member()) {
    SolveReport of_idle_rank;
    of_idle_rank.solver = method.name();
    return of_idle_rank;
  }
  if (before.report != nullptr) log.continue_from(*before.report);
  const TraceRegion region(method.name());
  FailureScope failures;
  method.complete(options);
  if (method.traits().test == ToleranceTest::own) {
    std::vector<double> norms;
    for (Index j = 0; j < B.cols(); ++j)
      norms.push_back(method.norm_of_unscaled(weights == nullptr ? 1 : weights->ranges[at(j)].largest));
    require_range_without_scaling(method.name(), norms, B);
  }
  log.start({method.name(), method.op().rows(), method.op().cols(), B.cols(), scalar_type_of<T>,
             tolerance_of(options, scalar_type_of<T>).one_or(default_tolerance(scalar_type_of<T>)),
             options.damp.one_or(0), options.max_iterations, B.grid()->comm().rank(),
             batch_count(B.layout().cols.partition, options.batch)});
  const Guard guard = make_guard(method.op(), options, log.report());
  std::optional<MethodState<T>> own_state;
  if (before.state == nullptr) method.describe(own_state.emplace(method.op().domain()));
  MethodState<T>& state = before.state == nullptr ? *own_state : *before.state;
  Checkpoints<T> checkpoints(method, options, B, X, state.lasting_count() + 2,  // plus X and the numbers
                             weights == nullptr ? nullptr : &weights->W);
  if (checkpoints.has_saved()) log.visit(checkpoints.saved_numbers());
  const std::vector<ColumnBatch> batches = column_batches(B.layout().cols.partition, options.batch);
  const Solve<T> solve{method, options, state, log, checkpoints, guard, before, weights, B, X};
  const auto run_of = [&](Index batch) {
    log.begin_batch(batch, batches[at(batch)]);
    return ColumnRun<T>(solve, batches[at(batch)]);
  };
  const Index first = log.batch(), ended = log.has_other_limits() ? first : 0;
  for (Index batch = first; batch < static_cast<Index>(batches.size()) && !log.is_abandoned(); ++batch)
    run_of(batch).solve();
  // A column solved before a restart under other limits may not count as solved under these.
  for (Index batch = 0; batch < ended; ++batch) run_of(batch).solve_again();
  if (!log.is_abandoned()) log.end();
  failures.settle(B.grid()->comm());
  return std::move(log.report());
}

#define GRIDLOPS_INSTANTIATE(T)                                                                      \
  template void describe_problem(Agreement&, const ConstDistMatrix<T>&, const ConstDistMatrix<T>&,   \
                                 const SolveOptions&);                                               \
  template std::unique_ptr<ColumnMethod<T>> begin_solve(                                             \
      const std::function<std::unique_ptr<ColumnMethod<T>>(Agreement&)>&, const ConstDistMatrix<T>&, \
      const ConstDistMatrix<T>&, const SolveOptions&);                                               \
  template SolveReport solve_columns(ColumnMethod<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&,    \
                                     SolveOptions&, const SolvedBefore<T>&, const RowWeights<T>*);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
