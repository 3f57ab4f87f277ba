// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "solve/methods/hermitian_method.hpp"
#include "solve/methods/method_of.hpp"
#include "solve/methods/rotations.hpp"

namespace gridlops {

namespace {

/// MINRES for many right-hand sides at once, each with its own scalars (Paige, Saunders: Solution of sparse
/// indefinite systems of linear equations, SIAM J. Numer. Anal. 12, 1975, §6), on A + D²I:
///
///   β₊v₊ = (A + D²I) v − α v − β v₋,   α = vᴴ(A + D²I) v
///   δ = c δ̄ + s α    γ̄ = s δ̄ − c α    δ̄ = −c β₊    γw₊ = v − δ w − ε w₋    ε = s β₊
///   γ, c, s from the rotation of (γ̄, β₊)    x += (c φ̄/γ) γw₊    φ̄ = s φ̄
///
/// ‖r‖ = |φ̄| never increases, and ‖(A + D²I) r‖ before an iteration is |φ̄| √(γ̄² + δ̄²). The start takes
/// one more product, to obtain a lower bound of ‖A‖.
template <Scalar T>
class Minres final : public HermitianMethod<T> {
 public:
  explicit Minres(const SolverCall<T>& call)
      : HermitianMethod<T>(call, traits()), guarded(call.options.guard > 0) {}

  void describe(MethodState<T>& state) override {
    state.solution(x);
    state.vector("v0", vs[0], A.domain());
    state.vector("v1", vs[1], A.domain());
    state.vector("w0", ws[0], A.domain());
    state.vector("w1", ws[1], A.domain());
    if (guarded) state.scratch(true_r, A.domain());
    for (ColumnScalars* values : {&beta, &delta_bar, &epsilon, &phi_bar, &c, &s}) state.scalars(*values);
    state.number(now);
  }

  void start(ColumnRun<T>& run) override {
    run.copy_data(vs[0]);
    ColumnScalars bb;
    if (!run.begins_from_data()) {
      bb = run.sum(norm2(vs[0]))[0];
      this->compute_residual(run, x, vs[0]);
    }
    begin_recurrence(run);
    multiply(run);
    columns_of_product = run.active_count();
    // If b is in the null space, A v is only rounding, and another product shows how large A is.
    A.apply(1, vs[1], 0, ws[0]);
    ws[0] += run.squared_damping() * vs[1];
    const auto [pp, qq, xx] = run.sum(norm2(vs[1]), norm2(ws[0]), norm2(x));
    ws[0].set_zero();
    const ColumnScalars data = run.begins_from_data() ? phi_bar : sqrt(bb);
    run.set_norms({.tested = phi_bar,
                   .residual = phi_bar,
                   .x = sqrt(xx),
                   .A = sqrt(max(pp, ratio(qq, pp))),
                   .reference = data,
                   .data = data});
  }

  void iterate(ColumnRun<T>& run) override {
    // The start has already computed the first product, to find out how large A is.
    if (std::exchange(columns_of_product, -1) != run.active_count()) multiply(run);
    DistMatrix<T>&v = vs[now], &v_next = vs[1 - now], &w = ws[now], &w_next = ws[1 - now];
    const ColumnScalars alpha = run.sum(dot(v, v_next))[0];
    if (run.ends()) return;
    const ColumnScalars delta = c * delta_bar + s * alpha, gamma_bar = s * delta_bar - c * alpha;
    // v₊ −= α v and γw₊ = v − δ w − ε w₋
    update(axpy(-alpha, v, v_next), scale(-epsilon, w_next), axpy(-delta, w, w_next), axpy(1, v, w_next));
    const auto [vv, xx, xw, ww] = run.sum(norm2(v_next), norm2(x), dot(x, w_next), norm2(w_next));
    const ColumnScalars beta_next = sqrt(vv);
    run.raise_operator_norms(hypot(hypot(beta, alpha), beta_next));  // ‖(A + D²I) v‖
    delta_bar = -c * beta_next;
    epsilon = s * beta_next;
    const Rotations next(gamma_bar, beta_next);
    ColumnScalars step = ratio(next.c * phi_bar, next.r);
    end_least_squares(run, hypot(gamma_bar, delta_bar), next, sqrt(ww), step);
    // x += (c φ̄/γ) γw₊
    update(axpy(step, w_next, x), scale(ratio(1, next.r), w_next), scale(ratio(1, beta_next), v_next));
    phi_bar = next.s * phi_bar;
    c = next.c;
    s = next.s;
    beta = beta_next;
    now = 1 - now;
    run.set_norms(
        {.tested = abs(phi_bar), .residual = abs(phi_bar), .x = root(xx + step * (2 * xw + step * ww))});
  }

  TrueNorms true_norms(ColumnRun<T>& run) override { return this->norms_of(run, x, vs[0], vs[1], ws[0]); }

  void restart(ColumnRun<T>& run) override { begin_recurrence(run); }

  /// The recurrence has only the norm of the residual.
  ColumnScalars residual_gap(ColumnRun<T>& run) override {
    this->compute_residual(run, x, true_r);
    ColumnScalars gap = sqrt(run.sum(norm2(true_r))[0]);
    for (Index k = 0; k < gap.size(); ++k) gap[k] = std::abs(gap[k] - run.column(k).residual_norm);
    return gap;
  }

 private:
  using HermitianMethod<T>::A;

  static MethodTraits traits() {
    MethodTraits traits = traits_of(Solver::minres);
    traits.follows_residual = false;
    traits.residual_never_rises = true;
    return traits;
  }

  /// Begins with the residual in vs[0].
  void begin_recurrence(ColumnRun<T>& run) {
    phi_bar = sqrt(run.sum(norm2(vs[0]))[0]);
    beta = delta_bar = epsilon = s = ColumnScalars(phi_bar.size());
    c = ColumnScalars(phi_bar.size(), -1);
    vs[0] *= ratio(1, phi_bar);
    for (DistMatrix<T>* before : {&vs[1], &ws[0], &ws[1]}) before->set_zero();
    now = 0;
    columns_of_product = -1;
  }
  /// v₋ ← (A + D²I) v − β v₋.
  void multiply(ColumnRun<T>& run) {
    DistMatrix<T>& product = vs[1 - now];
    product *= -beta;
    A.apply(1, vs[now], 1, product);
    product += run.squared_damping() * vs[now];
  }
  /// Ends columns whose x minimises ‖b − (A + D²I) x‖ while r is too large to be a solution's: r is in the
  /// null space, and another step would only add null-space components to x. The test in the authors' own
  /// code is ‖(A + D²I) r‖ ≤ T‖A + D²I‖‖r‖. Once half the digits are reached, a column also ends if a step
  /// gains less than it costs in rounding: as stagnated, which a residual computed anew confirms or not, and
  /// for good if it did not bring x closer. Columns that end take no step.
  void end_least_squares(ColumnRun<T>& run, const ColumnScalars& gradient_over_residual,
                         const Rotations& next, const ColumnScalars& w_norm, ColumnScalars& step) {
    const auto epsilon_of_T = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
    const double rounding = epsilon_of_T * std::sqrt(static_cast<double>(A.rows()));
    for (Index k = 0; k < run.active_count(); ++k) {
      ColumnState& column = run.column(k);
      const double A_norm = column.operator_norm,
                   gain = std::abs(phi_bar[k]) * next.c[k] * next.c[k] / (1 + std::abs(next.s[k])),
                   cost = rounding * A_norm * std::abs(step[k]) * w_norm[k];
      if (gradient_over_residual[k] <= std::max(column.tolerance, 10 * rounding) * A_norm) {
        column.reason = StopReason::breakdown;
      } else if (gradient_over_residual[k] <= std::sqrt(epsilon_of_T) * A_norm && gain < cost) {
        column.reason = column.is_stuck ? StopReason::breakdown : StopReason::stagnated;
      }
      if (column.reason) step[k] = 0;
    }
  }

  const bool guarded;
  DistMatrix<T> x, vs[2], ws[2], true_r;  // the arrays hold v, w and their predecessors in turns
  Index now = 0;                          // index of the current v and w
  ColumnScalars beta, delta_bar, epsilon, phi_bar, c, s;
  Index columns_of_product = -1;  // for the first iteration: how many columns of it are known
};

}  // namespace

template <>
struct MethodOf<Solver::minres> {
  template <Scalar T>
  using Type = Minres<T>;
};

#define GRIDLOPS_INSTANTIATE(T) template MethodPtr<T> make_method_of<Solver::minres>(const SolverCall<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
