// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure_scope.hpp"
#include "gridlops/error.hpp"
#include "solve/column_method.hpp"

namespace gridlops {

template <Scalar T>
void check_solve_arguments(const ColumnMethod<T>& method, const ConstDistMatrix<T>& B, const DistMatrix<T>& X,
                           const SolveOptions& options) {
  method.A().require_operands(X, B, method.name());
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
  SolveProgress progress;
  progress.report.solver = method.name();
  if (!B.grid()->is_member()) return progress.report;
  const auto nrhs = static_cast<std::size_t>(B.cols());
  progress.report.columns.resize(nrhs);
  progress.residual_norms.resize(nrhs, 0.0);
  progress.tested_norms.resize(nrhs, 0.0);
  progress.x_norms.resize(nrhs, 0.0);
  const SolveStart start{
      method.name(), method.A().rows(),      method.A().cols(),
      B.cols(),      scalar_type_of<T>,      options.tolerance.value_or(default_tolerance<T>),
      options.damp,  options.max_iterations, B.grid()->comm().rank()};
  FailureScope failures;
  failures.run([&] {
    for (const auto& observer : options.observers) observer->start(start);
  });
  Checkpoints<T> checkpoints(method, options, B, X);
  if (checkpoints.has_saved()) progress.visit(checkpoints.saved_numbers());
  const std::vector<ColumnBatch> batches = column_batches(B.layout().cols.partition, options.batch);
  for (; progress.batch < static_cast<Index>(batches.size()); ++progress.batch) {
    const ColumnBatch& columns = batches[at(progress.batch)];
    ColumnRun<T>(method, options, progress, checkpoints, B, X, columns).solve();
  }
  failures.run([&] {
    for (const auto& observer : options.observers) observer->end(progress.report);
  });
  failures.settle(B.grid()->comm());
  return progress.report;
}

#define GRIDLOPS_INSTANTIATE(T)                                                                   \
  template SolveReport solve_columns(ColumnMethod<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&, \
                                     const SolveOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
