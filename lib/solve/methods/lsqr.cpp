// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include "solve/column_blocks.hpp"
#include "solve/methods/bidiagonal_method.hpp"
#include "solve/methods/method_of.hpp"

namespace gridlops {

namespace {

/// LSQR for many right-hand sides at once, each with its own scalars, in the notation of Paige and Saunders
/// (1982, §4, with the estimates of §5):
///
///   βu = Av − αu    αv = Aᴴu − βv    ρ, θ, φ from a rotation    x += (φ/ρ) w    w = v − (θ/ρ) w
///
/// R, of ρ and θ, has BᴴB = RᴴR. That is the tridiagonal matrix of conjugate gradients on the normal
/// equations, so these have the steps 1/ρ², and squared gradients with the ratios θ²/ρ².
template <Scalar T>
class Lsqr final : public BidiagonalMethod<T> {
 public:
  explicit Lsqr(const SolverCall<T>& call)
      : BidiagonalMethod<T>(call), all_variances(call.operands.variances) {}

  void describe(MethodState<T>& state) override {
    BidiagonalMethod<T>::describe(state);
    state.vector("w", w, A.domain());
    for (ColumnScalars* values : {&rho_bar, &phi_bar, &norm2_inverse}) state.scalars(*values);
    state.number(adds_variances);
    if (all_variances != nullptr) state.result("variances", variances, *all_variances);
  }

  void start(ColumnRun<T>& run) override {
    adds_variances = true;
    BidiagonalMethod<T>::start(run);
    run.set_norms({.damped_A = alpha});
  }

  TrueNorms true_norms(ColumnRun<T>& run) override {
    update(xpby(v, 0, w));
    w *= rho_bar * phi_bar;  // the gradient of the recurrence
    this->compute_gradient(run);
    w -= v;
    const auto [rr, ss, xx, drift] = run.sum(norm2(u), norm2(v), norm2(x), norm2(w));
    return {.residual = sqrt(rr),
            .normal = sqrt(ss),
            .tested = sqrt(ss),
            .x = sqrt(xx),
            .gradient_drift = sqrt(drift)};
  }

  /// The restarted space contains directions that have already been counted.
  void restart(ColumnRun<T>& run) override {
    adds_variances = false;
    BidiagonalMethod<T>::restart(run);
  }

  void iterate(ColumnRun<T>& run) override {
    const auto [beta, ww] = this->next_u(run, norm2(w));  // βu = Av − αu
    if (run.ends()) return;
    this->count_direction(alpha, beta);
    const Rotations next(rho_bar, beta);
    const ColumnScalars& rho = next.r;
    const ColumnScalars phi = next.c * phi_bar;
    this->next_v(run, beta, axpy(ratio(phi, rho), w, x));  // x = x + (φ/ρ) w and αv = Aᴴu − βv
    const auto [vv, xx] = run.sum(norm2(v), norm2(x));
    alpha = sqrt(vv);
    phi_bar = next.s * phi_bar;
    rho_bar = -next.c * alpha;
    if (all_variances != nullptr && adds_variances) add_variances(rho, run.operator_power());
    const ColumnScalars theta = next.s * alpha, rho2 = rho * rho;
    // v has unit norm, and w = v − (θ/ρ) w.
    update(scale(ratio(1, alpha), v), xpby(v, -ratio(theta, rho), w));
    norm2_inverse += ratio(ww, rho2);  // Σ ‖w/ρ‖²
    run.follow_quadrature(ratio(1, rho2), ratio(theta * theta, rho2));
    const ColumnScalars damped_norm = this->damped_norm(), x_norm = sqrt(xx);
    run.raise_operator_norms(this->norm_of_A(run));
    run.raise_damped_operator_norms(damped_norm);
    run.set_norms({.tested = alpha * abs(next.s * phi),
                   .residual = this->undamped(run, phi_bar, x_norm),
                   .x = x_norm,
                   .condition = damped_norm * sqrt(norm2_inverse)});
  }

 protected:
  void begin_recurrence(const ColumnScalars& beta) override {
    phi_bar = beta;
    rho_bar = alpha;
    norm2_inverse = ColumnScalars(alpha.size());
    copy(v, w);
  }

 private:
  using BidiagonalMethod<T>::A, BidiagonalMethod<T>::x, BidiagonalMethod<T>::u, BidiagonalMethod<T>::v,
      BidiagonalMethod<T>::alpha;

  /// Adds |w/ρ|² to the variances: the vectors w/ρ are the columns of V R⁻¹, and (AᴴA)⁻¹ = V R⁻¹ R⁻ᴴ Vᴴ. A is
  /// multiplied by 2^power.
  void add_variances(const ColumnScalars& rho, int power) {
    const Kernels<T>& kernels = w.grid()->backend()->template kernels<T>();
    for (Index k = 0; k < rho.size(); ++k) {
      if (rho[k] == 0) continue;
      const MatrixView<T> w_k = column_block(w, k);
      kernels.diagonal_multiply(to_scalar<T>(std::ldexp(1 / (rho[k] * rho[k]), 2 * power)), w_k.data, true,
                                w_k, T(1), column_block(variances, k));
    }
  }

  DistMatrix<T>* const all_variances;
  DistMatrix<T> w, variances;
  ColumnScalars rho_bar, phi_bar;
  ColumnScalars norm2_inverse;  // the squared Frobenius norm of the bidiagonal matrix's pseudo-inverse
  bool adds_variances = true;
};

}  // namespace

template <>
struct MethodOf<Solver::lsqr> {
  template <Scalar T>
  using Type = Lsqr<T>;
};

#define GRIDLOPS_INSTANTIATE(T) template MethodPtr<T> make_method_of<Solver::lsqr>(const SolverCall<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
