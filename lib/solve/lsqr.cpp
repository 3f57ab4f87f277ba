// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <optional>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/error.hpp"
#include "solve/golub_kahan.hpp"

namespace gridlops {

namespace {

/// The scalars of one column, with the names of Paige and Saunders (1982, §4 and §5).
struct LsqrScalars {
  double rho = 0, rho_bar = 0, phi = 0, phi_bar = 0;
  Rotation next;
  double step = 0, w_factor = 0;  // x += step·w, then w = v + w_factor·w
  double old_alpha = 0;
  double norm_A_squared = 0;     // Frobenius, of the bidiagonal matrix so far, damping included
  double norm_pinv_squared = 0;  // Frobenius, of its pseudo-inverse: Σ ‖w/ρ‖²
  double damped_part = 0;        // Σ ψ²: what damping leaves in the residual
  double residual = 0, gradient = 0;

  void visit(StateArchive& archive) {
    archive.visit(rho_bar, phi_bar, step, w_factor, old_alpha, norm_A_squared, norm_pinv_squared, damped_part,
                  residual, gradient);
  }

  void begin(double alpha, double beta) {
    rho_bar = old_alpha = alpha;
    phi_bar = residual = beta;
    gradient = alpha * beta;
  }

  /// The step, which needs no α.
  void find_step(double beta, double damp) {
    const Rotation damping = Rotation::of(rho_bar, damp);
    const double psi = damping.s * phi_bar;
    phi_bar *= damping.c;
    next = Rotation::of(damping.r, beta);
    rho = next.r;
    phi = next.c * phi_bar;
    phi_bar *= next.s;
    step = rho > 0 ? phi / rho : 0;
    norm_A_squared += old_alpha * old_alpha + beta * beta + damp * damp;
    damped_part += psi * psi;
    residual = std::sqrt(phi_bar * phi_bar + damped_part);
  }

  void advance(double alpha, double w_norm_squared) {
    const double theta = next.s * alpha, tau = next.s * phi;
    rho_bar = -next.c * alpha;
    w_factor = rho > 0 ? -theta / rho : 0;
    norm_pinv_squared += rho > 0 ? w_norm_squared / (rho * rho) : 0;
    old_alpha = alpha;
    gradient = alpha * std::abs(tau);
  }
};

template <Scalar T>
class Lsqr final : public GolubKahan<T> {
 public:
  /// variances: may be null.
  Lsqr(const LinearOperator<T>& A, const SolveOptions& options, std::vector<Space> data_parts,
       DistMatrix<T>* variances = nullptr)
      : GolubKahan<T>(A, options, std::move(data_parts)), all_variances_(variances) {}

  const char* name() const override { return "lsqr"; }

  void prepare(ColumnRun<T>& run) override {
    if (all_variances_ != nullptr) variances_.emplace(run.in_batch(*all_variances_));
  }

  std::vector<NamedMatrix<T>> lasting(const Partition& columns) override {
    std::vector<NamedMatrix<T>> matrices = GolubKahan<T>::lasting(columns);
    if (variances_) {
      const std::vector<Index> first(static_cast<std::size_t>(columns.parts()), 0);
      matrices.push_back({"variances", variances_->column_slice(first, columns)});
    }
    return matrices;
  }
  /// The variances of batches that are through, as the others, belong to the state.
  std::vector<NamedMatrix<T>> shared() override {
    std::vector<NamedMatrix<T>> matrices;
    if (all_variances_ != nullptr)
      matrices.push_back(
          {"all_variances", {all_variances_->grid(), all_variances_->layout(), all_variances_->local()}});
    return matrices;
  }

 private:
  using typename GolubKahan<T>::Bidiagonal;
  using typename GolubKahan<T>::OwnVector;

  std::vector<OwnVector> own_vectors() override { return {{"w", &w_}}; }
  void visit_own(StateArchive& archive) override { archive.visit_list(scalars_); }

  void begin(ColumnRun<T>& run, const DistMatrix<T>& v, const std::vector<Bidiagonal>& first) override {
    DistMatrix<T> w = run.matrix(w_, this->A().domain());
    run.copy(v, w);
    scalars_.assign(first.size(), {});
    for (std::size_t j = 0; j < first.size(); ++j) scalars_[j].begin(first[j].alpha, first[j].beta);
  }

  void add_norms(ColumnRun<T>& run) override {
    run.sums().add_norms_squared(run.matrix(w_, this->A().domain()));
  }

  void begin_step(ColumnRun<T>& run, const std::vector<double>& beta) override {
    std::vector<double> steps;
    for (Index k = 0; k < run.active_count(); ++k) {
      LsqrScalars& scalars = scalars_[at(run.number(k))];
      scalars.find_step(beta[at(k)], this->damp());
      steps.push_back(scalars.step);
    }
    DistMatrix<T> x = run.x();
    run.axpy(steps, run.matrix(w_, this->A().domain()), x);
    run.sums().add_norms_squared(x);
  }

  void advance(ColumnRun<T>& run, const DistMatrix<T>& v, const std::vector<Bidiagonal>& now,
               const std::vector<double>& w_norms_squared) override {
    std::vector<double> w_factors;
    for (Index k = 0; k < run.active_count(); ++k) {
      const auto i = static_cast<std::size_t>(k);
      LsqrScalars& scalars = scalars_[at(run.number(k))];
      scalars.advance(now[i].alpha, w_norms_squared[i]);
      w_factors.push_back(scalars.w_factor);
      ColumnState& state = run.column(k);
      state.x_norm = std::sqrt(run.sums().of(1, k));
      state.operator_norm = std::sqrt(scalars.norm_A_squared);
      state.condition = state.operator_norm * std::sqrt(scalars.norm_pinv_squared);
      this->set_norms(state, scalars.residual, scalars.gradient);
    }
    DistMatrix<T> w = run.matrix(w_, this->A().domain());
    if (variances_) add_variances(run, w);
    run.xpby(v, w_factors, w);
  }

  /// The columns w/ρ are those of V R⁻¹, and (AᴴA)⁻¹ is V R⁻¹ R⁻ᴴ Vᴴ.
  void add_variances(ColumnRun<T>& run, DistMatrix<T>& w) {
    DistMatrix<T> variances = run.active(*variances_);
    for (Index k = 0; k < run.active_count(); ++k) {
      const double rho = scalars_[at(run.number(k))].rho;
      if (rho == 0) continue;
      const MatrixView<T> w_k = run.column_block(w, k);
      run.kernels().diagonal_multiply(to_scalar<T>(1 / (rho * rho)), w_k.data, true, w_k, T(1),
                                      run.column_block(variances, k));
    }
  }

  Scratch<T> w_;
  DistMatrix<T>* const all_variances_;
  std::optional<DistMatrix<T>> variances_;  // of the batch; follow the columns
  std::vector<LsqrScalars> scalars_;        // per column of the batch
};

}  // namespace

template <Scalar T>
SolveReport lsqr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 const SolveOptions& options) {
  return solve_by_bidiagonalisation<T, Lsqr<T>>(A, B, X, options);
}

template <Scalar T>
SolveReport lsqr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 DistMatrix<T>& variances, const SolveOptions& options) {
  require<ShapeError>(variances.grid() == X.grid() && variances.layout() == X.layout(),
                      "lsqr: variances are ", variances.layout().describe(),
                      ", but must lie as X does, which is ", X.layout().describe());
  variances.set_zero();
  return solve_by_bidiagonalisation<T, Lsqr<T>>(A, B, X, options, &variances);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                  \
  template SolveReport lsqr(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&, \
                            DistMatrix<T>&, const SolveOptions&);                                \
  template SolveReport lsqr(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&, \
                            const SolveOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
