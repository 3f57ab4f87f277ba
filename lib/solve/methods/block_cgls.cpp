// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "solve/methods/block_basis.hpp"
#include "solve/methods/block_scalars.hpp"
#include "solve/methods/method_of.hpp"
#include "solve/run/column_run.hpp"

namespace gridlops {

namespace {

/// Block CGLS by the bidiagonalisation of Golub and Kahan with blocks in place of vectors,
///
///   U₁ β = R₀,  V₁ L₁ = Aᴴ U₁,    U₊ K = A V − U Lᴴ,  V₊ L₊ = Aᴴ U₊ − V Kᴴ,
///
/// U and V orthonormal (Golub, Luk, Overton: A block Lanczos method for computing the singular values and
/// corresponding singular vectors of a matrix, ACM TOMS 7, 1981). The iterates are those of conjugate
/// gradients with blocks of residuals (O'Leary: The block conjugate gradient algorithm and related methods,
/// Linear Algebra Appl. 29, 1980). Since no residuals are kept, their growing linear dependence cannot spoil
/// the directions. In return, the directions of a column that has ended must stay in the space until all have
/// ended. Without them the other columns would lose the conjugacy of their directions, and take many times as
/// long.
///
/// Columns enter U₁ scaled to ‖r‖ = 1. Damping replaces A by [A; D·I]; U then has the rows of both.
template <Scalar T>
class BlockCgls final : public ColumnMethod<T> {
  using Small = SmallMatrix<Accumulator<T>>;

 public:
  explicit BlockCgls(const SolverCall<T>& call)
      : ColumnMethod<T>(call.A, traits()),
        stacked_(call.options.damp.any()
                     ? damped(OperatorPtr<T>(OperatorPtr<T>(), &call.A), call.options.damp.values().front())
                     : nullptr),
        full_(stacked_ ? *stacked_ : call.A),
        u_(full_.range()),
        v_(call.A.domain()) {
    const Space& space = call.A.domain();
    require<ShapeError>(space.grid->parts(space.columns) == 1,
                        "block_cgls: right-hand sides that share a Krylov space must lie together, but the "
                        "operator's are cut along ",
                        name_of(space.columns), " into ", space.grid->parts(space.columns),
                        " parts; make it with Algorithm::stationary_a, or use cgls()");
  }

  void scale_operator(int power, const Partition& columns) override {
    A.set_power(power, columns);
    full_.set_power(power, columns);
  }

  void describe(MethodState<T>& state) override;
  void start(ColumnRun<T>& run) override;
  void iterate(ColumnRun<T>& run) override;
  TrueNorms true_norms(ColumnRun<T>& run) override;
  void restart(ColumnRun<T>& run) override { begin_space(run); }
  ColumnScalars residual_gap(ColumnRun<T>& run) override;

 private:
  using ColumnMethod<T>::A;

  static MethodTraits traits() {
    MethodTraits traits = traits_of(Solver::block_cgls);
    traits.follows_residual = false;
    return traits;
  }

  DistMatrix<T> directions() { return A.domain().matrix(uncut_columns(p_width_), p_); }

  struct Norms2 {
    ColumnScalars rr, ss, xx;
  };
  DistMatrix<T> data_rows(DistMatrix<T>& R) const { return stack_rows({A.range()}, 0, R); }
  Norms2 compute_residuals(ColumnRun<T>& run);
  Small adopt(ColumnRun<T>& run, BlockBasis<T>& basis, double norm) {
    return basis.adopt([&run](std::vector<double>& numbers) { run.sum_with(numbers); }, norm);
  }
  void begin_space(ColumnRun<T>& run);
  Small choose_columns(ColumnRun<T>& run);
  void note_norms(const Small& L, const Small& K);
  void move_x(ColumnRun<T>& run);
  void set_norms(ColumnRun<T>& run, const ColumnScalars& xx);

  const OperatorPtr<T> stacked_;  // [A; D·I], with damping
  ScaledOperator<T> full_;        // stacked_ with damping, otherwise A
  DistMatrix<T> x_;
  BlockBasis<T> u_, v_;
  Buffer<T> p_;
  Index p_width_ = 0;
  Small L_;
  BlockScalars<Accumulator<T>> scalars_;
  double norm_ = 0;  // a lower bound for [A; D·I]
};

/// R = [B; 0] − [A; D·I] X, in the memory of u's candidate, and S = [A; D·I]ᴴ R.
template <Scalar T>
typename BlockCgls<T>::Norms2 BlockCgls<T>::compute_residuals(ColumnRun<T>& run) {
  DistMatrix<T> R = u_.candidate(run.active_count()), S = v_.candidate(run.active_count()),
                upper = data_rows(R);
  if (stacked_) R.set_zero();
  run.copy_right_hand_side(upper);
  full_.apply(T(-1), x_, T(1), R);
  full_.apply_adjoint(T(1), R, T(0), S);
  const auto [rr, ss, xx] = run.sum(norm2(upper), norm2(S), norm2(x_));
  return {rr, ss, xx};
}

template <Scalar T>
void BlockCgls<T>::describe(MethodState<T>& state) {
  state.solution(x_);
  std::vector<Space> range_stack;
  if (stacked_) range_stack = damped_range(A.range(), A.domain());
  u_.describe("u", std::move(range_stack), state);
  v_.describe("v", {}, state);
  state.memory(p_, A.domain(), [](Index rows, Index columns) { return rows * columns; });
  state.count(p_width_);
  state.shared("p", [this] { return directions(); });
  state.number(L_);
  state.number(scalars_);
  state.number(norm_);
  state.check([this](Index columns) {
    return L_.rows() == v_.width() && L_.cols() == u_.width() && scalars_.fits(columns, v_.width(), p_width_);
  });
}

template <Scalar T>
void BlockCgls<T>::start(ColumnRun<T>& run) {
  norm_ = 0;
  DistMatrix<T> R = u_.candidate(run.active_count()), S = v_.candidate(run.active_count()),
                upper = data_rows(R);
  if (stacked_) R.set_zero();
  run.copy_data(upper);
  A.apply_adjoint(T(1), upper, T(0), S);
  const auto [bb, of_data] = run.sum(norm2(upper), norm2(S));
  const ColumnScalars reference = sqrt(of_data), data = sqrt(bb);
  Norms2 norms{bb, of_data, ColumnScalars(bb.size())};
  if (!run.begins_from_data()) norms = compute_residuals(run);
  run.set_norms({.tested = sqrt(norms.ss),
                 .residual = sqrt(norms.rr),
                 .x = sqrt(norms.xx),
                 .A = ratio(reference, data),  // ‖A‖ ≥ ‖Aᴴb‖/‖b‖
                 .reference = reference,
                 .data = data});
  begin_space(run);
}

/// Makes U₁ and V₁ from the residuals in u's candidate. All columns must be in their places.
template <Scalar T>
void BlockCgls<T>::begin_space(ColumnRun<T>& run) {
  const Small beta = choose_columns(run);
  DistMatrix<T> S = v_.candidate(u_.width());
  full_.apply_adjoint(T(1), u_.block(), T(0), S);
  v_.forget();
  run.sum_with(v_.local_gram());
  // Keeps these gradients however short they are compared with A, since there are no others.
  L_ = adopt(run, v_, 0);
  note_norms(L_, Small());
  scalars_.begin(L_, beta);
  p_width_ = 0;
}

/// Makes U₁ from the residuals of the columns that have not ended, and returns β with all columns. Leaves out
/// columns that are zero or not finite.
template <Scalar T>
typename BlockCgls<T>::Small BlockCgls<T>::choose_columns(ColumnRun<T>& run) {
  const Index count = run.active_count();
  ColumnScalars norms(count), inverses(count);
  std::vector<Index> chosen;
  for (Index k = 0; k < count; ++k) {
    const ColumnState& state = run.column(k);
    norms[k] = state.damped_residual_norm();
    const bool unsolved = !state.reason && state.finite() && state.relative_norm() > state.tolerance;
    if (!unsolved || !std::isfinite(static_cast<Real<T>>(1 / norms[k]))) continue;
    inverses[k] = 1 / norms[k];
    chosen.push_back(k);
  }
  DistMatrix<T> R = u_.candidate(count);
  R *= inverses;
  const Kernels<T>& kernels = R.grid()->backend()->template kernels<T>();
  for (std::size_t c = 0; c < chosen.size(); ++c) {
    const auto to = static_cast<Index>(c);
    if (to != chosen[c]) kernels.copy(R.local().col_block({chosen[c], 1}), R.local().col_block({to, 1}));
  }
  u_.forget();
  u_.candidate(static_cast<Index>(chosen.size()));
  run.sum_with(u_.local_gram());
  const Small K = adopt(run, u_, 0);
  Small beta(K.rows(), count);
  for (std::size_t c = 0; c < chosen.size(); ++c)
    for (Index i = 0; i < K.rows(); ++i) beta(i, chosen[c]) = K(i, static_cast<Index>(c)) * norms[chosen[c]];
  return beta;
}

/// Raises the lower bound of the norm: ‖A v‖² is the sum of the squares in v's columns of Lᴴ and K.
template <Scalar T>
void BlockCgls<T>::note_norms(const Small& L, const Small& K) {
  for (Index i = 0; i < L.rows(); ++i) {
    double squares = K.rows() > 0 ? K.column_norm_squared(i) : 0;
    for (Index j = 0; j < L.cols(); ++j) squares += std::norm(L(i, j));
    norm_ = std::max(norm_, std::sqrt(squares));
  }
}

template <Scalar T>
void BlockCgls<T>::iterate(ColumnRun<T>& run) {
  constexpr double epsilon = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
  DistMatrix<T> W = u_.candidate(v_.width());
  full_.apply(T(1), v_.block(), T(0), W);
  u_.add_product(-1, u_.block(), adjoint(L_), W);  // U₊ K = A V − U Lᴴ
  run.sum_with(u_.local_gram());
  if (run.ends()) return;
  const Small K = adopt(run, u_, norm_);
  note_norms(L_, K);
  scalars_.eliminate(K, epsilon * norm_);
  move_x(run);  // P = (V − P θ) ρ⁻¹,  x += P φ

  DistMatrix<T> S = v_.candidate(u_.width());
  full_.apply_adjoint(T(1), u_.block(), T(0), S);
  v_.add_product(-1, v_.block(), adjoint(K), S);  // V₊ L₊ = Aᴴ U₊ − V Kᴴ
  const auto [xx] = run.sum_with(v_.local_gram(), norm2(x_));
  L_ = adopt(run, v_, norm_);
  scalars_.extend(L_);
  set_norms(run, xx);
}

/// P = (V − P θ) ρ⁻¹, x += P φ.
template <Scalar T>
void BlockCgls<T>::move_x(ColumnRun<T>& run) {
  DistMatrix<T> rest = v_.candidate(v_.width()), old = directions();
  copy(v_.block(), rest);
  v_.add_product(-1, old, scalars_.theta(), rest);
  p_width_ = v_.width();
  DistMatrix<T> P = directions();
  P.set_zero();
  v_.add_product(1, rest, scalars_.rho_inverse(), P);
  Small steps(p_width_, run.active_count());
  for (Index k = 0; k < run.active_count(); ++k)
    for (Index i = 0; i < p_width_; ++i) steps(i, k) = scalars_.phi()(i, run.number(k));
  v_.add_product(1, P, steps, x_);
}

template <Scalar T>
void BlockCgls<T>::set_norms(ColumnRun<T>& run, const ColumnScalars& xx) {
  ColumnScalars rr(xx.size()), ss(xx.size());
  for (Index k = 0; k < xx.size(); ++k) {
    rr[k] = scalars_.residual_squared(run.number(k));
    ss[k] = scalars_.gradient_squared(run.number(k));
  }
  run.raise_operator_norms(run.without_damping(ColumnScalars(xx.size(), norm_ * norm_), 1));
  run.set_norms({.tested = sqrt(ss), .residual = root(rr - run.squared_damping() * xx), .x = sqrt(xx)});
}

template <Scalar T>
TrueNorms BlockCgls<T>::true_norms(ColumnRun<T>& run) {
  const auto [rr, ss, xx] = compute_residuals(run);
  return {.residual = sqrt(rr), .normal = sqrt(ss), .tested = sqrt(ss), .x = sqrt(xx)};
}

/// The recurrence has only norms. Uses u's candidate, which is free between iterations.
template <Scalar T>
ColumnScalars BlockCgls<T>::residual_gap(ColumnRun<T>& run) {
  DistMatrix<T> R = u_.candidate(run.active_count()), upper = data_rows(R);
  run.copy_right_hand_side(upper);
  A.apply(T(-1), x_, T(1), upper);
  const auto [rr, xx] = run.sum(norm2(upper), norm2(x_));
  return abs(sqrt(rr + run.squared_damping() * xx) - run.damped_residual_norms());
}

}  // namespace

template <>
struct MethodOf<Solver::block_cgls> {
  template <Scalar T>
  using Type = BlockCgls<T>;
};

#define GRIDLOPS_INSTANTIATE(T) \
  template MethodPtr<T> make_method_of<Solver::block_cgls>(const SolverCall<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
