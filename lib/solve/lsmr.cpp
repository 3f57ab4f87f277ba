// SPDX-License-Identifier: BSD-3-Clause
#include <limits>

#include "base/instantiate.hpp"
#include "solve/bidiagonal_method.hpp"
#include "solve/damped_guess.hpp"
#include "solve/methods.hpp"

namespace gridlops {

namespace {

/// LSMR for many right-hand sides at once, with scalars of its own for each, in the names of Fong and
/// Saunders (LSMR: an iterative algorithm for sparse least-squares problems, SIAM J. Sci. Comput. 33, 2011,
/// §2 to §5):
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
         {&alpha_bar, &zeta_bar, &zeta, &rho, &rho_bar, &c_bar, &s_bar, &beta_double_dot, &beta_dot, &rho_dot,
          &tau_tilde, &theta_tilde, &d, &norm2_A, &largest_rho_bar, &smallest_rho_bar})
      state.scalars(*values);
    state.number(first_step);
  }

  void start(ColumnRun<T>& run) override {
    const ColumnScalars beta = this->begin(run), zero(beta.size()), one(beta.size(), 1);
    alpha_bar = alpha;
    zeta_bar = alpha * beta;
    rho = rho_bar = c_bar = rho_dot = one;
    beta_double_dot = beta;
    zeta = s_bar = beta_dot = tau_tilde = theta_tilde = d = largest_rho_bar = zero;
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
    const ColumnScalars beta = normalise(u, uu);
    const Rotations damping(alpha_bar, D), P(damping.r, beta);  // P̂ with D, P with β
    const ColumnScalars theta_bar = s_bar * P.r;
    xpby(h, -ratio(theta_bar * P.r, rho * rho_bar), h_bar);  // h̄ = h − (θ̄ρ/(ρ₋ρ̄₋)) h̄
    v *= -beta;
    A.apply_adjoint(1, u, 1, v);  // αv = Aᴴu − βv
    const auto [vv, xh, hh] = run.sum(norm2(v), dot(x, h_bar), norm2(h_bar));
    alpha = normalise(v, vv);
    const ColumnScalars theta = P.s * alpha, rho_temp = c_bar * P.r;
    const Rotations P_bar(rho_temp, theta);
    const ColumnScalars rho_bar_before = rho_bar, zeta_before = zeta;
    alpha_bar = P.c * alpha;
    rho = P.r;
    rho_bar = P_bar.r;
    c_bar = P_bar.c;
    s_bar = P_bar.s;
    zeta = c_bar * zeta_bar;
    zeta_bar = -s_bar * zeta_bar;
    const ColumnScalars step = ratio(zeta, rho * rho_bar);
    x += step * h_bar;               // x += (ζ/(ρρ̄)) h̄
    xpby(v, -ratio(theta, rho), h);  // h = v − (θ/ρ) h
    const ColumnScalars norm_x = root(xx + step * (2 * xh + step * hh));
    const ColumnScalars norm_A = sqrt(norm2_A + beta * beta);
    norm2_A = norm2_A + beta * beta + alpha * alpha;
    const ColumnScalars rr = squared_residual(damping, P, theta_bar, zeta_before);
    run.set_norms({.tested = abs(zeta_bar),
                   .residual = root(rr - D2 * norm_x * norm_x),
                   .x = norm_x,
                   .A = norm_A,
                   .condition = condition(rho_bar_before, rho_temp)});
  }

 private:
  using BidiagonalMethod<T>::A, BidiagonalMethod<T>::D, BidiagonalMethod<T>::D2, BidiagonalMethod<T>::x,
      BidiagonalMethod<T>::u, BidiagonalMethod<T>::v, BidiagonalMethod<T>::alpha;

  /// ‖r‖² of the damped system, §5.1.
  ColumnScalars squared_residual(const Rotations& damping, const Rotations& P, const ColumnScalars& theta_bar,
                                 const ColumnScalars& zeta_before) {
    const ColumnScalars beta_acute = damping.c * beta_double_dot, beta_check = -damping.s * beta_double_dot;
    const ColumnScalars beta_hat = P.c * beta_acute;
    beta_double_dot = -P.s * beta_acute;
    const Rotations P_tilde(rho_dot, theta_bar);
    const ColumnScalars theta_tilde_before = theta_tilde;
    theta_tilde = P_tilde.s * rho_bar;
    rho_dot = P_tilde.c * rho_bar;
    beta_dot = P_tilde.c * beta_hat - P_tilde.s * beta_dot;
    tau_tilde = ratio(zeta_before - theta_tilde_before * tau_tilde, P_tilde.r);
    const ColumnScalars tau_dot = ratio(zeta - theta_tilde * tau_tilde, rho_dot), gap = beta_dot - tau_dot;
    d += beta_check * beta_check;
    return d + gap * gap + beta_double_dot * beta_double_dot;
  }

  /// Of A, from the diagonal of R̄, §5.4.
  ColumnScalars condition(const ColumnScalars& rho_bar_before, const ColumnScalars& rho_temp) {
    largest_rho_bar = max(largest_rho_bar, rho_bar_before);
    if (!first_step) smallest_rho_bar = min(smallest_rho_bar, rho_bar_before);
    first_step = false;
    return max(largest_rho_bar, rho_temp) / min(smallest_rho_bar, rho_temp);
  }

  DistMatrix<T> h, h_bar;
  ColumnScalars alpha_bar, zeta_bar, zeta, rho, rho_bar, c_bar, s_bar;
  ColumnScalars beta_double_dot, beta_dot, rho_dot, tau_tilde, theta_tilde, d;  // for ‖r‖
  ColumnScalars norm2_A, largest_rho_bar, smallest_rho_bar;                     // for ‖A‖ and cond(A)
  bool first_step = true;
};

}  // namespace

template <Scalar T>
MethodPtr<T> make_lsmr(const LinearOperator<T>& A, std::vector<Space> members, const SolveOptions& options) {
  return std::make_unique<Lsmr<T>>(A, std::move(members), options);
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
