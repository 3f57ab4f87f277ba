// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include "solve/methods/methods.hpp"
#include "solve/methods/rotations.hpp"
#include "solve/run/column_run.hpp"

namespace gridlops {

/// LSQR and LSMR share the lower Golub–Kahan bidiagonalisation of [A; D·I], whose left vectors have the parts
/// u and d,
///
///   β₁ (u₁; d₁) = (b − A x₀; −D x₀),  α₁ v₁ = Aᴴ u₁ + D d₁,
///   β (u; d) ← (A v − α u; D v − α d),  α v ← Aᴴ u + D d − β v.
///
/// This minimises ‖b − A x‖² + D²‖x‖² from any x₀. The recurrences estimate the norm of the damped system's
/// residual, ‖Aᴴ(b − Ax) − D²x‖, ‖A‖ and cond(A).
template <Scalar T>
class BidiagonalMethod : public ColumnMethod<T> {
 public:
  explicit BidiagonalMethod(const SolverCall<T>& call)
      : ColumnMethod<T>(call.A, traits_of(call.solver)),
        guarded_(call.options.guard > 0),
        damped_(call.options.damp.any()) {}

  void describe(MethodState<T>& state) override {
    state.solution(x);
    state.vector("u", u, A.range());
    if (damped_) state.vector("d", d, A.domain());
    state.vector("v", v, A.domain());
    for (ColumnScalars* values : {&alpha, &norm2_B}) state.scalars(*values);
    state.number(steps);
    if (guarded_) state.scratch(true_r, A.range());
  }

  void start(ColumnRun<T>& run) override {
    ColumnScalars data, of_data;
    if (!run.begins_from_data()) {
      run.copy_data(u);
      A.apply_adjoint(1, u, 0, v);
      const auto [bb, ss] = run.sum(norm2(u), norm2(v));
      data = sqrt(bb);
      of_data = sqrt(ss);
    }
    const auto [beta, residual, x_norm] = compute_first(run, !run.begins_from_data());
    if (run.begins_from_data()) {
      data = beta;
      of_data = alpha * beta;
    }
    // ‖A‖ ≥ ‖Aᴴb‖/‖b‖, which a guess does not spoil, however long it is; and ‖[A; D·I]‖ ≥ α.
    run.set_norms({.tested = alpha * beta,
                   .residual = residual,
                   .x = x_norm,
                   .A = max(ratio(of_data, data), run.without_damping(alpha * alpha, 1)),
                   .reference = of_data,
                   .data = data});
    begin(beta);
  }

  TrueNorms true_norms(ColumnRun<T>& run) override {
    compute_gradient(run);
    const auto [rr, ss, xx] = run.sum(norm2(u), norm2(v), norm2(x));
    return {.residual = sqrt(rr), .normal = sqrt(ss), .tested = sqrt(ss), .x = sqrt(xx)};
  }

  void restart(ColumnRun<T>& run) override { begin(compute_first(run, true).beta); }

  /// The recurrence has only the norm of the damped system's residual.
  ColumnScalars residual_gap(ColumnRun<T>& run) final {
    run.copy_right_hand_side(true_r);
    A.apply(-1, x, 1, true_r);
    const auto [rr, xx] = run.sum(norm2(true_r), norm2(x));
    return abs(sqrt(rr + run.squared_damping() * xx) - run.damped_residual_norms());
  }

 protected:
  using ColumnMethod<T>::A;

  /// u = b − A x,  v = Aᴴ u − D² x.
  void compute_gradient(ColumnRun<T>& run) {
    run.copy_right_hand_side(u);
    A.apply(-1, x, 1, u);
    A.apply_adjoint(1, u, 0, v);
    v -= run.squared_damping() * x;
  }
  /// Begins the recurrence with u₁, d₁, v₁, α₁ and this β₁.
  virtual void begin_recurrence(const ColumnScalars& beta) = 0;

  /// (u; d) ← (A v − α u; D v − α d), which is β times the next. Returns β, and the sum that was reduced with
  /// it.
  struct NextU {
    ColumnScalars beta, other;
  };
  NextU next_u(ColumnRun<T>& run, const ColumnSum<T>& term) {
    if (damped_) {
      update(scale(-alpha, u), scale(-alpha, d), axpy(run.damping(), v, d));
    } else {
      u *= -alpha;
    }
    A.apply(1, v, 1, u);
    NextU next;
    if (damped_) {
      const auto [uu, dd, other] = run.sum(norm2(u), norm2(d), term);
      next = {sqrt(uu + dd), other};
    } else {
      const auto [uu, other] = run.sum(norm2(u), term);
      next = {sqrt(uu), other};
    }
    return next;
  }

  /// Scales u and d to unit norm, and v ← Aᴴ u + D d − β v, which is α times the next. Also makes the change
  /// `along`, with those that come before the product.
  void next_v(ColumnRun<T>& run, const ColumnScalars& beta, const ColumnUpdate<T>& along) {
    const ColumnScalars to_unit = ratio(1, beta);
    if (damped_) {
      update(scale(to_unit, u), scale(to_unit, d), scale(-beta, v), along);
    } else {
      update(scale(to_unit, u), scale(-beta, v), along);
    }
    A.apply_adjoint(1, u, 1, v);
    if (damped_) v += run.damping() * d;
  }
  /// Counts this step's v: ‖[A; D·I] v‖² = α² + β², with the α before it. After A.cols() steps rounding
  /// repeats directions.
  void count_direction(const ColumnScalars& alpha_before, const ColumnScalars& beta) {
    if (steps < A.cols()) norm2_B += alpha_before * alpha_before + beta * beta;
    ++steps;
  }
  /// The Frobenius norm of [A; D·I] as far as the recurrence has seen it.
  ColumnScalars damped_norm() const { return sqrt(norm2_B); }
  /// The Frobenius norm of A, as far as the recurrence has seen it.
  ColumnScalars norm_of_A(const ColumnRun<T>& run) const {
    return run.without_damping(norm2_B, std::min(steps, A.cols()));
  }
  /// ‖b − A x‖ from the norm of the damped system's residual.
  static ColumnScalars undamped(ColumnRun<T>& run, const ColumnScalars& r, const ColumnScalars& x_norm) {
    return root(r * r - run.squared_damping() * x_norm * x_norm);
  }

  DistMatrix<T> x, u, d, v;
  ColumnScalars alpha;

 private:
  void begin(const ColumnScalars& beta) {
    norm2_B = ColumnScalars(beta.size());
    steps = 0;
    begin_recurrence(beta);
  }
  struct First {
    ColumnScalars beta, residual, x_norm;
  };
  First compute_first(ColumnRun<T>& run, bool has_x) {
    run.copy_right_hand_side(u);
    if (has_x) A.apply(-1, x, 1, u);
    if (damped_) d.set_zero();
    if (damped_ && has_x) d -= run.damping() * x;
    First first;
    if (damped_) {
      const auto [uu, dd, xx] = run.sum(norm2(u), norm2(d), norm2(x));
      first = {sqrt(uu + dd), sqrt(uu), sqrt(xx)};
    } else {
      const auto [uu, xx] = run.sum(norm2(u), norm2(x));
      first = {sqrt(uu), sqrt(uu), sqrt(xx)};
    }
    u *= ratio(1, first.beta);
    if (damped_) d *= ratio(1, first.beta);
    A.apply_adjoint(1, u, 0, v);
    if (damped_) v += run.damping() * d;
    alpha = sqrt(run.sum(norm2(v))[0]);
    v *= ratio(1, alpha);
    return first;
  }

  const bool guarded_, damped_;
  ColumnScalars norm2_B;  // the squared Frobenius norm of the bidiagonal matrix
  Index steps = 0;        // of this recurrence
  DistMatrix<T> true_r;   // b − Ax, only for the guard
};

}  // namespace gridlops
