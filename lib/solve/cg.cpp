// SPDX-License-Identifier: BSD-3-Clause
#include <limits>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "gridlops/error.hpp"
#include "solve/column_run.hpp"
#include "solve/methods.hpp"

namespace gridlops {

namespace {

/// Conjugate gradients on A + D²I for many right-hand sides at once, with scalars of its own for each
/// (Hestenes, Stiefel 1952), and preconditioned by M (Golub, Van Loan: Matrix Computations, §11.5). Without a
/// preconditioner M is I:
///
///   q = (A + D²I) p    α = γ/pᴴq    x += α p    r −= α q    z = M r    p = z + (rᴴz/γ) p    γ = rᴴz
template <Scalar T>
class Cg final : public ColumnMethod<T> {
 public:
  Cg(const LinearOperator<T>& op, const LinearOperator<T>* preconditioner) : A(op), M(preconditioner) {
    require<ShapeError>(
        A.domain() == A.range(), "conjugate gradients need an operator from a space to itself; this one is ",
        A.rows(), " x ", A.cols(),
        A.rows() == A.cols()
            ? ", and its models and data lie differently: multiply it with an identity() that redistributes"
            : ": use cgls() for least squares");
    require<ShapeError>(M == nullptr || (M->domain() == A.domain() && M->range() == A.domain()),
                        "a preconditioner must be an operator from the space of the ", A.rows(), " x ",
                        A.cols(), " operator to itself, layouts included; this one is ",
                        M == nullptr ? 0 : M->rows(), " x ", M == nullptr ? 0 : M->cols());
  }

  const char* name() const override { return M == nullptr ? "cg" : "pcg"; }
  const LinearOperator<T>& op() const override { return A; }

  void describe(MethodState<T>& state) override {
    state.solution(x);
    state.vector("r", r, A.range());
    state.vector("p", p, A.domain());
    state.scratch(q, A.range());
    if (M != nullptr) state.scratch(Mr, A.domain());
    state.scalars(gamma);
  }

  void start(ColumnRun<T>& run) override {
    copy(run.B(), r);
    precondition();
    auto sums = run.sum(norm2(r), norm2(x), dot(r, z()));
    auto& [rr, xx, rz] = sums;
    // The reference is the larger of the residuals of x = 0 and of x₀, both without damping.
    ColumnScalars reference = sqrt(rr);
    if (run.begins_from_guess()) {
      A.apply(-1, x, 1, r);
      precondition();
      sums = run.sum(norm2(r), norm2(x), dot(r, z()));
      reference = max(reference, sqrt(rr));
      if (run.is_damped()) {
        r -= run.squared_damping() * x;
        precondition();
        sums = run.sum(norm2(r), norm2(x), dot(r, z()));
      }
    }
    run.set_norms({.tested = sqrt(rr), .residual = sqrt(rr), .x = sqrt(xx), .reference = reference});
    copy(z(), p);
    gamma = rz;
  }

  void iterate(ColumnRun<T>& run) override {
    A.apply(1, p, 0, q);  // q = A p + D² p
    q += run.squared_damping() * p;
    const auto [qq, pp, pq] = run.sum(norm2(q), norm2(p), dot(p, q));
    if (run.ends()) return;
    run.raise_operator_norms(sqrt(ratio(qq, pp)));     // ‖A + D²I‖ ≥ ‖q‖/‖p‖
    const ColumnScalars alpha = run.steps(gamma, pq);  // α = γ/pᴴq
    x += alpha * p;
    r -= alpha * q;
    precondition();  // z = M r
    const auto [rr, xx, rz] = run.sum(norm2(r), norm2(x), dot(r, z()));
    xpby(z(), ratio(rz, gamma), p);  // p = z + (γ'/γ) p
    gamma = rz;
    run.set_norms({.tested = sqrt(rr), .residual = sqrt(rr), .x = sqrt(xx)});
  }

  TrueNorms true_norms(ColumnRun<T>& run) override {
    copy(run.B(), r);
    A.apply(-1, x, 1, r);
    A.apply_adjoint(1, r, 0, q);
    const ColumnFactors D2 = run.squared_damping();
    q -= D2 * x;
    copy(r, p);
    p -= D2 * x;  // the residual of the damped system
    const auto [rr, qq, pp, xx] = run.sum(norm2(r), norm2(q), norm2(p), norm2(x));
    gamma = pp;
    return {.residual = sqrt(rr), .normal = sqrt(qq), .tested = sqrt(pp), .x = sqrt(xx)};
  }

  void restart(ColumnRun<T>& run) override {
    copy(p, r);
    if (M == nullptr) return;
    precondition();
    gamma = run.sum(dot(r, Mr))[0];
    copy(Mr, p);
  }

  ColumnScalars residual_gap(ColumnRun<T>& run) override {
    run.copy_data(q);
    A.apply(-1, x, 1, q);
    q -= run.squared_damping() * x;
    q -= r;  // b − A x − D² x − r
    return sqrt(run.sum(norm2(q))[0]);
  }
  // r is orthogonal to the direction before, so rᴴp = γ. What a fault adds to either side stays the same part
  // of γ from then on. With M rounding adds up to √κ(M)·ε‖r‖‖p‖, because only in the norm of M⁻¹ no direction
  // is shorter than its part of the one before. A part of γ that is too small to spoil a direction is no gap.
  ColumnScalars direction_gap(ColumnRun<T>& run) override {
    const auto [rp, pp] = run.sum(dot(r, p), norm2(p));
    const double harmless = std::sqrt(static_cast<double>(std::numeric_limits<Real<T>>::epsilon()));
    return ratio(abs(rp - gamma) - harmless * gamma, sqrt(pp));
  }

  // The recurrence for r never stops falling, but the true residual stays at a few ε‖A‖‖x‖ (Greenbaum:
  // Estimating the attainable accuracy of recursively computed residual methods, SIAM J. Matrix Anal. Appl.
  // 18, 1997). ‖A‖ includes the damping here.
  bool at_rounding_level(const ColumnState& column) const override {
    const double unit = 10 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
    return column.residual_norm <= unit * column.operator_norm * column.x_norm;
  }

 private:
  DistMatrix<T>& z() { return M == nullptr ? r : Mr; }
  void precondition() {
    if (M != nullptr) M->apply(1, r, 0, Mr);
  }

  const LinearOperator<T>& A;
  const LinearOperator<T>* const M;
  DistMatrix<T> x, r, p, q, Mr;
  ColumnScalars gamma;
};

}  // namespace

template <Scalar T>
MethodPtr<T> make_cg(const LinearOperator<T>& A, const LinearOperator<T>* M) {
  return std::make_unique<Cg<T>>(A, M);
}

template <Scalar T>
SolveReport cg(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
               const SolveOptions& options) {
  return solve_by<T>([&] { return make_cg<T>(A, nullptr); }, B, X, options);
}

template <Scalar T>
SolveReport cg(const LinearOperator<T>& A, const LinearOperator<T>& M, const ConstDistMatrix<T>& B,
               DistMatrix<T>& X, const SolveOptions& options) {
  return solve_by<T>([&] { return make_cg(A, &M); }, B, X, options);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                          \
  template MethodPtr<T> make_cg(const LinearOperator<T>&, const LinearOperator<T>*);                     \
  template SolveReport cg(const LinearOperator<T>&, const LinearOperator<T>&, const ConstDistMatrix<T>&, \
                          DistMatrix<T>&, const SolveOptions&);                                          \
  template SolveReport cg(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&,           \
                          const SolveOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
