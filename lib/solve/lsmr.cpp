// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>

#include "solve/golub_kahan.hpp"

#include "base/instantiate.hpp"
#include "base/numbers.hpp"

namespace gridlops {

namespace {

/// The scalars of one column, with the names of Fong and Saunders (LSMR: an iterative algorithm for sparse
/// least-squares problems, SIAM J. Sci. Comput. 33, 2011, §2 to §5).
struct LsmrScalars {
  double alpha_bar = 0, zeta_bar = 0, zeta = 0;
  double rho = 1, rho_bar = 1, theta_bar = 0, c_bar = 1, s_bar = 0;
  Rotation damping, p;
  // For ‖r‖.
  double beta_double_dot = 0, beta_dot = 0, rho_dot_old = 1, tau_tilde_old = 0, theta_tilde = 0, d = 0;
  // For ‖A‖ and cond(A).
  double norm_A_squared = 0, largest_rho_bar = 0, smallest_rho_bar = std::numeric_limits<double>::infinity();
  bool first_step = true;
  // What the vectors do: h̄ = h + h_bar_factor·h̄, x += step·h̄, h = v + h_factor·h.
  double h_bar_factor = 0, step = 0, h_factor = 0;
  double norm_A = 0, condition = 1, residual = 0, gradient = 0;

  void visit(StateArchive& archive) {
    archive.visit(alpha_bar, zeta_bar, zeta, rho, rho_bar, c_bar, s_bar, beta_double_dot, beta_dot,
                  rho_dot_old, tau_tilde_old, theta_tilde, d, norm_A_squared, largest_rho_bar,
                  smallest_rho_bar, first_step, h_bar_factor, step, h_factor, norm_A, condition, residual,
                  gradient);
  }

  void begin(double alpha, double beta) {
    alpha_bar = alpha;
    zeta_bar = alpha * beta;
    beta_double_dot = residual = beta;
    norm_A_squared = alpha * alpha;
    gradient = alpha * beta;
  }

  /// The direction h̄, which needs no α.
  void find_direction(double beta, double damp) {
    damping = Rotation::of(alpha_bar, damp);
    const double rho_old = rho;
    p = Rotation::of(damping.r, beta);
    rho = p.r;
    theta_bar = s_bar * rho;
    h_bar_factor = -theta_bar * rho / (rho_old * rho_bar);
  }

  void advance(double alpha, double beta) {
    const double theta_new = p.s * alpha;
    alpha_bar = p.c * alpha;

    const double rho_bar_old = rho_bar, zeta_old = zeta, rho_temp = c_bar * rho;
    const Rotation p_bar = Rotation::of(rho_temp, theta_new);
    c_bar = p_bar.c;
    s_bar = p_bar.s;
    rho_bar = p_bar.r;
    zeta = c_bar * zeta_bar;
    zeta_bar *= -s_bar;

    step = rho * rho_bar > 0 ? zeta / (rho * rho_bar) : 0;
    h_factor = rho > 0 ? -theta_new / rho : 0;
    estimate_residual(zeta_old);
    estimate_condition(alpha, beta, rho_bar_old, rho_temp);
    gradient = std::abs(zeta_bar);
  }

  void estimate_residual(double zeta_old) {
    const double beta_acute = damping.c * beta_double_dot, beta_check = -damping.s * beta_double_dot;
    const double beta_hat = p.c * beta_acute;
    beta_double_dot = -p.s * beta_acute;
    const double theta_tilde_old = theta_tilde;
    const Rotation p_tilde = Rotation::of(rho_dot_old, theta_bar);
    theta_tilde = p_tilde.s * rho_bar;
    rho_dot_old = p_tilde.c * rho_bar;
    beta_dot = -p_tilde.s * beta_dot + p_tilde.c * beta_hat;
    tau_tilde_old = p_tilde.r > 0 ? (zeta_old - theta_tilde_old * tau_tilde_old) / p_tilde.r : 0;
    const double tau_dot = rho_dot_old != 0 ? (zeta - theta_tilde * tau_tilde_old) / rho_dot_old : 0;
    d += beta_check * beta_check;
    residual = std::sqrt(d + (beta_dot - tau_dot) * (beta_dot - tau_dot) + beta_double_dot * beta_double_dot);
  }

  void estimate_condition(double alpha, double beta, double rho_bar_old, double rho_temp) {
    norm_A_squared += beta * beta;
    norm_A = std::sqrt(norm_A_squared);
    norm_A_squared += alpha * alpha;
    largest_rho_bar = std::max(largest_rho_bar, rho_bar_old);
    if (!first_step) smallest_rho_bar = std::min(smallest_rho_bar, rho_bar_old);
    first_step = false;
    condition = std::max(largest_rho_bar, rho_temp) / std::min(smallest_rho_bar, rho_temp);
  }
};

template <Scalar T>
class Lsmr final : public GolubKahan<T> {
 public:
  using GolubKahan<T>::GolubKahan;
  const char* name() const override { return "lsmr"; }

 private:
  using typename GolubKahan<T>::Bidiagonal;
  using typename GolubKahan<T>::OwnVector;

  std::vector<OwnVector> own_vectors() override { return {{"h", &h_}, {"h_bar", &h_bar_}}; }
  void visit_own(StateArchive& archive) override { archive.visit_list(scalars_); }

  void begin(ColumnRun<T>& run, const DistMatrix<T>& v, const std::vector<Bidiagonal>& first) override {
    DistMatrix<T> h = run.matrix(h_, this->A().domain());
    run.matrix(h_bar_, this->A().domain()).set_zero();
    run.copy(v, h);
    scalars_.assign(first.size(), {});
    for (std::size_t j = 0; j < first.size(); ++j) scalars_[j].begin(first[j].alpha, first[j].beta);
  }

  void add_norms(ColumnRun<T>& run) override { run.sums().add_norms_squared(run.x()); }

  void begin_step(ColumnRun<T>& run, const std::vector<double>& beta) override {
    std::vector<double> h_bar_factors;
    for (Index k = 0; k < run.active_count(); ++k) {
      LsmrScalars& scalars = scalars_[at(run.number(k))];
      scalars.find_direction(beta[at(k)], this->damp());
      h_bar_factors.push_back(scalars.h_bar_factor);
    }
    DistMatrix<T> h_bar = run.matrix(h_bar_, this->A().domain());
    run.xpby(run.matrix(h_, this->A().domain()), h_bar_factors, h_bar);
    run.sums().add_real_dots(run.x(), h_bar);
    run.sums().add_norms_squared(h_bar);
  }

  void advance(ColumnRun<T>& run, const DistMatrix<T>& v, const std::vector<Bidiagonal>& now,
               const std::vector<double>& x_norms_squared) override {
    std::vector<double> steps, h_factors;
    for (Index k = 0; k < run.active_count(); ++k) {
      const auto i = static_cast<std::size_t>(k);
      LsmrScalars& scalars = scalars_[at(run.number(k))];
      scalars.advance(now[i].alpha, now[i].beta);
      steps.push_back(scalars.step);
      h_factors.push_back(scalars.h_factor);
      ColumnState& state = run.column(k);
      // ‖x + step·h̄‖².
      const double x_norm_squared =
          x_norms_squared[i] + scalars.step * (2 * run.sums().of(1, k) + scalars.step * run.sums().of(2, k));
      state.x_norm = x_norm_squared < 0 ? 0 : std::sqrt(x_norm_squared);
      state.operator_norm = scalars.norm_A;
      state.condition = scalars.condition;
      this->set_norms(state, scalars.residual, scalars.gradient);
    }
    DistMatrix<T> x = run.x(), h = run.matrix(h_, this->A().domain());
    run.axpy(steps, run.matrix(h_bar_, this->A().domain()), x);
    run.xpby(v, h_factors, h);
  }

  Scratch<T> h_, h_bar_;
  std::vector<LsmrScalars> scalars_;  // per column of the batch
};

}  // namespace

template <Scalar T>
SolveReport lsmr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 const SolveOptions& options) {
  return solve_by_bidiagonalisation<T, Lsmr<T>>(A, B, X, options);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                  \
  template SolveReport lsmr(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&, \
                            const SolveOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
