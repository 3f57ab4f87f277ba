// SPDX-License-Identifier: BSD-3-Clause
#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "gridlops/error.hpp"
#include "solve/bidiagonal_method.hpp"
#include "solve/column_blocks.hpp"
#include "solve/damped_guess.hpp"
#include "solve/methods.hpp"

namespace gridlops {

namespace {

/// LSQR for many right-hand sides at once, with scalars of its own for each, in the names of Paige and
/// Saunders (1982, §4, with damping as in §5.5, and the estimates of §5):
///
///   βu = Av − αu    αv = Aᴴu − βv    ρ, θ, φ from rotations    x += (φ/ρ) w    w = v − (θ/ρ) w
template <Scalar T>
class Lsqr final : public BidiagonalMethod<T> {
 public:
  /// diagonals: the matrix that takes the variances, or null.
  Lsqr(const LinearOperator<T>& op, std::vector<Space> range_stack, const SolveOptions& options,
       DistMatrix<T>* diagonals)
      : BidiagonalMethod<T>(op, std::move(range_stack), options), all_variances(diagonals) {}

  const char* name() const override { return "lsqr"; }

  void describe(MethodState<T>& state) override {
    BidiagonalMethod<T>::describe(state);
    state.vector("w", w, A.domain());
    for (ColumnScalars* values : {&rho_bar, &phi_bar, &norm2_B, &norm2_inverse, &psi2})
      state.scalars(*values);
    if (all_variances != nullptr) state.result("variances", variances, *all_variances);
  }

  void start(ColumnRun<T>& run) override {
    phi_bar = this->begin(run);
    rho_bar = alpha;
    norm2_B = norm2_inverse = psi2 = ColumnScalars(alpha.size());
    copy(v, w);
  }

  void iterate(ColumnRun<T>& run) override {
    u *= -alpha;
    A.apply(1, v, 1, u);  // βu = Av − αu
    const auto [uu, ww] = run.sum(norm2(u), norm2(w));
    if (run.ends()) return;
    const ColumnFactors D = run.damping(), D2 = run.squared_damping();
    const ColumnScalars beta = normalise(u, uu);
    norm2_B += alpha * alpha + beta * beta + D2;
    const Rotations damping(rho_bar, D), next(damping.r, beta);  // D is eliminated first, then β
    const ColumnScalars& rho = next.r;
    const ColumnScalars phi = next.c * damping.c * phi_bar, psi = damping.s * phi_bar;
    x += ratio(phi, rho) * w;  // x = x + (φ/ρ) w
    v *= -beta;
    A.apply_adjoint(1, u, 1, v);  // αv = Aᴴu − βv
    const auto [vv, xx] = run.sum(norm2(v), norm2(x));
    alpha = normalise(v, vv);
    phi_bar = next.s * damping.c * phi_bar;
    rho_bar = -next.c * alpha;
    add_variances(rho);
    xpby(v, -ratio(next.s * alpha, rho), w);  // w = v − (θ/ρ) w
    norm2_inverse += ratio(ww, rho * rho);    // Σ ‖w/ρ‖²
    psi2 += psi * psi;
    const ColumnScalars norm_A = sqrt(norm2_B), rr = phi_bar * phi_bar + psi2 - D2 * xx;
    run.set_norms({.tested = alpha * abs(next.s * phi), .residual = root(rr), .x = sqrt(xx), .A = norm_A});
    run.set_norms({.condition = norm_A * sqrt(norm2_inverse)});
  }

 private:
  using BidiagonalMethod<T>::A, BidiagonalMethod<T>::x, BidiagonalMethod<T>::u, BidiagonalMethod<T>::v,
      BidiagonalMethod<T>::alpha;

  /// Adds |w/ρ|² to the variances: the vectors w/ρ are the columns of V R⁻¹, and (AᴴA)⁻¹ = V R⁻¹ R⁻ᴴ Vᴴ.
  void add_variances(const ColumnScalars& rho) {
    if (all_variances == nullptr) return;
    const Kernels<T>& kernels = w.grid()->backend()->template kernels<T>();
    for (Index k = 0; k < rho.size(); ++k) {
      if (rho[k] == 0) continue;
      const MatrixView<T> w_k = column_block(w, k);
      kernels.diagonal_multiply(to_scalar<T>(1 / (rho[k] * rho[k])), w_k.data, true, w_k, T(1),
                                column_block(variances, k));
    }
  }

  DistMatrix<T>* const all_variances;
  DistMatrix<T> w, variances;
  ColumnScalars rho_bar, phi_bar;
  // The squared Frobenius norms of the bidiagonal matrix and of its pseudo-inverse.
  ColumnScalars norm2_B, norm2_inverse;
  ColumnScalars psi2;  // what damping leaves in ‖r‖²
};

}  // namespace

template <Scalar T>
MethodPtr<T> make_lsqr(const LinearOperator<T>& A, std::vector<Space> range_stack,
                       const SolveOptions& options, DistMatrix<T>* variances) {
  return std::make_unique<Lsqr<T>>(A, std::move(range_stack), options, variances);
}

namespace {

template <Scalar T>
SolveReport solve_lsqr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                       DistMatrix<T>* variances, const SolveOptions& options) {
  return solve_with_damped_guess<T>(
      [&X, variances](const LinearOperator<T>& op, std::vector<Space> range_stack, const SolveOptions& how) {
        if (variances != nullptr) {
          require<ShapeError>(variances->grid() == X.grid() && variances->layout() == X.layout(),
                              "lsqr: variances are ", variances->layout().describe(),
                              ", but must lie as X does, which is ", X.layout().describe());
          variances->set_zero();
        }
        return make_lsqr(op, std::move(range_stack), how, variances);
      },
      A, B, X, options);
}

}  // namespace

template <Scalar T>
SolveReport lsqr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 const SolveOptions& options) {
  return solve_lsqr<T>(A, B, X, nullptr, options);
}

template <Scalar T>
SolveReport lsqr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 DistMatrix<T>& variances, const SolveOptions& options) {
  return solve_lsqr(A, B, X, &variances, options);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                      \
  template MethodPtr<T> make_lsqr(const LinearOperator<T>&, std::vector<Space>, const SolveOptions&, \
                                  DistMatrix<T>*);                                                   \
  template SolveReport lsqr(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&,     \
                            DistMatrix<T>&, const SolveOptions&);                                    \
  template SolveReport lsqr(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&,     \
                            const SolveOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
