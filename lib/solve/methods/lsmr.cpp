// SPDX-License-Identifier: BSD-3-Clause
#include <limits>
#include <utility>

#include "solve/methods/bidiagonal_method.hpp"
#include "solve/methods/method_of.hpp"

namespace gridlops {

namespace {

/// LSMR for many right-hand sides at once, each with its own scalars, in the notation of Fong and Saunders
/// (LSMR: an iterative algorithm for sparse least-squares problems, SIAM J. Sci. Comput. 33, 2011): algorithm
/// LSMR of §2.8. P eliminates β from the bidiagonal matrix, and P̄ eliminates θ:
///
///   βu = Av − αu    h̄ = h − (θ̄ρ/(ρ₋ρ̄₋)) h̄    αv = Aᴴu − βv    x += (ζ/(ρρ̄)) h̄    h = v − (θ/ρ) h
template <Scalar T>
class Lsmr final : public BidiagonalMethod<T> {
 public:
  using BidiagonalMethod<T>::BidiagonalMethod;

  void describe(MethodState<T>& state) override {
    BidiagonalMethod<T>::describe(state);
    state.vector("h", h, A.domain());
    state.vector("h_bar", h_bar, A.domain());
    for (ColumnScalars* values :
         {&alpha_bar, &zeta_bar, &zeta, &P.r, &P_bar.r, &P_bar.c, &P_bar.s, &beta_double_dot, &beta_dot,
          &rho_dot, &tau_tilde, &theta_tilde, &largest_rho_bar, &smallest_rho_bar})
      state.scalars(*values);
  }

  void iterate(ColumnRun<T>& run) override {
    const auto [beta, xx] = this->next_u(run, norm2(x));  // βu = Av − αu
    if (run.ends()) return;
    const ColumnScalars rho_rho_bar = P.r * P_bar.r;
    P = Rotations(alpha_bar, beta);                 // ρ = √(ᾱ² + β²)
    const ColumnScalars theta_bar = P_bar.s * P.r;  // θ̄ = s̄₋ρ
    this->count_direction(alpha, beta);
    // h̄ = h − (θ̄ρ/(ρ₋ρ̄₋)) h̄ and αv = Aᴴu − βv
    this->next_v(run, beta, xpby(h, -ratio(theta_bar * P.r, rho_rho_bar), h_bar));
    const auto [vv, xh, hh] = run.sum(norm2(v), dot(x, h_bar), norm2(h_bar));
    alpha = sqrt(vv);
    alpha_bar = P.c * alpha;                                                         // ᾱ = cα
    const ColumnScalars theta = P.s * alpha, zeta_before = zeta;                     // θ = sα
    const Rotations before = std::exchange(P_bar, Rotations(P_bar.c * P.r, theta));  // ρ̄ = √((c̄₋ρ)² + θ²)
    zeta = P_bar.c * zeta_bar;                                                       // ζ = c̄ζ̄
    zeta_bar = -P_bar.s * zeta_bar;                                                  // ζ̄ = −s̄ζ̄
    const ColumnScalars step = ratio(zeta, P.r * P_bar.r);
    // v has unit norm, x += (ζ/(ρρ̄)) h̄ and h = v − (θ/ρ) h
    update(scale(ratio(1, alpha), v), axpy(step, h_bar, x), xpby(v, -ratio(theta, P.r), h));
    run.raise_operator_norms(this->norm_of_A(run));
    const ColumnScalars x_norm = root(xx + step * (2 * xh + step * hh));
    const ColumnScalars r_norm = residual_norm(before.s * P.r, zeta_before);
    run.set_norms({.tested = abs(zeta_bar),
                   .residual = this->undamped(run, r_norm, x_norm),
                   .x = x_norm,
                   .condition = condition(before.c * P.r)});
  }

 protected:
  void begin_recurrence(const ColumnScalars& beta) override {
    const ColumnScalars zero(beta.size()), one(beta.size(), 1);
    alpha_bar = alpha;
    zeta_bar = alpha * beta;
    P.r = P_bar.r = P_bar.c = rho_dot = one;
    beta_double_dot = beta;
    zeta = P_bar.s = beta_dot = tau_tilde = theta_tilde = largest_rho_bar = zero;
    smallest_rho_bar = ColumnScalars(beta.size(), std::numeric_limits<double>::infinity());
    copy(v, h);
    h_bar.set_zero();
  }

 private:
  using BidiagonalMethod<T>::A, BidiagonalMethod<T>::x, BidiagonalMethod<T>::u, BidiagonalMethod<T>::v,
      BidiagonalMethod<T>::alpha;

  /// ‖r‖ of the damped system (§5.1).
  ColumnScalars residual_norm(const ColumnScalars& theta_bar, const ColumnScalars& zeta_before) {
    const ColumnScalars beta_hat = P.c * beta_double_dot;
    beta_double_dot = -P.s * beta_double_dot;
    const Rotations P_tilde(rho_dot, theta_bar);
    const ColumnScalars theta_tilde_before = theta_tilde;
    theta_tilde = P_tilde.s * P_bar.r;
    rho_dot = P_tilde.c * P_bar.r;
    beta_dot = P_tilde.c * beta_hat - P_tilde.s * beta_dot;
    tau_tilde = ratio(zeta_before - theta_tilde_before * tau_tilde, P_tilde.r);
    const ColumnScalars tau_dot = ratio(zeta - theta_tilde * tau_tilde, rho_dot);
    return hypot(beta_dot - tau_dot, beta_double_dot);
  }

  /// The condition number of [A; D·I], from the diagonal of R̄, whose last entry is not final yet (§5.4).
  ColumnScalars condition(const ColumnScalars& rho_bar_so_far) {
    const ColumnScalars largest = max(largest_rho_bar, rho_bar_so_far),
                        smallest = min(smallest_rho_bar, rho_bar_so_far);
    ColumnScalars result = largest / smallest;
    for (Index k = 0; k < result.size(); ++k)
      if (largest[k] == 0) result[k] = 0;  // v is 0
    largest_rho_bar = max(largest_rho_bar, P_bar.r);
    smallest_rho_bar = min(smallest_rho_bar, P_bar.r);
    return result;
  }

  DistMatrix<T> h, h_bar;
  Rotations P, P_bar;  // ρ = P.r and ρ̄ = P_bar.r; of P only ρ is kept until the next step
  ColumnScalars alpha_bar, zeta_bar, zeta;
  ColumnScalars beta_double_dot, beta_dot, rho_dot, tau_tilde, theta_tilde;  // for ‖r‖
  ColumnScalars largest_rho_bar, smallest_rho_bar;                           // for cond(A)
};

}  // namespace

template <>
struct MethodOf<Solver::lsmr> {
  template <Scalar T>
  using Type = Lsmr<T>;
};

#define GRIDLOPS_INSTANTIATE(T) template MethodPtr<T> make_method_of<Solver::lsmr>(const SolverCall<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
