// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
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
  Cg(const LinearOperator<T>& op, const LinearOperator<T>* preconditioner) : ColumnMethod<T>(op) {
    if (preconditioner != nullptr) M.emplace(*preconditioner);
    require<ShapeError>(
        A.domain() == A.range(), "conjugate gradients need an operator from a space to itself; this one is ",
        A.rows(), " x ", A.cols(),
        A.rows() == A.cols()
            ? ", and its models and data lie differently: multiply it with an identity() that redistributes"
            : ": use cgls() for least squares");
    require<ShapeError>(!M || (M->domain() == A.domain() && M->range() == A.domain()),
                        "a preconditioner must be an operator from the space of the ", A.rows(), " x ",
                        A.cols(), " operator to itself, layouts included; this one is ", M ? M->rows() : 0,
                        " x ", M ? M->cols() : 0);
  }

  const char* name() const override { return M ? "pcg" : "cg"; }
  ToleranceTest test() const override { return ToleranceTest::residual; }
  /// M ≈ A⁻¹ follows A.
  void scale_operator(int power, const Partition& columns) override {
    A.set_power(power, columns);
    if (M) M->set_power(-power, columns);
  }

  void describe(MethodState<T>& state) override {
    state.solution(x);
    state.vector("r", r, A.range());
    state.vector("p", p, A.domain());
    state.scratch(q, A.range());
    if (M) state.scratch(Mr, A.domain());
    state.scalars(gamma);
  }

  void start(ColumnRun<T>& run) override {
    run.copy_data(r);
    ColumnScalars bb;
    if (!run.begins_from_data()) {
      bb = run.sum(norm2(r))[0];
      compute_residual(run);
    }
    precondition();
    copy(z(), p);
    multiply_direction(run);
    columns_of_q = run.active_count();
    const auto [rr, rz, xx, pp, qq] = run.sum(norm2(r), dot(r, z()), norm2(x), norm2(p), norm2(q));
    const ColumnScalars data = sqrt(run.begins_from_data() ? rr : bb);
    run.set_norms({.tested = sqrt(rr),
                   .residual = sqrt(rr),
                   .x = sqrt(xx),
                   .A = sqrt(ratio(qq, pp)),
                   .reference = data,
                   .data = data});
    gamma = rz;
  }

  void iterate(ColumnRun<T>& run) override {
    // The first product is made at the start, where it shows how large A is.
    if (std::exchange(columns_of_q, -1) != run.active_count()) multiply_direction(run);
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
    run.copy_right_hand_side(p);
    A.apply(-1, x, 1, p);
    A.apply_adjoint(1, p, 0, q);
    const ColumnFactors D2 = run.squared_damping();
    // Aᴴr is multiplied by 2^power, and D²x is not. If the power is negative, D²x is nothing beside Aᴴr.
    const int power = run.operator_power();
    std::vector<int> powers(at(run.active_count()), 0);
    for (Index k = 0; power > 0 && k < run.active_count(); ++k)
      if (run.column(k).damp > 0 && run.column(k).x_norm > 0) powers[at(k)] = -power;
    multiply_by_powers(q, powers);
    if (power >= 0) q -= D2 * x;
    copy(p, r);
    r -= D2 * x;  // the residual of the damped system
    const auto [undamped, qq, rr, xx] = run.sum(norm2(p), norm2(q), norm2(r), norm2(x));
    ColumnScalars normal = sqrt(qq);
    for (Index k = 0; k < normal.size(); ++k) normal[k] = std::ldexp(normal[k], -powers[at(k)]);
    return {.residual = sqrt(undamped), .normal = normal, .tested = sqrt(rr), .x = sqrt(xx)};
  }

  void restart(ColumnRun<T>& run) override {
    precondition();
    gamma = run.sum(dot(r, z()))[0];
    copy(z(), p);
  }

  ColumnScalars residual_gap(ColumnRun<T>& run) override {
    run.copy_right_hand_side(q);
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

 private:
  using ColumnMethod<T>::A;

  DistMatrix<T>& z() { return M ? Mr : r; }
  void precondition() {
    if (M) M->apply(1, r, 0, Mr);
  }
  /// q = A p + D² p.
  void multiply_direction(ColumnRun<T>& run) {
    A.apply(1, p, 0, q);
    q += run.squared_damping() * p;
  }
  /// r = b − A x − D² x.
  void compute_residual(ColumnRun<T>& run) {
    run.copy_right_hand_side(r);
    A.apply(-1, x, 1, r);
    r -= run.squared_damping() * x;
  }

  std::optional<ScaledOperator<T>> M;
  DistMatrix<T> x, r, p, q, Mr;
  ColumnScalars gamma;
  Index columns_of_q = -1;  // for the first iteration: of how many columns q is known
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
