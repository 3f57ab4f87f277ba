// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <limits>
#include <utility>

#include "gridlops/operator_algebra.hpp"
#include "solve/column_run.hpp"

namespace gridlops {

/// Plane rotations, one for each column, that take (a, b) to (r, 0): c a + s b = r. They are the identity
/// where a and b are 0 (Paige, Saunders 1982; hypot avoids overflow).
struct Rotations {
  Rotations() = default;
  Rotations(ColumnOperand a, ColumnOperand b) : r(hypot(a, b)), c(r), s(r) {
    for (Index j = 0; j < r.size(); ++j) {
      c[j] = r[j] == 0 ? 1 : a[j] / r[j];
      s[j] = r[j] == 0 ? 0 : b[j] / r[j];
    }
  }
  ColumnScalars r, c, s;
};

/// The square roots, and 0 where rounding has made a square negative. NaN stays NaN.
inline ColumnScalars root(ColumnScalars squares) {
  for (double& square : squares.values()) square = square < 0 ? 0 : square;
  return sqrt(squares);
}

/// Makes unit vectors of the columns of X that are not zero. Takes the squares of their norms, and returns
/// the norms.
template <Scalar T>
ColumnScalars normalise(DistMatrix<T>& X, const ColumnScalars& squares) {
  ColumnScalars norms = sqrt(squares);
  X *= ratio(1, norms);
  return norms;
}

/// LSQR and LSMR share the lower bidiagonalisation of Golub and Kahan,
///
///   β₁ u₁ = b − A x₀,  α₁ v₁ = Aᴴ u₁,    β u ← A v − α u,  α v ← Aᴴ u − β v,
///
/// and the stopping tests of Paige and Saunders on ‖r‖, ‖Aᴴr‖ and cond(A), which the recurrences estimate.
/// Here r is that of the damped system.
template <Scalar T>
class BidiagonalMethod : public ColumnMethod<T> {
 public:
  /// range_stack: the spaces that the range of A is a stack of.
  BidiagonalMethod(const LinearOperator<T>& op, std::vector<Space> range_stack, const SolveOptions& options)
      : A(op), options_(options), range_stack_(std::move(range_stack)) {}

  const LinearOperator<T>& op() const final { return A; }

  void describe(MethodState<T>& state) override {
    state.solution(x);
    state.vector("u", u, A.range(), range_stack_);
    state.vector("v", v, A.domain());
    state.scalars(alpha);
    if (options_.guard > 0) state.scratch(true_r, A.range());
  }

  TrueNorms true_norms(ColumnRun<T>& run) final {
    copy(run.B(), u);
    A.apply(-1, x, 1, u);
    A.apply_adjoint(1, u, 0, v);
    v -= run.squared_damping() * x;
    const auto [rr, ss, xx] = run.sum(norm2(u), norm2(v), norm2(x));
    return {.residual = sqrt(rr), .normal = sqrt(ss), .tested = sqrt(ss), .x = sqrt(xx)};
  }
  bool can_restart() const final { return false; }

  /// The recurrence has only the norm of the damped system's residual.
  ColumnScalars residual_gap(ColumnRun<T>& run) final {
    run.copy_data(true_r);
    A.apply(-1, x, 1, true_r);
    const auto [rr, xx] = run.sum(norm2(true_r), norm2(x));
    return abs(sqrt(rr + run.squared_damping() * xx) - run.damped_residual_norms());
  }

  // LSQR converges with a small residual or with a small gradient (Paige, Saunders: LSQR: an algorithm for
  // sparse linear equations and sparse least squares, ACM TOMS 8, 1982, §6).
  bool meets_tolerance(const ColumnState& column) const final {
    if (column.tested_norm == 0) return true;
    const double atol = options_.atol.value_or(column.tolerance),
                 btol = options_.btol.value_or(column.tolerance);
    const double r = std::hypot(column.residual_norm, column.damp * column.x_norm);
    return r <= btol * column.data_norm + atol * column.operator_norm * column.x_norm ||
           column.tested_norm <= atol * column.operator_norm * r;
  }
  /// Only α₁ and β₁ are squared; the reference is α₁β₁.
  bool starts_too_small(const ColumnState& column) const final {
    return column.residual_norm < smallest_safe_norm ||
           column.reference < smallest_safe_norm * column.residual_norm;
  }
  bool at_rounding_level(const ColumnState& column) const final {
    const double unit = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
    const double r = std::hypot(column.residual_norm, column.damp * column.x_norm);
    return r <= unit * (column.data_norm + column.operator_norm * column.x_norm) ||
           column.tested_norm <= unit * column.operator_norm * r;
  }
  bool beyond_condition_limit(const ColumnState& column) const final {
    return options_.condition_limit > 0 && column.condition >= options_.condition_limit;
  }

 protected:
  /// Computes u₁, v₁ and α₁, and returns β₁. Two reductions.
  ColumnScalars begin(ColumnRun<T>& run) {
    copy(run.B(), u);
    if (run.begins_from_guess()) A.apply(-1, x, 1, u);
    const auto [uu, bb, xx] = run.sum(norm2(u), norm2(run.B()), norm2(x));
    ColumnScalars beta = normalise(u, uu);
    A.apply_adjoint(1, u, 0, v);
    const auto [vv] = run.sum(norm2(v));
    alpha = normalise(v, vv);
    run.set_norms({.tested = alpha * beta,
                   .residual = beta,
                   .x = sqrt(xx),
                   .reference = alpha * beta,
                   .data = sqrt(bb)});
    return beta;
  }

  const LinearOperator<T>& A;
  DistMatrix<T> x, u, v;
  ColumnScalars alpha;

 private:
  const SolveOptions& options_;
  const std::vector<Space> range_stack_;
  DistMatrix<T> true_r;  // b − Ax, for the guard alone
};

}  // namespace gridlops
