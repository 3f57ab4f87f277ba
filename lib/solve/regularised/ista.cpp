// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/solve/proximal.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "solve/column_blocks.hpp"
#include "solve/methods/method_of.hpp"
#include "solve/regularised/kept_proximal.hpp"
#include "solve/run/column_run.hpp"

namespace gridlops {

namespace {

template <Scalar T>
constexpr double epsilon_of = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());

/// A step shorter than this many times its rounding error has stagnated.
constexpr double rounding_level = 5;

/// A divisor for relative changes: it makes the relative change of a column that stays zero zero.
double at_least_tiny(double norm) { return std::max(norm, std::numeric_limits<double>::min()); }

/// ISTA (Daubechies, Defrise, De Mol 2004), and with momentum FISTA (Beck, Teboulle 2009), for many
/// right-hand sides at once, each with its own scalars:
///
///   x₊ = S threshold(Sᴴ(y + α Aᴴ r_y), αλ)    r₊ = b − A x₊    y₊ = x₊ + ω(x₊ − x),  r_y₊ = r₊ + ω(r₊ − r)
///
/// where r = b − A x and r_y = b − A y; without momentum y is x. For any g with a proximal map this is the
/// proximal gradient method, with the map of αλg in place of the threshold. An iteration has one reduction,
/// for everything that the tests need. Only then does it accept x₊, column by column.
template <Scalar T>
class Ista final : public ColumnMethod<T> {
 public:
  explicit Ista(const SolverCall<T>& call)
      : ColumnMethod<T>(call.A, traits(call)),
        S(call.operands.sparsity),
        g(penalty_of(call)),
        options_(call.options),
        acceleration_(acceleration_of(call)),
        momentum(acceleration_ != Acceleration::none) {
    require<UsageError>(momentum || !call.options.monotone || call.solver == Solver::ista, this->name(),
                        " has no momentum to restart; use fista, or an acceleration");
    require<UsageError>(call.options.step != 0.0, "the step is 0; it must be > 0, at best 1/‖A‖²");
    if (S != nullptr)
      require<ShapeError>(S->range() == A.domain(), this->name(), ": the models of the ", A.rows(), " x ",
                          A.cols(), " operator and what the ", S->rows(), " x ", S->cols(),
                          " sparsifying operator makes differ in size or layout; they must agree");
  }

  void complete(SolveOptions& options) override;
  // A given step is one for the weighted problem.
  double norm_of_unscaled(double largest_weight) const override {
    return shortens_steps_ ? largest_weight * norm_ : norm_;
  }
  void describe(MethodState<T>& state) override;

  void start(ColumnRun<T>& run) override;
  void iterate(ColumnRun<T>& run) override;
  TrueNorms true_norms(ColumnRun<T>& run) override;
  void restart(ColumnRun<T>& run) override;
  ColumnScalars residual_gap(ColumnRun<T>& run) override;

 private:
  using ColumnMethod<T>::A;

  /// The sums from the one reduction.
  struct Sums {
    ColumnScalars rr;        // ‖r₊‖²
    ColumnScalars xx;        // ‖x₊‖²
    ColumnScalars P;         // g(x₊)
    ColumnScalars AdAd, dd;  // ‖A d‖² and ‖d‖², d = x₊ − y
    ColumnScalars ee;        // ‖x₊ − x‖²
  };
  static ProximalPtr<T> penalty_of(const SolverCall<T>& call) {
    return call.operands.penalty ? call.operands.penalty : threshold_penalty<T>(call.options.threshold);
  }
  static Acceleration acceleration_of(const SolverCall<T>& call) {
    if (row_of(call.solver).has(Feature::acceleration)) return call.options.acceleration;
    return call.solver == Solver::fista ? Acceleration::fista : Acceleration::none;
  }
  static MethodTraits traits(const SolverCall<T>& call) {
    MethodTraits traits = traits_of(call.solver);
    traits.absolute_tolerance = call.options.absolute_tolerance;
    traits.parameters = message(penalty_of(call)->describe(),
                                call.operands.sparsity == nullptr ? "" : ", a sparsifying operator");
    return traits;
  }

  enum class Decision { take, shorten_step, restart_momentum, end };

  DistMatrix<T>& y() { return momentum ? y_ : x; }
  DistMatrix<T>& r_y() { return momentum ? r_y_ : r; }
  /// The operand of the threshold: x₊, or z if x₊ is S z.
  DistMatrix<T>& sparse() { return S == nullptr ? x_next : z; }

  ColumnScalars lambda_now(ColumnRun<T>& run);
  void take_proximal_step(ColumnRun<T>& run, const ConstDistMatrix<T>& from);
  Decision decide(ColumnRun<T>& run, Index k, const Sums& sums, double lambda_k);
  void move(const std::vector<char>& taken, const std::vector<char>& restarted, const ColumnScalars& omega);
  /// The amount by which rounding of b − Ay and of the step moves x.
  double rounding_of_step(const ColumnState& state, Index k, double norm_x) const {
    return epsilon_of<T> * (norm_x + std::sqrt(alpha[k]) * state.data_norm);
  }
  double next_momentum(Index k);
  void begin_momentum();

  const LinearOperator<T>* const S;
  const KeptProximal<T> g;
  const SolveOptions& options_;
  const Acceleration acceleration_;
  double norm_ = 0;              // ‖A‖, or what the step says of it
  bool shortens_steps_ = false;  // where weights make A larger: the step is not given
  const bool momentum;
  DistMatrix<T> x, b, r, y_, r_y_;  // of the last iteration
  DistMatrix<T> x_next, r_next, z, x_change, r_change;
  ColumnScalars lambda, alpha, t;             // t: for the momentum
  ColumnScalars first_misfit, first_penalty;  // ½‖r‖² and g at the start
  ColumnScalars misfit, penalty_;             // the current values
};

/// Derives the step from the estimated norm, unless it was given.
template <Scalar T>
void Ista<T>::complete(SolveOptions& options) {
  if (!options.step) {
    norm_ = estimate_norm(this->op()) * (options.backtracking ? 1 : 1.02);
    options.step = norm_ == 0 ? 1 : 1 / norm_ / norm_;
    options.checkpoint.computed.emplace_back("step");
    shortens_steps_ = norm_ > 0;
  } else {
    norm_ = 1 / std::sqrt(*options.step);
  }
  const Real<T> in_its_precision = static_cast<Real<T>>(*options.step);
  require<UsageError>(in_its_precision != 0 && !std::isinf(in_its_precision), "the step ", *options.step,
                      " is ", in_its_precision, " in the precision of the operator",
                      ", so that nothing would move, or all beyond measure; scale the operator");
}

template <Scalar T>
void Ista<T>::describe(MethodState<T>& state) {
  state.solution(x);
  state.vector("b", b, A.range());
  state.vector("r", r, A.range());
  if (momentum) state.vector("y", y_, A.domain());
  if (momentum) state.vector("r_y", r_y_, A.range());
  for (DistMatrix<T>* in_domain : {&x_next, &x_change}) state.scratch(*in_domain, A.domain());
  for (DistMatrix<T>* in_range : {&r_next, &r_change}) state.scratch(*in_range, A.range());
  if (S != nullptr) state.scratch(z, S->domain());
  for (ColumnScalars* values : {&lambda, &alpha, &t, &first_misfit, &first_penalty, &misfit, &penalty_})
    state.scalars(*values);
}

/// Sets the norms of the first step, but does not take the step, since a guess may already be the solution.
template <Scalar T>
void Ista<T>::start(ColumnRun<T>& run) {
  const Index columns = run.active_count();
  lambda = ColumnScalars(columns);
  alpha = ColumnScalars(columns, *options_.step);
  for (Index k = 0; k < columns; ++k) {
    lambda[k] = options_.lambda[run.right_hand_side(k)];
    const double largest = run.column(k).weights.largest;  // ‖diag(w) A‖ ≤ max w ‖A‖
    if (shortens_steps_ && largest > 0) alpha[k] /= largest * largest;
  }
  run.copy_data(b);
  copy(b, r);
  if (!run.begins_from_data()) A.apply(-1, x, 1, r);
  if (S != nullptr) {
    S->apply_adjoint(1, x, 0, z);
    first_penalty = g.sum(run, z).second;
  }
  A.apply_adjoint(1, r, 0, x_next);
  take_proximal_step(run, x);
  const auto [sums, P] = g.sum(run, x, norm2(b), norm2(r), norm2(x_next), distance2(x_next, x, x_change));
  const auto& [bb, rr, xx, dd] = sums;
  if (S == nullptr) first_penalty = P;
  ColumnScalars reference = sqrt(xx);
  for (double& norm : reference.values()) norm = at_least_tiny(norm);
  first_misfit = misfit = 0.5 * rr;
  penalty_ = first_penalty;
  run.set_norms({.tested = sqrt(dd),
                 .residual = sqrt(rr),
                 .x = sqrt(xx),
                 .reference = reference,
                 .data = sqrt(bb),
                 .objective = misfit + lambda_now(run) * penalty_});
  begin_momentum();
}

template <Scalar T>
void Ista<T>::iterate(ColumnRun<T>& run) {
  A.apply_adjoint(1, r_y(), 0, x_next);
  take_proximal_step(run, y());  // x₊ = threshold(y + α Aᴴ r_y, αλ)
  copy(b, r_next);
  A.apply(-1, x_next, 1, r_next);  // r₊ = b − A x₊
  Sums sums;
  if (momentum) {
    const auto [known, P] =
        g.sum(run, sparse(), norm2(r_next), norm2(x_next), distance2(r_next, r_y(), r_change),
              distance2(x_next, y(), x_change), distance2(x_next, x, x_change));
    const auto& [rr, xx, AdAd, dd, ee] = known;
    sums = {rr, xx, P, AdAd, dd, ee};
  } else {
    const auto [known, P] = g.sum(run, sparse(), norm2(r_next), norm2(x_next), distance2(r_next, r, r_change),
                                  distance2(x_next, x, x_change));
    const auto& [rr, xx, AdAd, dd] = known;
    sums = {rr, xx, P, AdAd, dd, dd};
  }
  if (run.ends()) return;

  const ColumnScalars lambdas = lambda_now(run);
  std::vector<char> taken(at(run.active_count()), 0), restarted = taken;
  ColumnScalars omega(run.active_count());
  for (Index k = 0; k < run.active_count(); ++k) {
    const Decision decision = decide(run, k, sums, lambdas[k]);
    if (decision == Decision::restart_momentum) {
      t[k] = 1;
      restarted[at(k)] = 1;
    }
    if (decision != Decision::take) continue;
    taken[at(k)] = 1;
    omega[k] = next_momentum(k);
    misfit[k] = 0.5 * sums.rr[k];
    penalty_[k] = sums.P[k];
  }
  move(taken, restarted, omega);
}

template <Scalar T>
ColumnScalars Ista<T>::lambda_now(ColumnRun<T>& run) {
  if (options_.decay.empty()) return lambda;
  ColumnScalars now = lambda;
  for (Index k = 0; k < now.size(); ++k)
    now[k] *= options_.decay[std::min(at(run.column(k).iterations), options_.decay.size() - 1)];
  return now;
}

/// The ω of a column that has taken step number t = 1, 2, … since its momentum began; for FISTA t grows by
/// only a half.
template <Scalar T>
double Ista<T>::next_momentum(Index k) {
  if (acceleration_ == Acceleration::vandenberghe) {
    const double step = t[k]++;
    return (step - 1) / (step + 2);
  }
  const double t_next = 0.5 * (1 + std::sqrt(1 + 4 * t[k] * t[k]));
  return (std::exchange(t[k], t_next) - 1) / t_next;  // ω = (t − 1)/t₊
}

/// x₊ ← threshold(y + α·gradient, αλ), where x₊ holds the gradient Aᴴ r_y on entry.
template <Scalar T>
void Ista<T>::take_proximal_step(ColumnRun<T>& run, const ConstDistMatrix<T>& from) {
  update(xpby(from, alpha, x_next));
  if (S != nullptr) S->apply_adjoint(1, x_next, 0, z);
  g.prox(alpha * lambda_now(run), sparse());
  if (S != nullptr) S->apply(1, z, 0, x_next);
}

// For a quadratic misfit the step α is short enough for this column if α‖A d‖² ≤ ‖d‖², d = x₊ − y (Beck,
// Teboulle 2009, §3). With a convex penalty the objective then never exceeds its initial value, even with
// momentum (Chambolle, Dossal: On the convergence of the iterates of FISTA, J. Optim. Theory Appl. 166,
// 2015).
template <Scalar T>
typename Ista<T>::Decision Ista<T>::decide(ColumnRun<T>& run, Index k, const Sums& sums, double lambda_k) {
  ColumnState& state = run.column(k);
  const double unit = epsilon_of<T>, residual = std::sqrt(sums.rr[k]), norm_x = std::sqrt(sums.xx[k]),
               AdAd = sums.AdAd[k], dd = sums.dd[k];
  const double rounding = rounding_of_step(state, k, norm_x);
  // ‖A d‖ is the norm of a difference of residuals, and below this level it is rounding.
  const double noise =
      10 * unit *
      (state.data_norm + residual + std::max(state.operator_norm, 1 / std::sqrt(alpha[k])) * norm_x);
  const bool image_known = std::sqrt(AdAd) > noise;
  if (image_known && dd > 0) state.operator_norm = std::max(state.operator_norm, std::sqrt(AdAd / dd));
  const bool too_large = image_known && alpha[k] * AdAd > dd * (1 + 10 * unit);
  if (too_large && options_.backtracking) {
    alpha[k] = std::min(0.5 * alpha[k], dd / AdAd);
    return Decision::shorten_step;
  }
  const double objective = 0.5 * sums.rr[k] + lambda_k * sums.P[k], slack = 1 + 4 * unit;
  if (too_large && objective > slack * (first_misfit[k] + lambda_k * first_penalty[k])) {
    state.reason = StopReason::breakdown;
    return Decision::end;
  }
  if (momentum && options_.monotone && t[k] > 1 && objective > slack * (misfit[k] + lambda_k * penalty_[k]))
    return Decision::restart_momentum;
  const double update = std::sqrt(std::max(dd, sums.ee[k]));
  // An update within the tolerance must still be so when it is computed again from x₊.
  const double tested = update + (rounding_level - 1) * rounding;
  state.rounding_norm = rounding_level * rounding;
  state.objective = objective;
  state.residual_norm = residual;
  state.x_norm = norm_x;
  state.tested_norm = tested;
  state.reference = at_least_tiny(norm_x);
  return Decision::take;
}

/// Sets x ← x₊ for the columns that accept it, and y and r_y for the next step.
template <Scalar T>
void Ista<T>::move(const std::vector<char>& taken, const std::vector<char>& restarted,
                   const ColumnScalars& omega) {
  if (momentum) {
    copy(r_next, r_change);
    r_change -= r;
    copy_columns(taken, x_next, y_);
    copy_columns(taken, r_next, r_y_);
    y_ += omega * x_change;  // y₊ = x₊ + ω(x₊ − x)
    r_y_ += omega * r_change;
    copy_columns(restarted, x, y_);
    copy_columns(restarted, r, r_y_);
  }
  copy_columns(taken, x_next, x);
  copy_columns(taken, r_next, r);
}

template <Scalar T>
void Ista<T>::begin_momentum() {
  t = ColumnScalars(alpha.size(), 1);
  if (!momentum) return;
  copy(x, y_);
  copy(r, r_y_);
}

template <Scalar T>
TrueNorms Ista<T>::true_norms(ColumnRun<T>& run) {
  run.copy_data(r);
  A.apply(-1, x, 1, r);
  A.apply_adjoint(1, r, 0, x_next);
  copy(x_next, x_change);
  take_proximal_step(run, x);
  const auto [rr, gg, xx, dd] = run.sum(norm2(r), norm2(x_change), norm2(x), distance2(x_next, x, x_change));
  ColumnScalars reference = sqrt(xx), rounding = reference;
  for (Index k = 0; k < rounding.size(); ++k) {
    rounding[k] = rounding_level * rounding_of_step(run.column(k), k, reference[k]);
    reference[k] = at_least_tiny(reference[k]);
  }
  return {.residual = sqrt(rr),
          .normal = sqrt(gg),
          .tested = sqrt(dd),
          .x = sqrt(xx),
          .reference = reference,
          .rounding = rounding};
}

template <Scalar T>
void Ista<T>::restart(ColumnRun<T>& run) {
  run.copy_data(b);
  begin_momentum();
}

template <Scalar T>
ColumnScalars Ista<T>::residual_gap(ColumnRun<T>& run) {
  run.copy_data(r_next);
  A.apply(-1, x, 1, r_next);
  r_next -= r;  // b − A x − r
  return sqrt(run.sum(norm2(r_next))[0]);
}

}  // namespace

template <>
struct MethodOf<Solver::ista> {
  template <Scalar T>
  using Type = Ista<T>;
};
template <>
struct MethodOf<Solver::fista> {
  template <Scalar T>
  using Type = Ista<T>;
};
template <>
struct MethodOf<Solver::proximal_gradient> {
  template <Scalar T>
  using Type = Ista<T>;
};

#define GRIDLOPS_INSTANTIATE(T)                                              \
  template MethodPtr<T> make_method_of<Solver::ista>(const SolverCall<T>&);  \
  template MethodPtr<T> make_method_of<Solver::fista>(const SolverCall<T>&); \
  template MethodPtr<T> make_method_of<Solver::proximal_gradient>(const SolverCall<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
