// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "solve/methods/hermitian_method.hpp"
#include "solve/methods/method_of.hpp"

namespace gridlops {

namespace {

/// Conjugate gradients on A + D²I for many right-hand sides at once, each with its own scalars (Hestenes,
/// Stiefel 1952), and preconditioned by M (Golub, Van Loan: Matrix Computations, §11.5). Without a
/// preconditioner M is I:
///
///   q = (A + D²I) p    α = γ/pᴴq    x += α p    r −= α q    z = M r    p = z + (rᴴz/γ) p    γ = rᴴz
template <Scalar T>
class Cg final : public HermitianMethod<T> {
 public:
  explicit Cg(const SolverCall<T>& call) : HermitianMethod<T>(call, traits_of(call.solver)) {
    if (call.operands.preconditioner != nullptr) M.emplace(*call.operands.preconditioner);
    if (M) require_preconditioner(M->unscaled(), call.A);
  }

  /// M ≈ A⁻¹ must be scaled with A.
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
      this->compute_residual(run, x, r);
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
    // The start has already computed the first product, to find out how large A is.
    if (std::exchange(columns_of_q, -1) != run.active_count()) multiply_direction(run);
    const auto [qq, pp, pq] = run.sum(norm2(q), norm2(p), dot(p, q));
    if (run.ends()) return;
    run.raise_operator_norms(sqrt(ratio(qq, pp)));     // ‖A + D²I‖ ≥ ‖q‖/‖p‖
    const ColumnScalars alpha = run.steps(gamma, pq);  // α = γ/pᴴq
    update(axpy(alpha, p, x), axpy(-alpha, q, r));
    precondition();  // z = M r
    const auto [rr, xx, rz] = run.sum(norm2(r), norm2(x), dot(r, z()));
    if (!M) run.follow_quadrature(alpha, ratio(rr, gamma));
    update(xpby(z(), ratio(rz, gamma), p));  // p = z + (γ'/γ) p
    gamma = rz;
    run.set_norms({.tested = sqrt(rr), .residual = sqrt(rr), .x = sqrt(xx)});
  }

  TrueNorms true_norms(ColumnRun<T>& run) override { return this->norms_of(run, x, r, p, q); }

  void restart(ColumnRun<T>& run) override {
    precondition();
    gamma = run.sum(dot(r, z()))[0];
    copy(z(), p);
  }

  ColumnScalars residual_gap(ColumnRun<T>& run) override {
    this->compute_residual(run, x, q);
    q -= r;  // b − A x − D² x − r
    return sqrt(run.sum(norm2(q))[0]);
  }
  // r is orthogonal to the previous direction, so rᴴp = γ. If a fault changes either side, the error remains
  // the same fraction of γ from then on. With M, rounding adds up to √κ(M)·ε‖r‖‖p‖, because only in the norm
  // of M⁻¹ is every direction at least as long as its component along the previous one. A fraction of γ too
  // small to spoil a direction does not count as a gap.
  ColumnScalars direction_gap(ColumnRun<T>& run) override {
    const auto [rp, pp] = run.sum(dot(r, p), norm2(p));
    const double harmless = std::sqrt(static_cast<double>(std::numeric_limits<Real<T>>::epsilon()));
    return ratio(abs(rp - gamma) - harmless * gamma, sqrt(pp));
  }

 private:
  using HermitianMethod<T>::A;

  DistMatrix<T>& z() { return M ? Mr : r; }
  void precondition() {
    if (M) M->apply(1, r, 0, Mr);
  }
  /// q = (A + D²I) p.
  void multiply_direction(ColumnRun<T>& run) {
    A.apply(1, p, 0, q);
    q += run.squared_damping() * p;
  }

  std::optional<ScaledOperator<T>> M;
  DistMatrix<T> x, r, p, q, Mr;
  ColumnScalars gamma;
  Index columns_of_q = -1;  // for the first iteration: how many columns of q are known
};

}  // namespace

template <>
struct MethodOf<Solver::cg> {
  template <Scalar T>
  using Type = Cg<T>;
};
template <>
struct MethodOf<Solver::pcg> {
  template <Scalar T>
  using Type = Cg<T>;
};

#define GRIDLOPS_INSTANTIATE(T)                                           \
  template MethodPtr<T> make_method_of<Solver::cg>(const SolverCall<T>&); \
  template MethodPtr<T> make_method_of<Solver::pcg>(const SolverCall<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
