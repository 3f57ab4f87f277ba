// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>

#include "solve/run/column_run.hpp"

namespace gridlops {

/// A method for least squares that updates r = b − A x in every step, and forms the gradient s = Aᴴr − D²x
/// anew.
template <Scalar T>
class GradientMethod : public ColumnMethod<T> {
 public:
  using ColumnMethod<T>::ColumnMethod;

  TrueNorms true_norms(ColumnRun<T>& run) override {
    compute_residuals(run);
    const auto [rr, ss, xx] = run.sum(norm2(r), norm2(s), norm2(x));
    gamma = ss;
    return {.residual = sqrt(rr), .normal = sqrt(ss), .tested = sqrt(ss), .x = sqrt(xx)};
  }

 protected:
  using ColumnMethod<T>::A;

  /// Returns true_norms(), with the distance that r has drifted. The scratch matrix is in A's range.
  TrueNorms true_norms_and_drift(ColumnRun<T>& run, DistMatrix<T>& scratch) {
    copy(r, scratch);
    compute_residuals(run);
    scratch -= r;
    const auto [rr, ss, xx, drift] = run.sum(norm2(r), norm2(s), norm2(x), norm2(scratch));
    gamma = ss;
    return {.residual = sqrt(rr),
            .normal = sqrt(ss),
            .tested = sqrt(ss),
            .x = sqrt(xx),
            .residual_drift = sqrt(drift)};
  }

  /// Computes r, s and γ = ‖s‖² at the start, and sets all norms.
  void begin(ColumnRun<T>& run) {
    run.copy_data(r);
    A.apply_adjoint(1, r, 0, s);
    const auto [of_data, bb] = run.sum(norm2(s), norm2(r));
    const ColumnScalars reference = sqrt(of_data), data = sqrt(bb);
    std::array<ColumnScalars, 3> norms2{bb, of_data, ColumnScalars(bb.size())};
    const auto& [rr, ss, xx] = norms2;
    ColumnScalars A_norm = ratio(reference, data);  // ‖A‖ ≥ ‖Aᴴb‖/‖b‖
    if (!run.begins_from_data()) {
      compute_residuals(run);
      norms2 = run.sum(norm2(r), norm2(s), norm2(x));
      // b may see nothing of A, and a guess's residual more: ‖A‖ ≥ ‖Aᴴr‖/‖r‖.
      const ColumnScalars of_residual = sqrt(ratio(ss, rr));
      for (Index k = 0; k < A_norm.size(); ++k)
        if (run.column(k).damp == 0) A_norm[k] = std::max(A_norm[k], of_residual[k]);
    }
    run.set_norms({.tested = sqrt(ss),
                   .residual = sqrt(rr),
                   .x = sqrt(xx),
                   .A = A_norm,
                   .reference = reference,
                   .data = data});
    gamma = ss;
  }

  /// ‖b − A x − r‖. The scratch matrix is in A's range.
  ColumnScalars gap_of_residual(ColumnRun<T>& run, DistMatrix<T>& scratch) {
    run.copy_right_hand_side(scratch);
    A.apply(-1, x, 1, scratch);
    scratch -= r;
    return sqrt(run.sum(norm2(scratch))[0]);
  }

  DistMatrix<T> x, r, s;
  ColumnScalars gamma;  // ‖s‖²

 private:
  /// r = b − A x,  s = Aᴴ r − D² x.
  void compute_residuals(ColumnRun<T>& run) {
    run.copy_right_hand_side(r);
    A.apply(-1, x, 1, r);
    A.apply_adjoint(1, r, 0, s);
    s -= run.squared_damping() * x;
  }
};

}  // namespace gridlops
