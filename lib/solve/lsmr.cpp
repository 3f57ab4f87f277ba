// SPDX-License-Identifier: BSD-3-Clause
#include <limits>
#include <utility>

#include "base/instantiate.hpp"
#include "solve/bidiagonal_method.hpp"
#include "solve/damped_guess.hpp"
#include "solve/methods.hpp"

namespace gridlops {

namespace {

/// LSMR for many right-hand sides at once, with scalars of its own for each, in the names of Fong and
/// Saunders (LSMR: an iterative algorithm for sparse least-squares problems, SIAM J. Sci. Comput. 33, 2011):
/// algorithm LSMR of §2.8, damped as in §5. P̂ takes D out of the bidiagonal matrix, P takes β, and P̄ takes θ:
///
///   βu = Av − αu    h̄ = h − (θ̄ρ/(ρ₋ρ̄₋)) h̄    αv = Aᴴu − βv    x += (ζ/(ρρ̄)) h̄    h = v − (θ/ρ) h
template <Scalar T>
class Lsmr final : public BidiagonalMethod<T> {
 public:
  using BidiagonalMethod<T>::BidiagonalMethod;
  const char* name() const override { return "lsmr"; }

  void describe(MethodState<T>& state) override {
    BidiagonalMethod<T>::describe(state);
    state.vector("h", h, A.domain());
    state.vector("h_bar", h_bar, A.domain());
    for (ColumnScalars* values :
         {&alpha_bar, &zeta_bar, &zeta, &P.r, &P_bar.r, &P_bar.c, &P_bar.s, &beta_double_dot, &beta_dot,
          &rho_dot, &tau_tilde, &theta_tilde, &d, &norm2_A, &largest_rho_bar, &smallest_rho_bar})
      state.scalars(*values);
    state.number(first_step);
  }

  void start(ColumnRun<T>& run) override {
    const ColumnScalars beta = this->begin(run), zero(beta.size()), one(beta.size(), 1);
    alpha_bar = alpha;
    zeta_bar = alpha * beta;
    P.r = P_bar.r = P_bar.c = rho_dot = one;
    beta_double_dot = beta;
    zeta = P_bar.s = beta_dot = tau_tilde = theta_tilde = d = largest_rho_bar = zero;
    smallest_rho_bar = ColumnScalars(beta.size(), std::numeric_limits<double>::infinity());
    norm2_A = alpha * alpha;
    first_step = true;
    copy(v, h);
    h_bar.set_zero();
  }

  void iterate(ColumnRun<T>& run) override {
    u *= -alpha;
    A.apply(1, v, 1, u);  // βu = Av − αu
    const auto [uu, xx] = run.sum(norm2(u), norm2(x));
    if (run.ends()) return;
    const ColumnScalars beta = normalise(u, uu), rho_rho_bar = P.r * P_bar.r;
    const Rotations P_hat(alpha_bar, run.damping());       // α̂ = √(ᾱ² + D²)
    P = Rotations(P_hat.r, beta);                          // ρ = √(α̂² + β²)
    const ColumnScalars theta_bar = P_bar.s * P.r;         // θ̄ = s̄₋ρ
    xpby(h, -ratio(theta_bar * P.r, rho_rho_bar), h_bar);  // h̄ = h − (θ̄ρ/(ρ₋ρ̄₋)) h̄
    v *= -beta;
    A.apply_adjoint(1, u, 1, v);  // αv = Aᴴu − βv
    const auto [vv, xh, hh] = run.sum(norm2(v), dot(x, h_bar), norm2(h_bar));
    alpha = normalise(v, vv);
    alpha_bar = P.c * alpha;                                                         // ᾱ = cα
    const ColumnScalars theta = P.s * alpha, zeta_before = zeta;                     // θ = sα
    const Rotations before = std::exchange(P_bar, Rotations(P_bar.c * P.r, theta));  // ρ̄ = √((c̄₋ρ)² + θ²)
    zeta = P_bar.c * zeta_bar;                                                       // ζ = c̄ζ̄
    zeta_bar = -P_bar.s * zeta_bar;                                                  // ζ̄ = −s̄ζ̄
    const ColumnScalars step = ratio(zeta, P.r * P_bar.r);
    x += step * h_bar;               // x += (ζ/(ρρ̄)) h̄
    xpby(v, -ratio(theta, P.r), h);  // h = v − (θ/ρ) h
    const ColumnScalars norm_x = root(xx + step * (2 * xh + step * hh));
    set_norms(run, beta, P_hat, before, zeta_before, norm_x);
  }

 private:
  using BidiagonalMethod<T>::A, BidiagonalMethod<T>::x, BidiagonalMethod<T>::u, BidiagonalMethod<T>::v,
      BidiagonalMethod<T>::alpha;

  /// Sets the norms after a step. P_bar_before and zeta_before are of the step before.
  void set_norms(ColumnRun<T>& run, const ColumnScalars& beta, const Rotations& P_hat,
                 const Rotations& P_bar_before, const ColumnScalars& zeta_before,
                 const ColumnScalars& norm_x) {
    const ColumnScalars norm_A = sqrt(norm2_A + beta * beta);
    norm2_A = norm2_A + beta * beta + alpha * alpha;
    const ColumnScalars rr = squared_residual(P_hat, P_bar_before.s * P.r, zeta_before);
    run.set_norms({.tested = abs(zeta_bar),
                   .residual = root(rr - run.squared_damping() * norm_x * norm_x),
                   .x = norm_x,
                   .A = norm_A,
                   .condition = condition(P_bar_before.r, P_bar_before.c * P.r)});
  }

  /// ‖r‖² of the damped system (§5.1).
  ColumnScalars squared_residual(const Rotations& P_hat, const ColumnScalars& theta_bar,
                                 const ColumnScalars& zeta_before) {
    const ColumnScalars beta_acute = P_hat.c * beta_double_dot, beta_check = -P_hat.s * beta_double_dot;
    const ColumnScalars beta_hat = P.c * beta_acute;
    beta_double_dot = -P.s * beta_acute;
    const Rotations P_tilde(rho_dot, theta_bar);
    const ColumnScalars theta_tilde_before = theta_tilde;
    theta_tilde = P_tilde.s * P_bar.r;
    rho_dot = P_tilde.c * P_bar.r;
    beta_dot = P_tilde.c * beta_hat - P_tilde.s * beta_dot;
    tau_tilde = ratio(zeta_before - theta_tilde_before * tau_tilde, P_tilde.r);
    const ColumnScalars tau_dot = ratio(zeta - theta_tilde * tau_tilde, rho_dot), gap = beta_dot - tau_dot;
    d += beta_check * beta_check;
    return d + gap * gap + beta_double_dot * beta_double_dot;
  }

  /// The condition number of A, from the diagonal of R̄ (§5.4).
  ColumnScalars condition(const ColumnScalars& rho_bar_before, const ColumnScalars& rho_bar_so_far) {
    largest_rho_bar = max(largest_rho_bar, rho_bar_before);
    if (!first_step) smallest_rho_bar = min(smallest_rho_bar, rho_bar_before);
    first_step = false;
    return max(largest_rho_bar, rho_bar_so_far) / min(smallest_rho_bar, rho_bar_so_far);
  }

  DistMatrix<T> h, h_bar;
  Rotations P, P_bar;  // ρ = P.r and ρ̄ = P_bar.r; of P only ρ lasts to the next step
  ColumnScalars alpha_bar, zeta_bar, zeta;
  ColumnScalars beta_double_dot, beta_dot, rho_dot, tau_tilde, theta_tilde, d;  // for ‖r‖
  ColumnScalars norm2_A, largest_rho_bar, smallest_rho_bar;                     // for ‖A‖ and cond(A)
  bool first_step = true;
};

}  // namespace

template <Scalar T>
MethodPtr<T> make_lsmr(const LinearOperator<T>& A, std::vector<Space> range_stack,
                       const SolveOptions& options) {
  return std::make_unique<Lsmr<T>>(A, std::move(range_stack), options);
}

template <Scalar T>
SolveReport lsmr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 const SolveOptions& options) {
  return solve_with_damped_guess<T>(make_lsmr<T>, A, B, X, options);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                       \
  template MethodPtr<T> make_lsmr(const LinearOperator<T>&, std::vector<Space>, const SolveOptions&); \
  template SolveReport lsmr(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&,      \
                            const SolveOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
