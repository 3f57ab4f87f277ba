// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/refined_solver.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "ops/operator/library_operator.hpp"
#include "solve/batches.hpp"
#include "solve/methods/gradient_method.hpp"
#include "solve/methods/methods.hpp"
#include "solve/regularised/refinement_gain.hpp"

namespace gridlops {

namespace {

template <Scalar T>
Index products_of(const LinearOperator<T>& A) {
  return A.activity().forward_applications + A.activity().adjoint_applications;
}

/// Conjugate gradients on (AᴴA + D²I) x = Aᴴb for many right-hand sides at once, with a preconditioner that
/// differs from step to step (Golub, Ye 1999; Notay 2000). p is made conjugate to the last direction by a
/// product, whatever z is, and q = A p:
///
///   z ≈ (ÃᴴÃ + D²I)⁻¹ s    w = A z    β = −(qᴴw + D² pᴴz)/δ    p = z + β p    q = w + β q
///   δ = ‖q‖² + D²‖p‖²    α = sᴴz/δ    x += α p    r −= α q    s = Aᴴ r − D² x
///
/// β and α are real, as if complex vectors were real ones of twice the length.
template <Scalar T>
class Refinement final : public GradientMethod<T> {
 public:
  Refinement(const LinearOperator<T>& op, const LinearOperator<T>& approximation, Index columns,
             const RefinedOptions& options)
      : GradientMethod<T>(op, traits(options)), M(approximation), options_(options), columns_(at(columns)) {}

  const std::vector<RefinedColumn>& columns() const { return columns_; }
  Index inner_products() const { return inner_products_; }
  /// The products with A that an approximation made of A takes for its own.
  Index inner_products_with_A() const { return inner_products_with_A_; }

  /// Ã must be scaled with A.
  void scale_operator(int power, const Partition& columns) override {
    A.set_power(power, columns);
    M.set_power(power, columns);
  }

  void describe(MethodState<T>& state) override {
    state.solution(x);
    state.vector("r", r, A.range());
    state.vector("q", q, A.range());
    state.vector("p", p, A.domain());
    state.vector("s", s, A.domain());
    state.scratch(w, A.range());
    for (DistMatrix<T>* in_domain : {&z, &d, &g}) state.scratch(*in_domain, A.domain());
    for (ColumnScalars* values : {&gamma, &delta}) state.scalars(*values);
    gain_.describe(state);
  }

  /// The memory that this needs on this rank for the columns of a batch.
  SolveBytes bytes(const Partition& columns) {
    const ProcessGrid& grid = *A.domain().grid;
    MethodState<T> state(A.domain());
    describe(state);
    SolveBytes bytes{.vectors =
                         state.elements_at(grid.my_row(), grid.my_col(), A.range().local_columns(columns)) *
                         Index{sizeof(T)}};
    const LinearOperator<T>&original = A.unscaled(), &approximation = M.unscaled();
    KeptBytes kept;
    for (const LinearOperator<T>* op : {&original, &approximation}) {
      op->add_kept_bytes(kept, columns);
      for (const ProductKind kind : {ProductKind::forward, ProductKind::adjoint})
        bytes.products = std::max(bytes.products, op->scratch_bytes(kind, columns));
    }
    bytes.operators = kept.total();
    return bytes;
  }

  void start(ColumnRun<T>& run) override {
    this->begin(run);
    forget_directions();
    gain_.begin(run.active_count());
  }

  void iterate(ColumnRun<T>& run) override {
    const Index before = products_of(A.unscaled());
    precondition(run);  // z ≈ (ÃᴴÃ + D²I)⁻¹ s
    inner_products_with_A_ += products_of(A.unscaled()) - before;
    if (run.ends()) return;
    A.apply(1, z, 0, w);
    const ColumnFactors D2 = run.squared_damping();
    const auto [qw, pz, sz] = run.sum(dot(q, w), dot(p, z), dot(s, z));
    const ColumnScalars beta = -ratio(qw + D2 * pz, delta);  // 0 in the first step
    update(xpby(z, beta, p), xpby(w, beta, q));
    const auto [qq, pp] = run.sum(norm2(q), norm2(p));
    run.raise_operator_norms(sqrt(ratio(qq, pp)));  // ‖A‖ ≥ ‖q‖/‖p‖
    delta = qq + D2 * pp;
    const ColumnScalars alpha = run.steps(sz, delta);
    update(axpy(alpha, p, x), axpy(-alpha, q, r));
    A.apply_adjoint(1, r, 0, s);
    s -= D2 * x;
    const auto [ss, rr, xx] = run.sum(norm2(s), norm2(r), norm2(x));
    gamma = ss;
    run.set_norms({.tested = sqrt(ss), .residual = sqrt(rr), .x = sqrt(xx)});
    gain_.add_step(alpha * sz);
    refuse_columns(run);
  }

  TrueNorms true_norms(ColumnRun<T>& run) override {
    for (Index k = 0; k < run.active_count(); ++k) {
      RefinedColumn& column = columns_[at(run.right_hand_side(k))];
      const RefinedColumn before = column;
      column = gain_.account(k, run.column(k).tolerance);
      column.needed_contraction = before.needed_contraction;
      column.is_refused = before.is_refused;
    }
    return GradientMethod<T>::true_norms(run);
  }

  void restart(ColumnRun<T>&) override { forget_directions(); }

  ColumnScalars residual_gap(ColumnRun<T>& run) override { return this->gap_of_residual(run, w); }

 private:
  using GradientMethod<T>::A, GradientMethod<T>::x, GradientMethod<T>::r, GradientMethod<T>::s,
      GradientMethod<T>::gamma;

  static MethodTraits traits(const RefinedOptions& options) {
    return {.name = "refined-cgls",
            .test = ToleranceTest::gradient,
            .features = Feature::damping | Feature::damping_per_column | Feature::error_bound,
            .parameters = message("at most ", options.inner_iterations, " inner iterations, costs ",
                                  options.cost_of_A, " and ", options.cost_of_approximation)};
  }

  void forget_directions() {
    p.set_zero();
    q.set_zero();
    delta = ColumnScalars(gamma.size());
  }

  /// Conjugate gradients on (ÃᴴÃ + D²I) z = s, from z = 0, with the gradient g = s − (ÃᴴÃ + D²I) z updated,
  /// so that the vector of data w is scratch. Columns that have reached their tolerance take no more steps:
  ///
  ///   w = Ã d    α = ‖g‖²/(‖w‖² + D²‖d‖²)    z += α d    g −= α (Ãᴴw + D² d)    d = g + (‖g₊‖²/‖g‖²) d
  void precondition(ColumnRun<T>& run) {
    z.set_zero();
    copy(s, g);
    copy(s, d);
    const ColumnFactors D2 = run.squared_damping();
    const ColumnScalars goal = inner_goals(run);
    ColumnScalars gg = gamma;
    gain_.begin_inner(run.active_count());
    for (Index step = 0; step < options_.inner_iterations; ++step) {
      M.apply(1, d, 0, w);
      ++inner_products_;
      const auto [ww, dd] = run.sum(norm2(w), norm2(d));
      if (run.ends()) return;
      ColumnScalars alpha = ratio(gg, ww + D2 * dd);
      for (Index k = 0; k < alpha.size(); ++k)
        if (!(std::sqrt(gg[k]) > goal[k]) || !std::isfinite(static_cast<Real<T>>(alpha[k]))) alpha[k] = 0;
      update(axpy(alpha, d, z));
      w *= alpha;
      M.apply_adjoint(-1, w, 1, g);
      g -= (alpha * D2) * d;
      ++inner_products_;
      const ColumnScalars next = run.sum(norm2(g))[0];
      update(xpby(g, ratio(next, gg), d));
      gg = next;
      gain_.count_inner(alpha);
      const auto goes_on = [&](Index k) { return alpha[k] > 0 && std::sqrt(gg[k]) > goal[k]; };
      if (!any_column(alpha.size(), goes_on)) break;
    }
    gain_.end_inner(gamma, gg);
  }

  template <class Test>
  static bool any_column(Index columns, const Test& test) {
    for (Index k = 0; k < columns; ++k)
      if (test(k)) return true;
    return false;
  }

  /// The norms of g at which inner iterations end.
  ColumnScalars inner_goals(ColumnRun<T>& run) const {
    ColumnScalars goal = gain_.inner_tolerances() * sqrt(gamma);
    for (Index k = 0; k < goal.size(); ++k)
      goal[k] = std::max(goal[k], 0.7 * run.column(k).tolerance * run.column(k).reference);
    return goal;
  }

  /// Ends columns after this step if the approximation does not save them anything.
  void refuse_columns(ColumnRun<T>& run) {
    if (options_.cost_of_A == 0) return;
    for (Index k = 0; k < run.active_count(); ++k) {
      ColumnState& column = run.column(k);
      RefinedColumn& account = columns_[at(run.right_hand_side(k))];
      account = gain_.account(k, column.tolerance);
      const double goal = column.tolerance * column.reference,
                   left = column.tested_norm > goal ? goal / column.tested_norm : 1;
      account.needed_contraction = gain_.needed_contraction(k, options_, column.tolerance, left);
      account.is_refused = !column.reason && account.contraction > account.needed_contraction;
      if (!account.is_refused) continue;
      column.reason = StopReason::user_stop;
      ++column.iterations;  // the run counts those of columns that go on
    }
  }

  ScaledOperator<T> M;
  const RefinedOptions options_;
  DistMatrix<T> p, q, w, z, d, g;
  ColumnScalars delta;
  RefinementGain gain_;
  std::vector<RefinedColumn> columns_;
  Index inner_products_ = 0, inner_products_with_A_ = 0;
};

void check(const RefinedOptions& options) {
  require<UsageError>(options.inner_iterations >= 1, "solve_refined: ", options.inner_iterations,
                      " inner iterations are impossible; there must be at least one");
  for (const double cost : {options.cost_of_A, options.cost_of_approximation})
    require<UsageError>(cost >= 0 && std::isfinite(cost), "solve_refined: a product costs ", cost,
                        "; it must be a finite number ≥ 0");
  require<UsageError>((options.cost_of_A > 0) == (options.cost_of_approximation > 0),
                      "solve_refined: a product with A costs ", options.cost_of_A,
                      ", and one with its approximation ", options.cost_of_approximation,
                      "; give both, or neither");
}

}  // namespace

template <Scalar T>
RefinedReport solve_refined(const LinearOperator<T>& A, const LinearOperator<T>& approximation,
                            const ConstDistMatrix<T>& B, DistMatrix<T>& X, const RefinedOptions& options) {
  Refinement<T>* refinement = nullptr;
  const auto make = [&](Agreement& agreement) -> MethodPtr<T> {
    agreement.on("the approximation", approximation.rows(), " x ", approximation.cols());
    check(options);
    require<ShapeError>(approximation.domain() == A.domain() && approximation.range() == A.range(),
                        "solve_refined: an approximation must map between the same spaces as A, which is ",
                        A.rows(), " x ", A.cols(), ", layouts included; this one is ", approximation.rows(),
                        " x ", approximation.cols());
    auto made = std::make_unique<Refinement<T>>(A, approximation, B.cols(), options);
    refinement = made.get();
    return made;
  };
  SolveOptions common = options.common;
  const MethodPtr<T> method = begin_solve<T>(make, B, X, common);
  const Index before = products_of(A);
  RefinedReport report{.solve = solve_columns(*method, B, X, common)};
  if (!B.grid()->is_member()) return report;
  report.columns = refinement->columns();
  // A refused column may have been solved by its last step.
  for (std::size_t j = 0; j < report.columns.size(); ++j)
    report.columns[j].is_refused =
        report.columns[j].is_refused && report.solve.columns[j].reason == StopReason::user_stop;
  report.products_with_approximation = refinement->inner_products();
  report.products_with_A = products_of(A) - before - refinement->inner_products_with_A();
  report.refusal = refusal(report.columns);
  return report;
}

template <Scalar T>
double difference_norm(OperatorPtr<T> A, OperatorPtr<T> approximation, int steps, std::uint64_t seed) {
  return estimate_norm(*sum(std::move(A), scale(T(-1), std::move(approximation))), steps, seed);
}

template <Scalar T>
SolveBytes refined_bytes(const LinearOperator<T>& A, const LinearOperator<T>& approximation, Index nrhs,
                         const RefinedOptions& options) {
  if (!A.domain().grid->is_member()) return {};
  return Refinement<T>(A, approximation, nrhs, options)
      .bytes(first_batch(A.range().layout(nrhs).cols.partition, options.common.batch));
}

#define GRIDLOPS_INSTANTIATE(T)                                                                           \
  template RefinedReport solve_refined(const LinearOperator<T>&, const LinearOperator<T>&,                \
                                       const ConstDistMatrix<T>&, DistMatrix<T>&, const RefinedOptions&); \
  template double difference_norm(OperatorPtr<T>, OperatorPtr<T>, int, std::uint64_t);                    \
  template SolveBytes refined_bytes(const LinearOperator<T>&, const LinearOperator<T>&, Index,            \
                                    const RefinedOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
