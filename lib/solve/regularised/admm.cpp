// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/proximal.hpp"
#include "solve/methods/methods.hpp"
#include "solve/regularised/kept_proximal.hpp"
#include "solve/run/column_run.hpp"

namespace gridlops {

namespace {

/// ADMM for many right-hand sides at once (Boyd et al. 2011, §3), with S = [A; L/√τ]:
///
///   x = argmin ‖S x − [b; (z − u)/√τ]‖²    z = prox_τg(L x + u)    u += L x − z
///
/// starting from z = L x and u = 0.
template <Scalar T>
class Admm final : public ColumnMethod<T> {
 public:
  Admm(OperatorPtr<T> op, OperatorPtr<T> transform, ProximalPtr<T> term, const AdmmOptions& options)
      : ColumnMethod<T>(*op, traits(*transform, *term, options)),
        A(std::move(op)),
        L(std::move(transform)),
        g(std::move(term)),
        tau(options.tau),
        S(vertical_stack<T>({A, scale(to_scalar<T>(1 / std::sqrt(tau)), L)})),
        stack_{A->range(), L->range()},
        inner_state_(A->domain()) {
    inner_.max_iterations = options.inner_iterations;
    inner_.tolerance = options.inner_tolerance;
    inner_.initial_guess = true;
    inner_.column_stable = options.common.column_stable;
    inner_.record_history = false;
    inner_method_ = make_method<T>({Solver::cgls, *S, inner_});
    inner_method_->describe(inner_state_);
  }

  void describe(MethodState<T>& state) override {
    state.solution(x);
    state.vector("data", data, S->range(), stack_);
    state.vector("z", z, L->range());
    state.vector("u", u, L->range());
    state.scratch(r, S->range());
    state.scratch(v, L->range());
    state.scratch(gradient, A->domain());
    state.scalars(data_norm);
    state.scalars(data_gradient);
  }

  /// The memory that this and its CGLS need on this rank for the columns of a batch.
  SolveBytes bytes(const Partition& columns) {
    const ProcessGrid& grid = *A->domain().grid;
    MethodState<T> state(A->domain());
    describe(state);
    Index vectors = 0;
    for (const MethodState<T>* each : {&state, &inner_state_})
      vectors += each->elements_at(grid.my_row(), grid.my_col(), A->range().local_columns(columns));
    return {S->kept_bytes(columns), vectors * Index{sizeof(T)},
            std::max(S->scratch_bytes(ProductKind::forward, columns),
                     S->scratch_bytes(ProductKind::adjoint, columns))};
  }

  void start(ColumnRun<T>& run) override {
    DistMatrix<T> b = stack_rows(stack_, 0, data);
    run.copy_data(b);
    A->apply_adjoint(1, b, 0, gradient);
    const auto [bb, gg] = run.sum(norm2(b), norm2(gradient));
    data_norm = sqrt(bb);
    data_gradient = sqrt(gg);
    compute_residuals();
    copy(stack_rows(stack_, 1, std::as_const(r)), z);
    u.set_zero();
    const Norms norms = sum_norms(run);
    run.set_norms({.tested = norms.tested,
                   .residual = norms.residual,
                   .x = norms.x,
                   .reference = ColumnScalars(run.active_count(), 1),
                   .data = data_norm});
  }

  void iterate(ColumnRun<T>& run) override {
    run.sum();
    if (run.ends()) return;
    DistMatrix<T> difference = stack_rows(stack_, 1, data);
    copy(z, difference);
    difference -= u;
    difference *= 1 / std::sqrt(tau);
    solve_columns(*inner_method_, data, x, inner_, {.state = &inner_state_});
    compute_residuals();
    const DistMatrix<T> Lx = stack_rows(stack_, 1, r);
    u += Lx;
    copy(u, z);
    g.prox(tau, z);  // z = prox_τg(L x + u)
    u -= z;          // u += L x − z
    const Norms norms = sum_norms(run);
    run.set_norms({.tested = norms.tested, .residual = norms.residual, .x = norms.x});
  }

  TrueNorms true_norms(ColumnRun<T>& run) override {
    compute_residuals();
    A->apply_adjoint(1, stack_rows(stack_, 0, r), 0, gradient);
    const ColumnScalars normal = sqrt(run.sum(norm2(gradient))[0]);
    const Norms norms = sum_norms(run);
    return {.residual = norms.residual, .normal = normal, .tested = norms.tested, .x = norms.x};
  }

  ColumnScalars residual_gap(ColumnRun<T>& run) override {
    DistMatrix<T> misfit = stack_rows(stack_, 0, r);
    run.copy_data(misfit);
    A->apply(-1, x, 1, misfit);
    return abs(sqrt(run.sum(norm2(misfit))[0]) - run.damped_residual_norms());
  }

 private:
  static MethodTraits traits(const LinearOperator<T>& L, const ProximalOperator<T>& g,
                             const AdmmOptions& options) {
    return {.name = "admm",
            .test = ToleranceTest::own,
            // −u/τ is a subgradient of g only from the first step on.
            .judges_start = false,
            .follows_residual = false,
            .parameters = message(g.describe(), " of what a ", L.rows(), " x ", L.cols(),
                                  " operator makes, tau ", options.tau, ", ", options.inner_iterations,
                                  " inner iterations with tolerance ", options.inner_tolerance)};
  }

  struct Norms {
    ColumnScalars tested, residual, x;
  };

  /// r ← [b − A x; L x].
  void compute_residuals() {
    DistMatrix<T> misfit = stack_rows(stack_, 0, r), Lx = stack_rows(stack_, 1, r);
    copy(stack_rows(stack_, 0, std::as_const(data)), misfit);
    Lx.set_zero();
    S->apply(-1, x, 1, r);
    Lx *= -std::sqrt(tau);
  }

  /// The norms of x, z and u after compute_residuals(). The tested norm is the larger of Boyd's relative
  /// residuals (2011, §3.3.1), for y = u/τ. Where z and L x or y are 0, these residuals may be as large as
  /// the absolute tolerances, which are the rounding of the data: 10ε of ‖Aᴴb‖, and of ‖L‖ times the size
  /// ‖b‖²/‖Aᴴb‖ of a model.
  Norms sum_norms(ColumnRun<T>& run) {
    constexpr double rounding = 10 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
    const DistMatrix<T> misfit = stack_rows(stack_, 0, r), Lx = stack_rows(stack_, 1, r);
    L->apply_adjoint(to_scalar<T>(-1 / tau), u, 0, gradient);
    const auto [LyLy] = run.sum(norm2(gradient));
    A->apply_adjoint(1, misfit, 1, gradient);  // Aᴴ(b − A x) − Lᴴy
    const auto [rr, xx, gg, LxLx, zz, uu, vv] =
        run.sum(norm2(misfit), norm2(x), norm2(gradient), norm2(Lx), norm2(z), norm2(u), distance2(Lx, z, v));
    const ColumnScalars norm_L = sqrt(max(ratio(LxLx, xx), ratio(tau * tau * LyLy, uu))),
                        size = data_norm * ratio(data_norm, data_gradient);
    const auto relative = [](const ColumnScalars& norm, const ColumnScalars& absolute,
                             const ColumnScalars& reference) {
      const ColumnScalars above = max(norm - absolute, 0.0);
      return ratio(above, max(above, reference));
    };
    const ColumnScalars primal = relative(sqrt(vv), rounding * norm_L * size, sqrt(max(LxLx, zz))),
                        dual = relative(sqrt(gg), rounding * data_gradient, sqrt(LyLy));
    return {max(primal, dual), sqrt(rr), sqrt(xx)};
  }

  const OperatorPtr<T> A, L;
  const KeptProximal<T> g;
  const double tau;
  const OperatorPtr<T> S;
  const std::vector<Space> stack_;
  SolveOptions inner_;  // for the CGLS that computes x and keeps its memory from one iteration to the next
  MethodPtr<T> inner_method_;
  MethodState<T> inner_state_;
  DistMatrix<T> x, data, z, u, r, v, gradient;
  ColumnScalars data_norm, data_gradient;  // ‖b‖ and ‖Aᴴb‖
};

}  // namespace

template <Scalar T>
SolveReport admm(OperatorPtr<T> A, OperatorPtr<T> L, ProximalPtr<T> g, const ConstDistMatrix<T>& B,
                 DistMatrix<T>& X, const AdmmOptions& options) {
  const auto make = [&](Agreement&) -> MethodPtr<T> {
    require<UsageError>(options.tau > 0 && std::isfinite(options.tau), "admm: tau is ", options.tau,
                        "; it must be a finite number > 0");
    require<UsageError>(options.inner_iterations >= 1, "admm: ", options.inner_iterations,
                        " inner iterations are impossible; there must be at least one");
    require<UsageError>(options.inner_tolerance >= 0 && std::isfinite(options.inner_tolerance),
                        "admm: the inner tolerance is ", options.inner_tolerance,
                        "; it must be a finite number ≥ 0");
    g->require_any_columns(B.cols(), "admm");
    return std::make_unique<Admm<T>>(A, L, g, options);
  };
  SolveOptions common = options.common;
  return solve_columns(*begin_solve<T>(make, B, X, common), B, X, common);
}

template <Scalar T>
SolveBytes admm_bytes(OperatorPtr<T> A, OperatorPtr<T> L, ProximalPtr<T> g, Index nrhs,
                      const AdmmOptions& options) {
  if (!A->domain().grid->is_member()) return {};
  return Admm<T>(A, L, g, options)
      .bytes(first_batch(A->range().layout(nrhs).cols.partition, options.common.batch));
}

#define GRIDLOPS_INSTANTIATE(T)                                                                              \
  template SolveBytes admm_bytes(OperatorPtr<T>, OperatorPtr<T>, ProximalPtr<T>, Index, const AdmmOptions&); \
  template SolveReport admm(OperatorPtr<T>, OperatorPtr<T>, ProximalPtr<T>, const ConstDistMatrix<T>&,       \
                            DistMatrix<T>&, const AdmmOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
