// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "solve/methods/method_of.hpp"
#include "solve/run/column_run.hpp"

namespace gridlops {

namespace {

/// CGLS for many right-hand sides at once, each with its own scalars (Björck, Elfving, Strakoš 1998,
/// algorithm CGLS1; damping D as the rows [D·I] of A):
///
///   q = A p    α = γ/(‖q‖² + D²‖p‖²)    x += α p    r −= α q
///   s = Aᴴ r − D² x    p = s + (‖s‖²/γ) p    γ = ‖s‖²
///
/// In one pass over A, the product that gives q also gives Aᴴr and Aᴴq: s = Aᴴr − α Aᴴq − D² x.
template <Scalar T>
class Cgls final : public ColumnMethod<T> {
 public:
  explicit Cgls(const SolverCall<T>& call)
      : ColumnMethod<T>(call.A, traits(call.options.one_pass)), one_pass(call.options.one_pass) {}

  void describe(MethodState<T>& state) override {
    state.solution(x);
    state.vector("r", r, A.range());
    state.vector("p", p, A.domain());
    state.scratch(q, A.range());
    state.scratch(s, A.domain());
    if (one_pass) state.scratch(Ahr, A.domain());
    if (one_pass) state.scratch(Ahq, A.domain());
    state.scalars(gamma);
  }

  void start(ColumnRun<T>& run) override {
    run.copy_data(r);
    A.apply_adjoint(1, r, 0, s);
    const auto [of_data, bb] = run.sum(norm2(s), norm2(r));
    const ColumnScalars reference = sqrt(of_data), data = sqrt(bb);
    Norms2 norms{bb, of_data, ColumnScalars(bb.size())};
    ColumnScalars A_norm = ratio(reference, data);  // ‖A‖ ≥ ‖Aᴴb‖/‖b‖
    if (!run.begins_from_data()) {
      norms = compute_residuals(run);
      // b may see nothing of A, and a guess's residual more: ‖A‖ ≥ ‖Aᴴr‖/‖r‖.
      const ColumnScalars of_residual = sqrt(ratio(norms.ss, norms.rr));
      for (Index k = 0; k < A_norm.size(); ++k)
        if (run.column(k).damp == 0) A_norm[k] = std::max(A_norm[k], of_residual[k]);
    }
    run.set_norms({.tested = sqrt(norms.ss),
                   .residual = sqrt(norms.rr),
                   .x = sqrt(norms.xx),
                   .A = A_norm,
                   .reference = reference,
                   .data = data});
    copy(s, p);
    gamma = norms.ss;
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
    const ColumnScalars alpha = run.steps(gamma, qq + D2 * pp);  // α = γ/(‖q‖² + D²‖p‖²)
    update(axpy(alpha, p, x), axpy(-alpha, q, r));               // x += α p, r −= α q
    if (one_pass) {
      update(xpby(Ahr, 0, s), axpy(-alpha, Ahq, s));  // s = Aᴴr − α Aᴴq
    } else {
      A.apply_adjoint(1, r, 0, s);  // s = Aᴴ r
    }
    s -= D2 * x;
    const auto [ss, rr, xx] = run.sum(norm2(s), norm2(r), norm2(x));
    update(xpby(s, ratio(ss, gamma), p));  // p = s + (‖s‖²/γ) p
    gamma = ss;
    run.set_norms({.tested = sqrt(ss), .residual = sqrt(rr), .x = sqrt(xx)});
  }

  TrueNorms true_norms(ColumnRun<T>& run) override {
    const auto [rr, ss, xx] = compute_residuals(run);
    gamma = ss;
    return {.residual = sqrt(rr), .normal = sqrt(ss), .tested = sqrt(ss), .x = sqrt(xx)};
  }

  void restart(ColumnRun<T>&) override { copy(s, p); }

  ColumnScalars residual_gap(ColumnRun<T>& run) override {
    run.copy_right_hand_side(q);
    A.apply(-1, x, 1, q);
    q -= r;  // b − A x − r
    return sqrt(run.sum(norm2(q))[0]);
  }
  // s is orthogonal to the previous direction, so sᴴp = γ. If a fault changes either side, the error remains
  // the same fraction of γ from then on.
  ColumnScalars direction_gap(ColumnRun<T>& run) override {
    const auto [sp, pp] = run.sum(dot(s, p), norm2(p));
    return ratio(abs(sp - gamma), run.norm_A() * sqrt(pp));
  }

 private:
  using ColumnMethod<T>::A;

  static MethodTraits traits(bool one_pass) {
    MethodTraits traits = traits_of(Solver::cgls);
    if (one_pass) traits.name = "one-pass-cgls";
    return traits;
  }

  struct Norms2 {
    ColumnScalars rr, ss, xx;
  };
  /// r = b − A x,  s = Aᴴ r − D² x.
  Norms2 compute_residuals(ColumnRun<T>& run) {
    run.copy_right_hand_side(r);
    A.apply(-1, x, 1, r);
    A.apply_adjoint(1, r, 0, s);
    s -= run.squared_damping() * x;
    const auto [rr, ss, xx] = run.sum(norm2(r), norm2(s), norm2(x));
    return {rr, ss, xx};
  }

  const bool one_pass;
  DistMatrix<T> x, r, p, q, s, Ahr, Ahq;
  ColumnScalars gamma;
};

}  // namespace

template <>
struct MethodOf<Solver::cgls> {
  template <Scalar T>
  using Type = Cgls<T>;
};

#define GRIDLOPS_INSTANTIATE(T) template MethodPtr<T> make_method_of<Solver::cgls>(const SolverCall<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
