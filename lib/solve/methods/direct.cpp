// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "gridlops/solve/spectral_factor.hpp"
#include "solve/column_blocks.hpp"
#include "solve/methods/gradient_method.hpp"
#include "solve/methods/method_of.hpp"

namespace gridlops {

namespace {

/// Solves with a factor of AᴴA + D²I, and corrects what rounding left by conjugate gradients that the factor
/// preconditions, M = (AᴴA + D²I)⁻¹ (Björck: Numerical methods for least squares problems, 1996, §7.4):
///
///   z = M s    γ = sᴴz    p = z + (γ/γ₋) p    α = γ/(‖A p‖² + D²‖p‖²)
///   x += α p    r −= α A p    s = Aᴴ r − D² x
///
/// In the first iteration p = M Aᴴb is the solution but for rounding, and α = 1 but for rounding, too. It is
/// then taken to be 1, so that r = b − A p is the residual of x = p by its definition, and so is s: a column
/// that is solved by then needs no more products.
///
/// If A has fewer rows than columns, x = Aᴴ y with (AAᴴ + D²I) y = b, and the factor is that of AAᴴ + D²I:
/// u = r − D² y takes the place of s in z and γ, and Aᴴ p that of p in x. Without damping, x − x₀ is then the
/// shortest correction of a guess x₀; with damping a guess means nothing.
///
/// If columns have dampings of their own, a SpectralFactor serves them all.
template <Scalar T>
class Direct final : public GradientMethod<T> {
 public:
  explicit Direct(const SolverCall<T>& call)
      : GradientMethod<T>(call.A, traits_of(call.solver)),
        of_data_(call.A.rows() < call.A.cols()),
        damp_(call.options.damp),
        variances_(call.operands.variances) {
    require<UsageError>(
        variances_ == nullptr || !of_data_,
        "direct: variances are for an A with at least as many rows as columns, and this one is ",
        call.A.rows(), " x ", call.A.cols(), "; lsqr estimates them");
    if (call.operands.factor == nullptr) return;
    take(call.operands.factor);
    const FactorFacts& facts = factor_->facts();
    for (const double damp : damp_.values())
      require<UsageError>(spectrum_ != nullptr ? facts.damp <= damp : facts.damp == damp,
                          "direct: the factor has ", spectrum_ != nullptr ? "dampings from " : "the damping ",
                          facts.damp, spectrum_ != nullptr ? " on" : "", ", but the problem has ", damp);
    require<UsageError>(variances_ == nullptr || spectrum_ != nullptr,
                        "direct: variances need a factor of spectral_factor()");
    require<ShapeError>(factor_->domain() == space() && facts.of_data == of_data_,
                        "direct: the factor belongs to another operator than this one of ", call.A.rows(),
                        " x ", call.A.cols());
  }

  void complete(SolveOptions&) override {
    make_factor();
    if (variances_ != nullptr) find_variances();
  }

  void describe(MethodState<T>& state) override {
    state.solution(x);
    state.vector("r", r, A.range());
    state.vector("s", s, A.domain());
    state.vector("p", p, space());
    if (of_data_) state.vector("y", y, A.range());
    state.scratch(q, A.range());
    state.scratch(z, space());
    if (of_data_) state.scratch(Ahp, A.domain());
    state.scalars(gamma);
    state.scalars(by_definition_);
    state.scalars(starts_from_zero_);
    for (ColumnScalars* const norm2 : {&rr_, &ss_, &xx_}) state.scalars(*norm2);
  }

  void start(ColumnRun<T>& run) override {
    const bool from_zero = run.begins_from_data();
    if (of_data_) {
      if (!from_zero) leave_out_guesses(run);
      y.set_zero();
    }
    this->begin(run);
    restart(run);
    run.raise_operator_norms(
        ColumnScalars(gamma.size(), std::ldexp(factor_->facts().norm, run.operator_power())));
    const auto [ss, rr, xx] = run.sum(norm2(s), norm2(r), norm2(x));
    keep(ss, rr, xx);
    by_definition_ = starts_from_zero_ = ColumnScalars(gamma.size(), from_zero ? 1 : 0);
  }

  void iterate(ColumnRun<T>& run) override {
    const ColumnFactors D2 = run.squared_damping();
    const ColumnScalars old = gamma;
    gamma = precondition(run);
    if (run.ends()) return;
    update(xpby(z, ratio(gamma, old), p));  // p = z + (γ/γ₋) p
    const DistMatrix<T>& w = as_model(p);
    A.apply(1, w, 0, q);
    const auto [qq, ww, pp] = run.sum(norm2(q), norm2(w), norm2(p));
    run.raise_operator_norms(sqrt(ratio(qq, ww)));  // ‖A‖ ≥ ‖A w‖/‖w‖
    ColumnScalars alpha = run.steps(gamma, (of_data_ ? ww : qq) + D2 * pp);
    note_whole_steps(alpha);
    update(axpy(alpha, w, x), axpy(-alpha, q, r));  // x += α w, r −= α A w
    if (of_data_) y += alpha * p;
    compute_gradient(run);
    if (factor_->facts().by_qr && largest(starts_from_zero_) == 1) correct(run, alpha);
    starts_from_zero_ = ColumnScalars(alpha.size());
    const auto [ss, rr, xx] = run.sum(norm2(s), norm2(r), norm2(x));
    keep(ss, rr, xx);
    run.set_norms(
        {.tested = sqrt(ss), .residual = sqrt(rr), .x = sqrt(xx), .rounding = truncated_gradient(run, rr)});
  }

  TrueNorms true_norms(ColumnRun<T>& run) override {
    const auto [xx] = run.sum(norm2(x));
    bool are_known = true;
    for (Index k = 0; k < xx.size(); ++k) are_known = are_known && by_definition_[k] == 1 && xx[k] == xx_[k];
    TrueNorms norms =
        are_known ? TrueNorms{.residual = sqrt(rr_), .normal = sqrt(ss_), .tested = sqrt(ss_), .x = sqrt(xx_)}
                  : GradientMethod<T>::true_norms(run);
    norms.rounding = truncated_gradient(run, norms.residual * norms.residual);
    return norms;
  }

  void restart(ColumnRun<T>&) override {
    gamma = by_definition_ = starts_from_zero_ = ColumnScalars(gamma.size());
    p.set_zero();
  }

  ColumnScalars residual_gap(ColumnRun<T>& run) override { return this->gap_of_residual(run, q); }

 private:
  using GradientMethod<T>::A, GradientMethod<T>::x, GradientMethod<T>::r, GradientMethod<T>::s,
      GradientMethod<T>::gamma;

  /// That of the factor.
  const Space& space() const { return of_data_ ? A.range() : A.domain(); }

  /// z = M s, or M u. Returns sᴴz, or uᴴz.
  ColumnScalars precondition(ColumnRun<T>& run) {
    if (!of_data_) return apply_inverse(run, s);
    copy(r, q);
    q -= run.squared_damping() * y;
    return apply_inverse(run, q);
  }
  /// z = M u. The factor is of A, but the method's A is 2^power times that. Half of 2^(−2·power) multiplies
  /// u, and half the result, so that none leaves the range of T. Returns uᴴz.
  ColumnScalars apply_inverse(ColumnRun<T>& run, DistMatrix<T>& u) {
    if (spectrum_ != nullptr) {
      const ColumnScalars D2 = run.squared_damping() * ColumnScalars(run.active_count(), 1);
      spectrum_->apply_damped(T(1), u, D2.values(), run.operator_power(), z);
      return run.sum(dot(u, z))[0];
    }
    const double half = std::ldexp(1.0, -run.operator_power());
    if (half != 1) u *= half;
    factor_->apply(to_scalar<T>(half), u, T(0), z);
    if (half != 1) u *= 1 / half;
    return run.sum(dot(u, z))[0];
  }

  /// Unless one was given.
  void make_factor() {
    if (factor_ != nullptr) return;
    const std::vector<double>& damps = damp_.values();
    if (damp_.is_one() && variances_ == nullptr) {
      own_factor_ = factor<T>(this->op(), damps.front());
    } else {
      own_factor_ =
          spectral_factor<T>(this->op(), damps.empty() ? 0 : *std::min_element(damps.begin(), damps.end()));
    }
    take(own_factor_.get());
  }
  void take(const Factor<T>* factor) {
    factor_ = factor;
    spectrum_ = dynamic_cast<const SpectralFactor<T>*>(factor);
  }
  void find_variances() {
    constexpr double most = 0.01;
    for (const double damp : damp_.values())
      require<UsageError>(spectrum_->relative_rounding(damp) <= most, "direct: variances at the damping ",
                          damp, " are hidden by rounding of AᴴA, which is ",
                          spectrum_->relative_rounding(damp),
                          " of the smallest of its eigenvalues, and may be ", most,
                          "; only block and stationary-a give rows of A that show them");
    attempt(variances_->grid()->comm(), [&] { spectrum_->diagonal(damp_, *variances_); });
  }
  /// x = 0 in columns with damping, whatever it was.
  void leave_out_guesses(const ColumnRun<T>& run) {
    for (Index k = 0; k < run.active_count(); ++k)
      if (damp_[run.right_hand_side(k)] > 0)
        x.grid()->backend()->template kernels<T>().fill(T(0), column_block(x, k));
  }

  /// A direction in models: this one, or Aᴴ times it if it is one of data.
  const DistMatrix<T>& as_model(const DistMatrix<T>& direction) {
    if (!of_data_) return direction;
    A.apply_adjoint(1, direction, 0, Ahp);
    return Ahp;
  }
  /// s = Aᴴ r − D² x.
  void compute_gradient(ColumnRun<T>& run) {
    A.apply_adjoint(1, r, 0, s);
    s -= run.squared_damping() * x;
  }

  /// The most that singular values which are rounding of A leave of the gradient, and twice as much for
  /// rounding: ‖Σ₀Uᴴr‖ ≤ ‖Σ₀‖‖r‖. No iteration with this factor takes it away. Only QR tells them; those that
  /// AAᴴ hides may determine x.
  ColumnScalars truncated_gradient(const ColumnRun<T>& run, const ColumnScalars& rr) const {
    if (!factor_->facts().by_qr) return ColumnScalars(rr.size());
    const double most = 2 * std::ldexp(factor_->facts().truncated, run.operator_power());
    return sqrt(rr) * ColumnScalars(rr.size(), most);
  }

  /// x += M s, or Aᴴ M u, so that the first iteration solves the corrected seminormal equations, whose x is
  /// about as accurate as that of QR with Q (Björck: Stability analysis of the method of seminormal equations
  /// for linear least squares problems, Linear Algebra Appl. 88/89, 1987). Directions begin anew.
  void correct(ColumnRun<T>& run, const ColumnScalars& steps) {
    precondition(run);
    z *= ratio(steps, steps);  // columns that have ended stay as they are
    const DistMatrix<T>& w = as_model(z);
    x += w;
    if (of_data_) y += z;
    A.apply(-1, w, 1, r);
    compute_gradient(run);
    gamma = by_definition_ = ColumnScalars(gamma.size());
  }

  /// Notes which columns have r and s by their definitions after this step: those that take all of their
  /// first direction, from x = 0.
  void note_whole_steps(ColumnScalars& alpha) {
    const double half_the_digits = std::sqrt(static_cast<double>(std::numeric_limits<Real<T>>::epsilon()));
    for (Index k = 0; k < alpha.size(); ++k) {
      if (alpha[k] == 0) continue;  // the column ends here, unchanged
      const bool is_whole = starts_from_zero_[k] == 1 && std::abs(alpha[k] - 1) <= half_the_digits;
      if (is_whole) alpha[k] = 1;
      by_definition_[k] = is_whole ? 1 : 0;
    }
  }
  void keep(const ColumnScalars& ss, const ColumnScalars& rr, const ColumnScalars& xx) {
    ss_ = ss;
    rr_ = rr;
    xx_ = xx;
  }

  const bool of_data_;
  const PerColumn damp_;
  DistMatrix<T>* const variances_;
  const Factor<T>* factor_ = nullptr;
  const SpectralFactor<T>* spectrum_ = nullptr;  // the factor, if it serves all dampings
  std::shared_ptr<const Factor<T>> own_factor_;
  DistMatrix<T> p, q, z, y, Ahp;
  ColumnScalars starts_from_zero_;  // 1 before the first iteration, if x is 0, else 0
  ColumnScalars by_definition_;  // 1 where the norms below are those of b − Ax and of its gradient, else 0
  ColumnScalars rr_, ss_, xx_;   // ‖r‖², ‖s‖², ‖x‖²
};

}  // namespace

template <>
struct MethodOf<Solver::direct> {
  template <Scalar T>
  using Type = Direct<T>;
};

#define GRIDLOPS_INSTANTIATE(T) template MethodPtr<T> make_method_of<Solver::direct>(const SolverCall<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
