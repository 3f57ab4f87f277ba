// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure_scope.hpp"
#include "dist/together.hpp"
#include "gridlops/error.hpp"
#include "gridlops/operator_algebra.hpp"
#include "solve/methods.hpp"

namespace gridlops {

/// Recomputes the norms in the report for X as it is now. r and s are memory like B and X.
template <Scalar T>
void recompute_norms(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, const ConstDistMatrix<T>& X,
                     double damp, DistMatrix<T>& r, DistMatrix<T>& s, SolveReport& report) {
  copy(B, r);
  copy(X, s);
  A.apply(T(-1), X, T(1), r);
  A.apply_adjoint(T(1), r, to_scalar<T>(-damp * damp), s);
  const std::vector<double> residual_norms = column_norms(r), normal_norms = column_norms(s);
  for (std::size_t j = 0; j < report.columns.size(); ++j) {
    if (report.columns[j].reason == StopReason::non_finite) continue;
    report.columns[j].residual_norm = residual_norms[j];
    report.columns[j].normal_residual_norm = normal_norms[j];
  }
}

/// [A; D·I] and [B; 0] for D > 0, where the damping is rows of the operator. A must outlive this.
template <Scalar T>
class DampedSystem {
 public:
  DampedSystem(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, double damp)
      : range_stack_(damped_range(A.range(), A.domain())),
        A_(damped(OperatorPtr<T>(OperatorPtr<T>(), &A), damp)),
        B_(make_together<T>(B.grid(), A_->range().layout(B.layout().cols.partition))) {
    B_.set_zero();
    DistMatrix<T> upper = data();
    copy(B, upper);
  }

  const LinearOperator<T>& A() const { return *A_; }
  const ConstDistMatrix<T>& B() const { return B_; }
  /// The upper part of [B; 0].
  DistMatrix<T> data() { return stack_rows(range_stack_, 0, B_); }
  /// The spaces that the range is a stack of.
  const std::vector<Space>& range_stack() const { return range_stack_; }

 private:
  const std::vector<Space> range_stack_;
  OperatorPtr<T> A_;
  DistMatrix<T> B_;
};

/// Solves by the method that make(operator, the spaces that its range is a stack of, options) makes. The
/// method would damp X − X₀ if there is an initial guess X₀. It then gets the damped system instead, without
/// damping.
template <Scalar T, class Make>
SolveReport solve_with_damped_guess(const Make& make, const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
                                    DistMatrix<T>& X, const SolveOptions& options) {
  const MethodPtr<T> method =
      begin_solve<T>([&](Agreement&) { return make(A, {A.range()}, options); }, B, X, options);
  require<UsageError>(options.damps.empty() || !options.initial_guess, method->name(),
                      " takes an initial guess or a damping for each column, not both, since the damping is "
                      "then part of the operator; use cgls()");
  if (options.damp == 0 || !options.initial_guess) return solve_columns(*method, B, X, options);
  FailureScope failures;
  DampedSystem<T> system(A, B, options.damp);
  SolveOptions undamped = options;
  undamped.damp = 0;
  SolveReport report =
      solve_by<T>([&] { return make(system.A(), system.range_stack(), undamped); }, system.B(), X, undamped);
  DistMatrix<T> r = system.data(), s = make_together<T>(X.grid(), X.layout());
  recompute_norms(A, B, X, options.damp, r, s, report);
  return report;
}

}  // namespace gridlops
