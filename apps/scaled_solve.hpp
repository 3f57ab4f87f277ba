// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/inversion.hpp"

namespace gridlops::program {

/// What a solver gets instead of min ‖A X − B‖² + D²‖X‖² where X = X₀ + P Z: min ‖[A; D·I] P Z − [B; 0] + [A;
/// D·I] X₀‖, without damping and from Z = 0.
template <Scalar T>
class ScaledProblem {
 public:
  /// X holds X₀, or anything without an initial guess.
  ScaledProblem(OperatorPtr<T> A, OperatorPtr<T> P, const DistMatrix<T>& B, const DistMatrix<T>& X,
                const SolveOptions& options)
      : A_(std::move(A)),
        P_(std::move(P)),
        damp_(options.damp),
        options_(options),
        full_(damp_ > 0 ? damped(A_, damp_) : A_),
        scaled_(product(full_, P_)),
        B_(B.grid(), full_->range().layout(B.layout().cols.partition)),
        Z_(X.grid(), X.layout()) {
    options_.damp = 0;
    options_.initial_guess = false;
    B_.set_zero();
    DistMatrix<T> data = stack_member({A_->range()}, 0, B_);
    copy(B, data);
    if (options.initial_guess) full_->apply(T(-1), X, T(1), B_);
  }

  /// solver(A, B, X, options), then X; the norms in the report become those of X and the problem as it was.
  template <class Solver>
  SolveReport solve(const Solver& solver, const DistMatrix<T>& B, DistMatrix<T>& X, bool initial_guess) {
    SolveReport report = solver(*scaled_, B_, Z_, options_);
    P_->apply(T(1), Z_, T(initial_guess ? 1 : 0), X);
    DistMatrix<T> residual = stack_member({A_->range()}, 0, B_);
    copy(B, residual);
    A_->apply(T(-1), X, T(1), residual);
    copy(X, Z_);
    A_->apply_adjoint(T(1), residual, static_cast<T>(static_cast<Real<T>>(-damp_ * damp_)), Z_);
    const std::vector<double> residual_norms = column_norms(residual), normal_norms = column_norms(Z_);
    for (std::size_t j = 0; j < report.columns.size(); ++j) {
      if (report.columns[j].reason == StopReason::non_finite) continue;
      report.columns[j].residual_norm = residual_norms[j];
      report.columns[j].normal_residual_norm = normal_norms[j];
    }
    return report;
  }

 private:
  OperatorPtr<T> A_, P_;
  const double damp_;
  SolveOptions options_;
  OperatorPtr<T> full_, scaled_;
  DistMatrix<T> B_, Z_;
};

}  // namespace gridlops::program
