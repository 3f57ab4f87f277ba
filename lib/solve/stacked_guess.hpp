// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>

#include "base/numbers.hpp"
#include "dist/together.hpp"
#include "gridlops/operator_algebra.hpp"
#include "gridlops/solver.hpp"

namespace gridlops {

/// The least-squares problem for the correction of an initial guess, where X is damped, not its correction:
/// min ‖[A; D·I] Z − [B − A·X₀; −D·X₀]‖, X = X₀ + Z.
template <Scalar T>
class StackedGuess {
 public:
  /// A must outlive this.
  StackedGuess(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, const DistMatrix<T>& X0, double damp)
      : A_(damped(OperatorPtr<T>(OperatorPtr<T>(), &A), damp)),
        B_(make_together<T>(B.grid(), A_->range().layout(B.layout().cols.partition))) {
    B_.set_zero();
    DistMatrix<T> upper = stack_member({A.range()}, 0, B_);
    copy(B, upper);
    A_->apply(T(-1), X0, T(1), B_);
  }

  const LinearOperator<T>& A() const { return *A_; }
  const ConstDistMatrix<T>& B() const { return B_; }

 private:
  OperatorPtr<T> A_;
  DistMatrix<T> B_;
};

/// The norms in the report once more, for X as it is now.
template <Scalar T>
void recompute_norms(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, const DistMatrix<T>& X,
                     double damp, SolveReport& report) {
  DistMatrix<T> r = clone_together(B), s = clone_together(X);
  A.apply(T(-1), X, T(1), r);
  A.apply_adjoint(T(1), r, to_scalar<T>(-damp * damp), s);
  const std::vector<double> residual_norms = column_norms(r), normal_norms = column_norms(s);
  for (std::size_t j = 0; j < report.columns.size(); ++j) {
    if (report.columns[j].reason == StopReason::non_finite) continue;
    report.columns[j].residual_norm = residual_norms[j];
    report.columns[j].normal_residual_norm = normal_norms[j];
  }
}

}  // namespace gridlops
