// SPDX-License-Identifier: BSD-3-Clause
#include "solve/conjugate_directions.hpp"

#include <algorithm>
#include <cmath>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"

namespace gridlops {

template <Scalar T>
typename ConjugateDirections<T>::Vectors ConjugateDirections<T>::vectors(ColumnRun<T>& run) {
  DistMatrix<T> r = run.matrix(r_, A_.range());
  DistMatrix<T> s =
      tests_residual() ? DistMatrix<T>(r.grid(), r.layout(), r.local()) : run.matrix(s_, A_.domain());
  DistMatrix<T> z =
      M_ == nullptr ? DistMatrix<T>(s.grid(), s.layout(), s.local()) : run.matrix(z_, A_.domain());
  return {run.x(),      std::move(r), run.matrix(p_, A_.domain()), run.matrix(q_, A_.range()),
          std::move(s), std::move(z)};
}

template <Scalar T>
std::vector<NamedMatrix<T>> ConjugateDirections<T>::lasting(const Partition& columns) {
  std::vector<NamedMatrix<T>> matrices;
  matrices.push_back({"r", r_.matrix(A_.range(), columns)});
  matrices.push_back({"p", p_.matrix(A_.domain(), columns)});
  return matrices;
}

template <Scalar T>
void ConjugateDirections<T>::add_damping(int factor, const DistMatrix<T>& x, DistMatrix<T>& y) const {
  if (damp_ == 0) return;
  const T coefficient = to_scalar<T>(factor * damp_ * damp_);
  y.grid()->backend()->template kernels<T>().add(coefficient, x.local(), T(1), y.local());
}

template <Scalar T>
void ConjugateDirections<T>::start(ColumnRun<T>& run, bool from_zero) {
  gamma_.assign(at(run.active_count()), 0);
  Vectors v = vectors(run);
  run.copy(run.B(), v.r);
  if (!from_zero) {
    // The reference is the larger of the tested norms for x = 0 and for x₀, neither with damping.
    compute_gradient(v);
    reduce_norms(run, v);
    raise_references(run);
    A_.apply(T(-1), v.x, T(1), v.r);
  }
  compute_gradient(v);
  reduce_norms(run, v);
  raise_references(run);
  if (!from_zero && damp_ > 0) {
    add_damping(-1, v.x, v.s);
    reduce_norms(run, v);
  }
  for (Index k = 0; k < run.active_count(); ++k) take_norms(run, k);
  run.copy(v.z, v.p);
}

template <Scalar T>
void ConjugateDirections<T>::reduce_norms(ColumnRun<T>& run, Vectors& v) {
  if (M_ != nullptr) M_->apply(T(1), v.s, T(0), v.z);
  run.sums().begin(run.active_count());
  run.sums().add_norms_squared(v.s);
  run.sums().add_norms_squared(v.r);
  run.sums().add_norms_squared(v.x);
  if (M_ != nullptr) run.sums().add_real_dots(v.s, v.z);
  run.sums().reduce();
}

template <Scalar T>
double ConjugateDirections<T>::gamma(ColumnRun<T>& run, Index k) const {
  return run.sums().of(M_ == nullptr ? 0 : 3, k);
}

template <Scalar T>
void ConjugateDirections<T>::raise_references(ColumnRun<T>& run) {
  for (Index k = 0; k < run.active_count(); ++k)
    run.column(k).reference = std::max(run.column(k).reference, std::sqrt(run.sums().of(0, k)));
}

template <Scalar T>
void ConjugateDirections<T>::take_norms(ColumnRun<T>& run, Index k) {
  ColumnState& state = run.column(k);
  gamma_[at(run.number(k))] = gamma(run, k);
  state.tested_norm = std::sqrt(run.sums().of(0, k));
  state.residual_norm = std::sqrt(run.sums().of(1, k));
  state.x_norm = std::sqrt(run.sums().of(2, k));
}

template <Scalar T>
bool ConjugateDirections<T>::iterate(ColumnRun<T>& run) {
  Vectors v = vectors(run);
  compute_product(v);
  run.sums().begin(run.active_count());
  run.sums().add_norms_squared(v.q);
  run.sums().add_norms_squared(v.p);
  add_denominator(v, run.sums());
  if (run.reduce()) return false;
  find_steps(run);
  run.axpy(scalars_, v.p, v.x);
  for (double& alpha : scalars_) alpha = -alpha;
  run.axpy(scalars_, v.q, v.r);
  follow_step(run, scalars_, v);
  reduce_norms(run, v);
  for (Index k = 0; k < run.active_count(); ++k) {
    scalars_[at(k)] = 0;
    if (run.column(k).reason) continue;
    const double old_gamma = gamma_[at(run.number(k))];
    take_norms(run, k);
    scalars_[at(k)] = gamma_[at(run.number(k))] / old_gamma;
  }
  run.xpby(v.z, scalars_, v.p);
  return true;
}

/// α for every active column; 0 for those that end here.
template <Scalar T>
void ConjugateDirections<T>::find_steps(ColumnRun<T>& run) {
  const ColumnSums<T>& sums = run.sums();
  scalars_.assign(at(run.active_count()), 0);
  for (Index k = 0; k < run.active_count(); ++k) {
    ColumnState& state = run.column(k);
    const double delta = denominator(sums, k), now = gamma_[at(run.number(k))];
    const double alpha = now / delta;
    state.operator_norm = std::max(state.operator_norm, std::sqrt(sums.of(0, k) / sums.of(1, k)));
    if (!std::isfinite(delta) || !std::isfinite(now)) {
      state.reason = StopReason::non_finite;
    } else if (delta <= 0 || now <= 0 || !std::isfinite(static_cast<Real<T>>(alpha))) {
      state.reason = StopReason::breakdown;
    } else if (state.iterations == 0 && this->at_rounding_level(state)) {
      state.reason = StopReason::stagnated;  // nothing of b is in the range of A
    } else {
      scalars_[at(k)] = alpha;
    }
  }
}

template <Scalar T>
void ConjugateDirections<T>::add_final_norms(ColumnRun<T>& run) {
  Vectors v = vectors(run);
  run.copy(run.B(), v.r);
  A_.apply(T(-1), v.x, T(1), v.r);
  run.sums().add_norms_squared(v.r);
  run.sums().add_norms_squared(compute_normal_residual(v));
  if (tests_residual()) add_damping(-1, v.x, v.s);
  run.sums().add_norms_squared(v.s);
  run.sums().add_norms_squared(v.x);
}

template <Scalar T>
void ConjugateDirections<T>::restart(ColumnRun<T>& run) {
  Vectors v = vectors(run);
  if (M_ != nullptr) reduce_norms(run, v);
  run.copy(v.z, v.p);
  for (Index k = 0; k < run.active_count(); ++k) {
    const double tested = run.column(k).tested_norm;
    gamma_[at(run.number(k))] = M_ == nullptr ? tested * tested : gamma(run, k);
  }
}

#define GRIDLOPS_INSTANTIATE(T) template class ConjugateDirections<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
