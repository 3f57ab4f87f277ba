// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/sparse_solver.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure_scope.hpp"
#include "gridlops/error.hpp"
#include "gridlops/spectrum.hpp"
#include "solve/methods.hpp"

namespace gridlops {

namespace {

void require_not_negative(double value, const char* what) {
  require<UsageError>(value >= 0 && std::isfinite(value), what, " is ", value,
                      "; it must be a finite number ≥ 0");
}

void check_sparse_options(const SparseOptions& options, Index nrhs) {
  require_not_negative(options.lambda, "lambda");
  for (const double lambda : options.lambdas) require_not_negative(lambda, "a column's lambda");
  for (const double factor : options.decay) require_not_negative(factor, "a factor of the decay");
  require_not_negative(options.absolute_tolerance, "the absolute tolerance");
  require<UsageError>(options.lambdas.empty() || static_cast<Index>(options.lambdas.size()) == nrhs,
                      options.lambdas.size(), " values of lambda were given for ", nrhs,
                      " right-hand sides; give one for each, or a single one for all");
  require<UsageError>(!options.step || (*options.step > 0 && std::isfinite(*options.step)), "the step is ",
                      options.step.value_or(0), "; it must be a finite number > 0, at best 1/‖A‖²");
}

void agree_on_sparse_options(Agreement& agreement, const SparseOptions& options) {
  agreement.on("lambda", options.lambda)
      .on("the lambdas", list_of(options.lambdas))
      .on("the decay", list_of(options.decay))
      .on("the step", options.step ? message(*options.step) : "unset")
      .on("backtracking", options.backtracking)
      .on("the restarts of the momentum", options.restart)
      .on("the absolute tolerance", options.absolute_tolerance);
}

/// The step that was given, or one by the estimated norm, which is collective.
template <Scalar T>
double first_step(const LinearOperator<T>& A, const SparseOptions& options) {
  double step = options.step.value_or(1);
  if (!options.step) {
    const double norm = estimate_norm(A) * (options.backtracking ? 1 : 1.02);
    if (norm != 0) step = 1 / (norm * norm);
  }
  const Real<T> in_its_precision = static_cast<Real<T>>(step);
  require<UsageError>(in_its_precision != 0 && !std::isinf(in_its_precision), "the step ", step, " is ",
                      in_its_precision, " in the precision of the operator",
                      ", so that nothing would move, or all beyond measure; scale the operator");
  return step;
}

template <Scalar T>
SolveReport solve_sparse(const char* name, const LinearOperator<T>& A, const LinearOperator<T>* S,
                         const ProximalPtr<T>& g, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                         const SparseOptions& options, Acceleration acceleration) {
  SparseOptions chosen = options;
  const auto make = [&](Agreement& agreement) {
    agree_on_sparse_options(agreement, options);
    check_sparse_options(options, B.cols());
    require<UsageError>(options.common.damp == 0, name, ": the damping is ", options.common.damp,
                        ", but sparse models are not damped; give [A; D·I] and [B; 0]");
    require<UsageError>(acceleration != Acceleration::none || !options.restart, name,
                        " has no momentum to restart; use fista, or an acceleration");
    if (S != nullptr)
      require<ShapeError>(S->range() == A.domain(), name, ": the models of the ", A.rows(), " x ", A.cols(),
                          " operator and what the ", S->rows(), " x ", S->cols(),
                          " sparsifying operator makes differ in size or layout; they must agree");
    g->require_any_columns(B.cols(), name);
    if (chosen.lambdas.empty()) chosen.lambdas.assign(at(B.cols()), options.lambda);
    return make_ista(name, A, S, g, chosen, acceleration);
  };
  const MethodPtr<T> method = begin_solve<T>(make, B, X, options.common);
  FailureScope failures;
  chosen.step = first_step(A, options);
  SolveReport report = solve_columns(*method, B, X, options.common);
  report.step = *chosen.step;
  report.lambdas = std::move(chosen.lambdas);
  return report;
}

template <Scalar T>
SolveReport ista_or_fista(bool momentum, const LinearOperator<T>& A, const LinearOperator<T>* S,
                          const ConstDistMatrix<T>& B, DistMatrix<T>& X, const SparseOptions& options) {
  return solve_sparse(momentum ? "fista" : "ista", A, S, threshold_penalty<T>(options.threshold), B, X,
                      options, momentum ? Acceleration::fista : Acceleration::none);
}

}  // namespace

template <Scalar T>
SolveReport ista(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 const SparseOptions& options) {
  return ista_or_fista<T>(false, A, nullptr, B, X, options);
}

template <Scalar T>
SolveReport ista(const LinearOperator<T>& A, const LinearOperator<T>& S, const ConstDistMatrix<T>& B,
                 DistMatrix<T>& X, const SparseOptions& options) {
  return ista_or_fista<T>(false, A, &S, B, X, options);
}

template <Scalar T>
SolveReport fista(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                  const SparseOptions& options) {
  return ista_or_fista<T>(true, A, nullptr, B, X, options);
}

template <Scalar T>
SolveReport fista(const LinearOperator<T>& A, const LinearOperator<T>& S, const ConstDistMatrix<T>& B,
                  DistMatrix<T>& X, const SparseOptions& options) {
  return ista_or_fista<T>(true, A, &S, B, X, options);
}

template <Scalar T>
SolveReport proximal_gradient(const LinearOperator<T>& A, const ProximalPtr<T>& g,
                              const ConstDistMatrix<T>& B, DistMatrix<T>& X, const SparseOptions& options) {
  return solve_sparse<T>("proximal-gradient", A, nullptr, g, B, X, options, options.acceleration);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                             \
  template SolveReport ista(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&,            \
                            const SparseOptions&);                                                          \
  template SolveReport ista(const LinearOperator<T>&, const LinearOperator<T>&, const ConstDistMatrix<T>&,  \
                            DistMatrix<T>&, const SparseOptions&);                                          \
  template SolveReport fista(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&,           \
                             const SparseOptions&);                                                         \
  template SolveReport fista(const LinearOperator<T>&, const LinearOperator<T>&, const ConstDistMatrix<T>&, \
                             DistMatrix<T>&, const SparseOptions&);                                         \
  template SolveReport proximal_gradient(const LinearOperator<T>&, const ProximalPtr<T>&,                   \
                                         const ConstDistMatrix<T>&, DistMatrix<T>&, const SparseOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
