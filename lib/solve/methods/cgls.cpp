// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "solve/methods/gradient_method.hpp"
#include "solve/methods/method_of.hpp"

namespace gridlops {

namespace {

/// CGLS for many right-hand sides at once, each with its own scalars (Björck, Elfving, Strakoš 1998,
/// algorithm CGLS1; damping D as the rows [D·I] of A):
///
///   q = A p    α = γ/(‖q‖² + D²‖p‖²)    x += α p    r −= α q
///   s = Aᴴ r − D² x    p = s + (‖s‖²/γ) p    γ = ‖s‖²
///
/// In one pass over A, the product that gives q also gives Aᴴr and Aᴴq: s = Aᴴr − α Aᴴq − D² x. Where s is
/// so much shorter than before that this difference has lost half of its digits, the column takes a step of
/// length 0, which only computes s anew, and begins its recurrence from there.
///
/// Preconditioned by M ≈ (AᴴA + D²I)⁻¹, z = M s takes the place of s in p, and γ = sᴴz, which takes a third
/// reduction (Björck: Numerical methods for least squares problems, 1996, §7.4, with M = (SᴴS)⁻¹).
template <Scalar T>
class Cgls final : public GradientMethod<T> {
 public:
  explicit Cgls(const SolverCall<T>& call)
      : GradientMethod<T>(call.A, traits(call)),
        one_pass(takes_one_pass(call)),
        M(call.operands.preconditioner) {
    if (M != nullptr) require_preconditioner(*M, call.A);
  }

  void describe(MethodState<T>& state) override {
    state.solution(x);
    state.vector("r", r, A.range());
    state.vector("p", p, A.domain());
    state.scratch(q, A.range());
    state.scratch(s, A.domain());
    if (M != nullptr) state.scratch(Ms, A.domain());
    if (one_pass) state.scratch(Ahr, A.domain());
    if (one_pass) state.scratch(Ahq, A.domain());
    state.scalars(gamma);
    if (one_pass) state.scalars(takes_step);
  }

  void start(ColumnRun<T>& run) override {
    this->begin(run);
    restart(run);
  }

  void iterate(ColumnRun<T>& run) override {
    if (one_pass) {
      A.normal_product(p, r, q, Ahr, Ahq);  // q = A p, Aᴴr, Aᴴq
    } else {
      A.apply(1, p, 0, q);  // q = A p
    }
    const auto [qq, pp] = run.sum(norm2(q), norm2(p));
    if (run.ends()) return;
    run.raise_operator_norms(sqrt(ratio(qq, pp)));  // ‖A‖ ≥ ‖q‖/‖p‖
    const ColumnFactors D2 = run.squared_damping();
    ColumnScalars alpha = run.steps(gamma, qq + D2 * pp);  // α = γ/(‖q‖² + D²‖p‖²)
    if (one_pass) alpha *= takes_step;
    update(axpy(alpha, p, x), axpy(-alpha, q, r));  // x += α p, r −= α q
    if (one_pass) {
      update(xpby(Ahr, 0, s), axpy(-alpha, Ahq, s));  // s = Aᴴr − α Aᴴq
    } else {
      A.apply_adjoint(1, r, 0, s);  // s = Aᴴ r
    }
    s -= D2 * x;
    const auto [ss, rr, xx] = run.sum(norm2(s), norm2(r), norm2(x));
    if (M == nullptr) run.follow_quadrature(alpha, ratio(ss, gamma));
    const ColumnScalars sz = precondition(run, ss);
    ColumnScalars beta = ratio(sz, gamma);
    if (one_pass) begin_anew_where_lost(run, beta);
    update(xpby(z(), beta, p));  // p = s + (‖s‖²/γ) p
    gamma = sz;
    run.set_norms({.tested = sqrt(ss), .residual = sqrt(rr), .x = sqrt(xx)});
  }

  TrueNorms true_norms(ColumnRun<T>& run) override { return this->true_norms_and_drift(run, q); }

  void restart(ColumnRun<T>& run) override {
    gamma = precondition(run, gamma);
    copy(z(), p);
    takes_step = ColumnScalars(gamma.size(), 1);
  }

  ColumnScalars residual_gap(ColumnRun<T>& run) override { return this->gap_of_residual(run, q); }
  // s is orthogonal to the previous direction, so sᴴp = γ. If a fault changes either side, the error remains
  // the same fraction of γ from then on. With M, a fraction of γ too small to spoil a direction does not
  // count as a gap, as in Cg.
  ColumnScalars direction_gap(ColumnRun<T>& run) override {
    const auto [sp, pp] = run.sum(dot(s, p), norm2(p));
    const double harmless =
        M == nullptr ? 0 : std::sqrt(static_cast<double>(std::numeric_limits<Real<T>>::epsilon()));
    return ratio(abs(sp - gamma) - harmless * gamma, run.norm_A() * sqrt(pp));
  }

 private:
  using GradientMethod<T>::A, GradientMethod<T>::x, GradientMethod<T>::r, GradientMethod<T>::s,
      GradientMethod<T>::gamma;

  /// One pass gives Aᴴ A p, without the weights of a column between, so that with weights it takes two.
  static bool takes_one_pass(const SolverCall<T>& call) {
    return call.options.one_pass && call.operands.weights == nullptr;
  }
  static MethodTraits traits(const SolverCall<T>& call) {
    MethodTraits traits = traits_of(call.solver);
    if (takes_one_pass(call)) traits.name = "one-pass-cgls";
    return traits;
  }

  DistMatrix<T>& z() { return M != nullptr ? Ms : s; }
  /// z = M s. Returns sᴴz, given ‖s‖².
  ColumnScalars precondition(ColumnRun<T>& run, const ColumnScalars& ss) {
    if (M == nullptr) return ss;
    M->apply(T(1), s, T(0), Ms);
    return run.sum(dot(s, Ms))[0];
  }

  /// β ← 0 where p is to be s alone: before a step of length 0, and after it.
  void begin_anew_where_lost(ColumnRun<T>& run, ColumnScalars& beta) {
    for (Index k = 0; k < beta.size(); ++k) {
      constexpr auto epsilon = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
      const bool was_lost = takes_step[k] == 0;
      if (was_lost || beta[k] < std::sqrt(epsilon))
        run.column(k).forget_quadrature(true);  // s is another, or may be off by more than r is
      takes_step[k] = !was_lost && beta[k] < epsilon ? 0 : 1;
      if (!was_lost && takes_step[k] == 1) continue;
      beta[k] = 0;
    }
  }

  const bool one_pass;
  const LinearOperator<T>* const M;
  DistMatrix<T> p, q, Ms, Ahr, Ahq;
  ColumnScalars takes_step;  // 1, or 0 for columns whose s is lost
};

}  // namespace

template <>
struct MethodOf<Solver::cgls> {
  template <Scalar T>
  using Type = Cgls<T>;
};

template <>
struct MethodOf<Solver::pcgls> {
  template <Scalar T>
  using Type = Cgls<T>;
};

#define GRIDLOPS_INSTANTIATE(T)                                             \
  template MethodPtr<T> make_method_of<Solver::cgls>(const SolverCall<T>&); \
  template MethodPtr<T> make_method_of<Solver::pcgls>(const SolverCall<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
