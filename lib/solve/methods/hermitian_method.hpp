// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "solve/methods/methods.hpp"
#include "solve/run/column_run.hpp"

namespace gridlops {

/// A method for (A + D²I) x = b with a Hermitian A. Models and data have the same layout.
template <Scalar T>
class HermitianMethod : public ColumnMethod<T> {
 public:
  HermitianMethod(const SolverCall<T>& call, const MethodTraits& traits) : ColumnMethod<T>(call.A, traits) {
    require<ShapeError>(
        A.domain() == A.range(), this->name(), " needs an operator from a space to itself; this one is ",
        A.rows(), " x ", A.cols(),
        A.rows() == A.cols()
            ? ", and its models and data lie differently: multiply it with an identity() that redistributes"
            : ": use cgls() for least squares");
  }

 protected:
  using ColumnMethod<T>::A;

  /// r = b − (A + D²I) x.
  void compute_residual(ColumnRun<T>& run, const ConstDistMatrix<T>& x, DistMatrix<T>& r) {
    run.copy_right_hand_side(r);
    A.apply(-1, x, 1, r);
    r -= run.squared_damping() * x;
  }
  /// Computes all norms, and r = b − (A + D²I) x, which takes the place of the recurrence's. p and q are
  /// scratch memory.
  TrueNorms norms_of(ColumnRun<T>& run, const ConstDistMatrix<T>& x, DistMatrix<T>& r, DistMatrix<T>& p,
                     DistMatrix<T>& q) {
    const ColumnFactors D2 = run.squared_damping();
    run.copy_right_hand_side(p);
    A.apply(-1, x, 1, p);  // b − A x
    copy(p, q);
    q -= D2 * x;
    r -= q;
    const auto [undamped, rr, drift] = run.sum(norm2(p), norm2(q), norm2(r));
    copy(q, r);
    A.apply_adjoint(1, p, 0, q);
    p.set_zero();
    p += D2 * x;
    // Aᴴr is multiplied by 2^power, but D²x is not. Each is scaled halfway, so that neither leaves its range.
    const int half = run.operator_power() / 2;
    std::vector<int> powers(at(run.active_count()), 0), opposite = powers;
    for (Index k = 0; k < run.active_count(); ++k)
      if (run.column(k).damp > 0) powers[at(k)] = half, opposite[at(k)] = -half;
    multiply_by_powers(q, opposite);
    multiply_by_powers(p, powers);
    q -= p;
    const auto [qq, xx] = run.sum(norm2(q), norm2(x));
    ColumnScalars normal = sqrt(qq);
    for (Index k = 0; k < normal.size(); ++k) normal[k] = std::ldexp(normal[k], powers[at(k)]);
    return {.residual = sqrt(undamped),
            .normal = normal,
            .tested = sqrt(rr),
            .x = sqrt(xx),
            .gradient_drift = sqrt(drift)};
  }
};

}  // namespace gridlops
