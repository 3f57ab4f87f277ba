// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure_scope.hpp"
#include "gridlops/error.hpp"
#include "gridlops/trace.hpp"
#include "solve/column_run.hpp"

namespace gridlops {

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
  require<UsageError>(options.residual_ratio >= 0 && std::isfinite(options.residual_ratio),
                      "the residual ratio is ", options.residual_ratio, "; it must be a finite number ≥ 0");
  require<UsageError>(options.batch >= 0, "batches of ", options.batch,
                      " columns are impossible; 0 takes all at once");
}

template <Scalar T>
SolveReport solve_columns(ColumnMethod<T>& method, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                          const SolveOptions& options) {
  check_solve_arguments(method, B, X, options);
  SolveLog<T> log(method.name(), options, X);
  if (!B.grid()->is_member()) return {method.name(), 0, {}, {}};
  const TraceRegion region(method.name());
  FailureScope failures;
  log.start({method.name(), method.op().rows(), method.op().cols(), B.cols(), scalar_type_of<T>,
             options.tolerance.value_or(default_tolerance(scalar_type_of<T>)), options.damp,
             options.max_iterations, B.grid()->comm().rank()});
  Checkpoints<T> checkpoints(method, options, B, X);
  if (checkpoints.has_saved()) log.visit(checkpoints.saved_numbers());
  MethodState<T> state(method.op().domain());
  method.describe(state);
  const std::vector<ColumnBatch> batches = column_batches(B.layout().cols.partition, options.batch);
  for (Index batch = log.batch(); batch < static_cast<Index>(batches.size()); ++batch) {
    log.begin_batch(batch, batches[at(batch)]);
    ColumnRun<T>(method, options, state, log, checkpoints, B, X, batches[at(batch)]).solve();
  }
  log.end();
  failures.settle(B.grid()->comm());
  return std::move(log.report());
}

#define GRIDLOPS_INSTANTIATE(T)                                                                   \
  template SolveReport solve_columns(ColumnMethod<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&, \
                                     const SolveOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
