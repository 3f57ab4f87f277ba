// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "dist/matrix_checks.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/solve/proximal.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "solve/methods/methods.hpp"
#include "solve/regularised/kept_proximal.hpp"
#include "solve/run/column_run.hpp"

namespace gridlops {

namespace {

/// The primal-dual method (Chambolle, Pock 2011, algorithm 1) for many right-hand sides at once, with r = K x
/// − b, its value r̄ at the extrapolated x̄, and prox_σf* by Moreau's decomposition:
///
///   u = prox_{f/σ}(r̄ + y/σ)    y₊ = y + σ(r̄ − u)    x₊ = prox_τg(x − τ Kᴴy₊)    x̄₊ = x₊ + θ(x₊ − x)
///
/// Whatever r̄, and so θ, the maps make y₊ a subgradient of f at u, and s = (x − x₊)/τ − Kᴴy₊ one of g at x₊.
/// So x₊ is optimal if r₊ = u and Kᴴy₊ + s = (x − x₊)/τ = 0.
template <Scalar T>
class PrimalDual final : public ColumnMethod<T> {
 public:
  PrimalDual(OperatorPtr<T> op, ProximalPtr<T> of_data, ProximalPtr<T> of_model, DistMatrix<T>* dual,
             const PrimalDualOptions& options)
      : ColumnMethod<T>(*op, traits(*of_data, *of_model, options)),
        K(std::move(op)),
        f(std::move(of_data)),
        g(std::move(of_model)),
        dual_(dual),
        given_(options) {}

  void complete(SolveOptions&) override {
    const double norm = 1.02 * estimate_norm(*K);
    // Only 0 ≤ τσ‖K‖² ≤ 1 matters if nothing is given; 1/‖K‖ has the scale of both.
    const double product = norm == 0 ? 1 : 1 / norm / norm;
    tau = given_.tau ? *given_.tau : given_.sigma ? product / *given_.sigma : std::sqrt(product);
    sigma = given_.sigma ? *given_.sigma : product / tau;
    norm_K = norm;
    const double least = norm / 1.02 * (1 - 1e-6);  // of which rounding explains nothing
    require<UsageError>(!(tau * sigma * least * least > 1), "primal_dual: tau ", tau, " times sigma ", sigma,
                        " times ‖K‖² is ", tau * sigma * least * least,
                        " at least; the steps converge if it is at most 1: give one of them, and the ",
                        "solver chooses the other");
  }

  double norm_of_unscaled(double) const override { return norm_K; }

  void describe(MethodState<T>& state) override {
    state.solution(x);
    if (dual_ != nullptr) {
      state.result("y", y, *dual_);
    } else {
      state.vector("y", y, K->range());
    }
    state.vector("r", r, K->range());
    state.vector("r_bar", r_bar, K->range());
    for (DistMatrix<T>* in_range : {&u, &y_next, &r_next}) state.scratch(*in_range, K->range());
    for (DistMatrix<T>* in_domain : {&x_next, &gradient}) state.scratch(*in_domain, K->domain());
    for (ColumnScalars* values : {&data_norm, &first_primal, &first_dual}) state.scalars(*values);
  }

  void start(ColumnRun<T>& run) override {
    if (!given_.dual_guess) y.set_zero();
    run.copy_data(r);
    data_norm = sqrt(run.sum(norm2(r))[0]);
    compute_residual(run, x, r);
    copy(r, r_bar);
    const Residuals first = step_and_residuals(run, r);
    first_primal = first.primal;
    first_dual = first.dual;
    if (given_.dual_guess || !run.begins_from_data()) step_from_zero(run);
    run.set_norms({.tested = tested_norms(first),
                   .residual = first.r,
                   .x = first.x,
                   .reference = ColumnScalars(run.active_count(), 1),
                   // No guess is too far off: for f(K x − b) b has no size that x must have.
                   .data = first.r + first.x + data_norm});
  }

  void iterate(ColumnRun<T>& run) override {
    take_step(r_bar);
    compute_residual(run, x_next, r_next);
    const Residuals now = sum_residuals(run, x_next, r_next);
    if (run.ends()) return;
    copy(r_next, r_bar);
    r_bar -= r;
    update(xpby(r_next, given_.theta, r_bar));  // K(x₊ + θ(x₊ − x)) − b
    copy(r_next, r);
    copy(x_next, x);
    copy(y_next, y);
    run.set_norms({.tested = tested_norms(now), .residual = now.r, .x = now.x});
  }

  /// Takes a step from x and y, without extrapolation, but does not accept it: its residuals are those of the
  /// conditions of optimality at x.
  TrueNorms true_norms(ColumnRun<T>& run) override {
    compute_residual(run, x, r_next);
    const Residuals now = step_and_residuals(run, r_next);
    return {.residual = now.r, .normal = now.dual, .tested = tested_norms(now), .x = now.x};
  }

  void restart(ColumnRun<T>& run) override {
    compute_residual(run, x, r);
    copy(r, r_bar);
  }

  ColumnScalars residual_gap(ColumnRun<T>& run) override {
    compute_residual(run, x, r_next);
    r_next -= r;
    return sqrt(run.sum(norm2(r_next))[0]);
  }

 private:
  static MethodTraits traits(const ProximalOperator<T>& f, const ProximalOperator<T>& g,
                             const PrimalDualOptions& options) {
    const auto text = [](const std::optional<double>& step) { return step ? message(*step) : "computed"; };
    return {.name = "primal-dual",
            .test = ToleranceTest::own,
            .parameters = message(f.describe(), " and ", g.describe(), ", tau ", text(options.tau),
                                  ", sigma ", text(options.sigma), ", theta ", options.theta,
                                  options.dual_guess ? ", from a guess of y" : "")};
  }

  /// ‖r − u‖, ‖Kᴴy + s‖, and the norms of r, x and y.
  struct Residuals {
    ColumnScalars primal, dual, r, x, y;
  };

  void compute_residual(ColumnRun<T>& run, const ConstDistMatrix<T>& of, DistMatrix<T>& residual) {
    run.copy_data(residual);
    K->apply(1, of, -1, residual);
  }

  /// Computes u, y₊ and x₊ from x, y and this K x̄ − b.
  void take_step(const ConstDistMatrix<T>& residual) {
    copy(residual, u);
    u += (1 / sigma) * y;
    f.prox(1 / sigma, u);
    copy(y, y_next);
    y_next += sigma * residual;
    y_next -= sigma * u;
    K->apply_adjoint(1, y_next, 0, gradient);
    copy(x, x_next);
    x_next -= tau * gradient;
    g.prox(tau, x_next);
  }

  Residuals step_and_residuals(ColumnRun<T>& run, const ConstDistMatrix<T>& residual) {
    take_step(residual);
    return sum_residuals(run, x, residual);
  }

  /// Sets the first residuals to those of a step from x = 0 and y = 0. Those of a guess may be rounding.
  void step_from_zero(ColumnRun<T>& run) {
    run.copy_data(r_next);
    r_next *= -1;
    copy(r_next, u);
    f.prox(1 / sigma, u);
    update(xpby(r_next, -1, u));  // r − u, and y₊ = σ(r − u)
    K->apply_adjoint(-1, u, 0, x_next);
    x_next *= tau * sigma;
    g.prox(tau, x_next);
    const auto [pp, xx] = run.sum(norm2(u), norm2(x_next));
    first_primal = sqrt(pp);
    first_dual = 1 / tau * sqrt(xx);
  }

  /// The norms after take_step(), for the model `of` with this residual K x − b. Overwrites u and the
  /// gradient.
  Residuals sum_residuals(ColumnRun<T>& run, const ConstDistMatrix<T>& of,
                          const ConstDistMatrix<T>& residual) {
    update(xpby(residual, -1, u));  // r − u
    const auto [rr, pp, dd, xx, yy] =
        run.sum(norm2(residual), norm2(u), distance2(x, x_next, gradient), norm2(of), norm2(y_next));
    return {sqrt(pp), 1 / tau * sqrt(dd), sqrt(rr), sqrt(xx), sqrt(yy)};
  }

  /// The larger backward error: by how much the problem must change, relative to ‖K‖ and b, for r = u and
  /// Kᴴy₊ = −s. Of s, rounding hides as much as that of x/τ and of σr, which is added to the norm.
  ///
  /// Where x and b, or y, are 0, the residual may be as large as rounding of the other: the metric of the
  /// method, ‖x‖²/τ + ‖y‖²/σ, compares their sizes. So that no choice of steps makes this large, it is also
  /// bounded by half of the digits of the first residual. The size of b does not tell that y is 0: a y ≪
  /// ε‖b‖σ is lost in r + y/σ.
  ColumnScalars tested_norms(const Residuals& now) const {
    constexpr auto epsilon = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
    const ColumnScalars size_r = norm_K * now.x + data_norm, size_s = norm_K * now.y,
                        hidden = 2 * epsilon * (1 / tau * now.x + norm_K * sigma * now.r);
    const double x_per_y = std::sqrt(tau / sigma), half_the_digits = std::sqrt(epsilon);
    const auto relative = [&](const ColumnScalars& norm, const ColumnScalars& rounding,
                              const ColumnScalars& first, const ColumnScalars& size) {
      const ColumnScalars above = max(norm - min(rounding, half_the_digits * first), 0.0);
      return ratio(above, max(above, size));
    };
    return max(relative(now.primal, 10 * epsilon * x_per_y * size_s, first_primal, size_r),
               relative(now.dual + hidden, 10 * epsilon / x_per_y * norm_K * now.x, first_dual, size_s));
  }

  const OperatorPtr<T> K;
  const KeptProximal<T> f, g;
  DistMatrix<T>* const dual_;
  const PrimalDualOptions given_;
  double tau = 1, sigma = 1, norm_K = 0;
  DistMatrix<T> x, y, r, r_bar, u, y_next, r_next, x_next, gradient;
  ColumnScalars data_norm, first_primal, first_dual;  // ‖b‖, and residuals of the first step from 0
};

void require_step(const char* name, const std::optional<double>& step) {
  require<UsageError>(!step || (*step > 0 && std::isfinite(*step)), "primal_dual: ", name, " is ",
                      step.value_or(0), "; it must be a finite number > 0");
}

}  // namespace

template <Scalar T>
SolveReport primal_dual(OperatorPtr<T> K, ProximalPtr<T> f, ProximalPtr<T> g, const ConstDistMatrix<T>& B,
                        DistMatrix<T>& X, const PrimalDualOptions& options, DistMatrix<T>* Y) {
  const auto make = [&](Agreement& agreement) -> MethodPtr<T> {
    agreement.on("a matrix for the dual solution", Y != nullptr);
    require_step("tau", options.tau);
    require_step("sigma", options.sigma);
    require<UsageError>(options.theta >= 0 && options.theta <= 1, "primal_dual: theta is ", options.theta,
                        "; it must be from 0 to 1");
    require<UsageError>(!options.dual_guess || Y != nullptr,
                        "primal_dual: dual_guess is set, but there is no matrix that holds the guess");
    f->require_any_columns(B.cols(), "primal_dual");
    g->require_any_columns(B.cols(), "primal_dual");
    if (Y != nullptr) {
      require<ShapeError>(Y->grid() == B.grid() && Y->layout() == B.layout(),
                          "primal_dual: the dual solutions are ", Y->layout().describe(),
                          " and the right-hand sides ", B.layout().describe(), "; they must be alike");
      require_apart<T>(B, *Y, "primal_dual", "its right-hand sides and its dual solutions");
      require_apart<T>(X, *Y, "primal_dual", "its solutions and its dual solutions");
    }
    return std::make_unique<PrimalDual<T>>(K, f, g, Y, options);
  };
  SolveOptions common = options.common;
  return solve_columns(*begin_solve<T>(make, B, X, common), B, X, common);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                         \
  template SolveReport primal_dual(OperatorPtr<T>, ProximalPtr<T>, ProximalPtr<T>,                      \
                                   const ConstDistMatrix<T>&, DistMatrix<T>&, const PrimalDualOptions&, \
                                   DistMatrix<T>*);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
