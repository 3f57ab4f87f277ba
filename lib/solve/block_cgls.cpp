// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/error.hpp"
#include "gridlops/operator_algebra.hpp"
#include "solve/block_basis.hpp"
#include "solve/block_scalars.hpp"
#include "solve/column_method.hpp"
#include "solve/stacked_guess.hpp"

namespace gridlops {

namespace {

/// Block CGLS by the bidiagonalisation of Golub and Kahan with blocks for vectors,
///
///   U₁ β = R₀,  V₁ L₁ = Aᴴ U₁,    U₊ K = A V − U Lᴴ,  V₊ L₊ = Aᴴ U₊ − V Kᴴ,
///
/// U and V orthonormal (Golub, Luk, Overton: A block Lanczos method for computing the singular values and
/// corresponding singular vectors of a matrix, ACM TOMS 7, 1981). The iterates are those of conjugate
/// gradients with blocks of residuals (O'Leary: The block conjugate gradient algorithm and related methods,
/// Linear Algebra Appl. 29, 1980), but there are no residuals whose growing dependence could spoil the
/// directions. The price: what a column that has ended put into the space stays until all have ended;
/// without it the others would lose the conjugacy of their directions, and take many times as long.
///
/// Columns enter U₁ scaled to ‖r‖ = 1. Damping makes A [A; D·I]; then U has the rows of both.
template <Scalar T>
class BlockCgls final : public ColumnMethod<T> {
  using Small = SmallMatrix<Accumulator<T>>;

 public:
  BlockCgls(const LinearOperator<T>& A, double damp)
      : A_(A),
        damp_(damp),
        stacked_(damp > 0 ? damped(OperatorPtr<T>(OperatorPtr<T>(), &A), damp) : nullptr),
        u_(full().range()),
        v_(A.domain()) {
    const Space& space = A.domain();
    require<ShapeError>(space.grid->parts(space.columns) == 1,
                        "block_cgls: right-hand sides that share a Krylov space must lie together, but the "
                        "operator's are cut along ",
                        name_of(space.columns), " into ", space.grid->parts(space.columns),
                        " parts; make it with Algorithm::stationary_a, or use cgls()");
  }

  const char* name() const override { return "block-cgls"; }
  const LinearOperator<T>& A() const override { return A_; }

  void prepare(ColumnRun<T>& run) override;
  void start(ColumnRun<T>& run, bool from_zero) override;
  bool iterate(ColumnRun<T>& run) override;
  std::vector<NamedMatrix<T>> lasting(const Partition&) override { return {}; }
  std::vector<NamedMatrix<T>> shared() override;
  void visit(StateArchive& archive) override { archive.visit(u_, v_, p_width_, L_, scalars_, scale_, norm_); }
  std::string parameters() const override { return message("damping ", damp_); }
  void add_final_norms(ColumnRun<T>& run) override;
  void restart(ColumnRun<T>& run) override { begin_space(run); }

  // As for CGLS, with the norms of the damped system.
  bool at_rounding_level(const ColumnState& column) const override {
    const double unit = 10 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
    return column.tested_norm <= unit * scale_ * norm_ * full_residual_norm(column) ||
           (damp_ == 0 && column.residual_norm <= unit * column.operator_norm * column.x_norm);
  }

 private:
  const LinearOperator<T>& full() const { return stacked_ ? *stacked_ : A_; }
  double full_residual_norm(const ColumnState& column) const {
    const double penalty = damp_ * column.x_norm;
    return std::sqrt(column.residual_norm * column.residual_norm + penalty * penalty);
  }
  T scaled(double alpha) const { return to_scalar<T>(alpha / scale_); }

  DistMatrix<T> data_rows(DistMatrix<T>& R) const { return stack_member({A_.range()}, 0, R); }
  DistMatrix<T> load_data(ColumnRun<T>& run);
  void reduce_norms(ColumnRun<T>& run, const DistMatrix<T>& S, const DistMatrix<T>& R);
  void begin_space(ColumnRun<T>& run);
  Small choose_columns(ColumnRun<T>& run);
  void note_norms(const Small& L, const Small& K);
  void move_x(ColumnRun<T>& run);
  void set_norms(ColumnRun<T>& run);

  const LinearOperator<T>& A_;
  const double damp_;
  const OperatorPtr<T> stacked_;  // [A; D·I], with damping
  BlockBasis<T> u_, v_;
  Scratch<T> p_;
  Index p_width_ = 0;
  Small L_;
  BlockScalars<Accumulator<T>> scalars_;
  double scale_ = 1;  // A is divided by it, so that squares of its products can be summed in any precision
  double norm_ = 0;   // of A/scale, from below
};

/// [B; 0], in the memory of u's candidate.
template <Scalar T>
DistMatrix<T> BlockCgls<T>::load_data(ColumnRun<T>& run) {
  DistMatrix<T> R = u_.candidate(run.active_count());
  if (damp_ > 0) R.set_zero();
  DistMatrix<T> upper = data_rows(R);
  run.copy(run.B(), upper);
  return R;
}

template <Scalar T>
void BlockCgls<T>::reduce_norms(ColumnRun<T>& run, const DistMatrix<T>& S, const DistMatrix<T>& R) {
  run.sums().begin(run.active_count());
  run.sums().add_norms_squared(S);
  run.sums().add_norms_squared(R);
  run.sums().add_norms_squared(run.x());
  run.sums().reduce();
  for (Index k = 0; k < run.active_count(); ++k) {
    ColumnState& state = run.column(k);
    state.tested_norm = std::sqrt(run.sums().of(0, k));
    state.residual_norm = std::sqrt(run.sums().of(1, k));
    state.x_norm = std::sqrt(run.sums().of(2, k));
  }
}

template <Scalar T>
void BlockCgls<T>::prepare(ColumnRun<T>& run) {
  u_.reserve(run.active_count());
  v_.reserve(run.active_count());
  p_.matrix(A_.domain(), uncut_columns(run.active_count()));
}

template <Scalar T>
std::vector<NamedMatrix<T>> BlockCgls<T>::shared() {
  std::vector<NamedMatrix<T>> matrices;
  DistMatrix<T> u = u_.block();
  if (stacked_) {
    const std::vector<Space> parts = damped_range(A_.range(), A_.domain());
    matrices.push_back({"u", stack_member(parts, 0, u)});
    matrices.push_back({"u_damped", stack_member(parts, 1, u)});
  } else {
    matrices.push_back({"u", std::move(u)});
  }
  matrices.push_back({"v", v_.block()});
  matrices.push_back({"p", p_.matrix(A_.domain(), uncut_columns(p_width_))});
  return matrices;
}

template <Scalar T>
void BlockCgls<T>::start(ColumnRun<T>& run, bool from_zero) {
  norm_ = 0;
  // The reference is the larger of the tested norms for x = 0 and for x₀, neither with damping.
  const auto raise_references = [&run] {
    for (Index k = 0; k < run.active_count(); ++k)
      run.column(k).reference = std::max(run.column(k).reference, run.column(k).tested_norm);
  };
  DistMatrix<T> R = load_data(run), S = v_.candidate(run.active_count()), upper = data_rows(R);
  if (!from_zero) {
    A_.apply_adjoint(T(1), upper, T(0), S);
    reduce_norms(run, S, upper);
    raise_references();
    full().apply(T(-1), run.x(), T(1), R);
  }
  A_.apply_adjoint(T(1), upper, T(0), S);
  reduce_norms(run, S, upper);
  raise_references();
  double ratio = 0;
  for (Index k = 0; k < run.active_count(); ++k) {
    const double of_column = run.column(k).tested_norm / run.column(k).residual_norm;
    if (std::isfinite(of_column)) ratio = std::max(ratio, of_column);
  }
  scale_ = ratio > 0 ? std::ldexp(1.0, std::ilogb(ratio)) : 1;
  if (!from_zero && damp_ > 0) {
    full().apply_adjoint(T(1), R, T(0), S);
    reduce_norms(run, S, upper);
  }
  begin_space(run);
}

/// U₁ and V₁ from the residuals in u's candidate, all columns in their places.
template <Scalar T>
void BlockCgls<T>::begin_space(ColumnRun<T>& run) {
  const Small beta = choose_columns(run);
  DistMatrix<T> S = v_.candidate(u_.width());
  full().apply_adjoint(scaled(1), u_.block(), T(0), S);
  run.sums().begin(0);
  v_.forget();
  v_.add_gram(run.sums());
  run.sums().reduce();
  // However short beside A these gradients are, there is nothing else to go on from.
  L_ = v_.adopt(run.sums(), 0);
  note_norms(L_, Small());
  scalars_.begin(L_, beta);
  p_width_ = 0;
}

/// Makes U₁ of the residuals of the columns that have not ended, and returns β, with all columns. A column
/// that is not finite, or zero, stays outside.
template <Scalar T>
typename BlockCgls<T>::Small BlockCgls<T>::choose_columns(ColumnRun<T>& run) {
  const Index count = run.active_count();
  std::vector<double> norms(at(count)), inverses(at(count), 0.0);
  std::vector<Index> chosen;
  for (Index k = 0; k < count; ++k) {
    const ColumnState& state = run.column(k);
    norms[at(k)] = full_residual_norm(state);
    const bool unsolved = !state.reason && state.finite() && !this->meets_tolerance(state, run.tolerance());
    if (!unsolved || !std::isfinite(static_cast<Real<T>>(1 / norms[at(k)]))) continue;
    inverses[at(k)] = 1 / norms[at(k)];
    chosen.push_back(k);
  }
  DistMatrix<T> R = u_.candidate(count);
  run.scale(inverses, R);
  for (std::size_t c = 0; c < chosen.size(); ++c) {
    const auto to = static_cast<Index>(c);
    if (to != chosen[c])
      run.kernels().copy(R.local().col_block({chosen[c], 1}), R.local().col_block({to, 1}));
  }
  u_.forget();
  u_.candidate(static_cast<Index>(chosen.size()));
  run.sums().begin(0);
  u_.add_gram(run.sums());
  run.sums().reduce();
  const Small K = u_.adopt(run.sums(), 0);
  Small beta(K.rows(), count);
  for (std::size_t c = 0; c < chosen.size(); ++c)
    for (Index i = 0; i < K.rows(); ++i)
      beta(i, chosen[c]) = K(i, static_cast<Index>(c)) * norms[at(chosen[c])];
  return beta;
}

/// ‖A v‖² is the sum of the squares in v's columns of Lᴴ and K.
template <Scalar T>
void BlockCgls<T>::note_norms(const Small& L, const Small& K) {
  for (Index i = 0; i < L.rows(); ++i) {
    double squares = K.rows() > 0 ? K.column_norm_squared(i) : 0;
    for (Index j = 0; j < L.cols(); ++j) squares += std::norm(L(i, j));
    norm_ = std::max(norm_, std::sqrt(squares));
  }
}

template <Scalar T>
bool BlockCgls<T>::iterate(ColumnRun<T>& run) {
  constexpr double epsilon = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
  DistMatrix<T> W = u_.candidate(v_.width());
  full().apply(scaled(1), v_.block(), T(0), W);
  u_.add_product(-1, u_.block(), adjoint(L_), W);
  run.sums().begin(run.active_count());
  u_.add_gram(run.sums());
  if (run.reduce()) return false;
  const Small K = u_.adopt(run.sums(), norm_);
  note_norms(L_, K);
  scalars_.eliminate(K, epsilon * norm_);
  move_x(run);

  DistMatrix<T> S = v_.candidate(u_.width());
  full().apply_adjoint(scaled(1), u_.block(), T(0), S);
  v_.add_product(-1, v_.block(), adjoint(K), S);
  run.sums().begin(run.active_count());
  run.sums().add_norms_squared(run.x());
  v_.add_gram(run.sums());
  run.sums().reduce();
  for (Index k = 0; k < run.active_count(); ++k) run.column(k).x_norm = std::sqrt(run.sums().of(0, k));
  L_ = v_.adopt(run.sums(), norm_);
  scalars_.extend(L_);
  set_norms(run);
  return true;
}

/// P = (V − P θ) ρ⁻¹, x += P φ.
template <Scalar T>
void BlockCgls<T>::move_x(ColumnRun<T>& run) {
  DistMatrix<T> rest = v_.candidate(v_.width()), old = p_.matrix(A_.domain(), uncut_columns(p_width_));
  run.copy(v_.block(), rest);
  v_.add_product(-1, old, scalars_.theta(), rest);
  p_width_ = v_.width();
  DistMatrix<T> P = p_.matrix(A_.domain(), uncut_columns(p_width_));
  P.set_zero();
  v_.add_product(1, rest, scalars_.rho_inverse(), P);
  Small steps(p_width_, run.active_count());
  for (Index k = 0; k < run.active_count(); ++k)
    for (Index i = 0; i < p_width_; ++i) steps(i, k) = scalars_.phi()(i, run.number(k)) / scale_;
  DistMatrix<T> x = run.x();
  v_.add_product(1, P, steps, x);
}

template <Scalar T>
void BlockCgls<T>::set_norms(ColumnRun<T>& run) {
  const double operator_norm = std::sqrt(std::max(0.0, scale_ * scale_ * norm_ * norm_ - damp_ * damp_));
  for (Index k = 0; k < run.active_count(); ++k) {
    ColumnState& state = run.column(k);
    const double penalty = damp_ * state.x_norm;
    const double squared = scalars_.residual_squared(run.number(k)) - penalty * penalty;
    // Where nothing is left of the residual, max() must not make zero of NaN.
    state.residual_norm = squared < 0 ? 0 : std::sqrt(squared);
    state.tested_norm = scale_ * std::sqrt(scalars_.gradient_squared(run.number(k)));
    state.operator_norm = operator_norm;
  }
}

template <Scalar T>
void BlockCgls<T>::add_final_norms(ColumnRun<T>& run) {
  DistMatrix<T> R = load_data(run), S = v_.candidate(run.active_count());
  full().apply(T(-1), run.x(), T(1), R);
  full().apply_adjoint(T(1), R, T(0), S);
  run.sums().add_norms_squared(data_rows(R));
  run.sums().add_norms_squared(S);
  run.sums().add_norms_squared(S);
  run.sums().add_norms_squared(run.x());
}

}  // namespace

template <Scalar T>
SolveReport block_cgls(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                       const SolveOptions& options) {
  BlockCgls<T> method(A, options.damp);
  return solve_columns(method, B, X, options);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                        \
  template SolveReport block_cgls(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&, \
                                  const SolveOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
