// SPDX-License-Identifier: BSD-3-Clause
#include "solve/golub_kahan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"

namespace gridlops {

Rotation Rotation::of(double a, double b) {
  const double r = std::hypot(a, b);
  return r == 0 ? Rotation{} : Rotation{a / r, b / r, r};
}

template <Scalar T>
std::vector<NamedMatrix<T>> GolubKahan<T>::lasting(const Partition& columns) {
  std::vector<NamedMatrix<T>> matrices;
  DistMatrix<T> u = u_.matrix(A_.range(), columns);
  constexpr const char* names[] = {"u", "u_damped"};
  for (std::size_t part = 0; part < data_parts_.size(); ++part)
    matrices.push_back({names[part], stack_member(data_parts_, part, u)});
  matrices.push_back({"v", v_.matrix(A_.domain(), columns)});
  for (const OwnVector& own : own_vectors())
    matrices.push_back({own.name, own.memory->matrix(A_.domain(), columns)});
  return matrices;
}

template <Scalar T>
void GolubKahan<T>::visit(StateArchive& archive) {
  archive.visit_list(bidiagonal_);
  visit_own(archive);
}

template <Scalar T>
std::vector<double> GolubKahan<T>::normalise(ColumnRun<T>& run, DistMatrix<T>& X) {
  std::vector<double> norms(at(run.active_count())), inverses(norms.size());
  for (Index k = 0; k < run.active_count(); ++k) {
    norms[at(k)] = std::sqrt(run.sums().of(0, k));
    inverses[at(k)] = norms[at(k)] > 0 ? 1 / norms[at(k)] : 0;
  }
  run.scale(inverses, X);
  return norms;
}

template <Scalar T>
void GolubKahan<T>::start(ColumnRun<T>& run, bool from_zero) {
  DistMatrix<T> x = run.x(), u = run.matrix(u_, A_.range()), v = run.matrix(v_, A_.domain());
  run.copy(run.B(), u);
  if (!from_zero) A_.apply(T(-1), x, T(1), u);
  run.sums().begin(run.active_count());
  run.sums().add_norms_squared(u);
  run.sums().add_norms_squared(run.B());
  run.sums().add_norms_squared(x);
  run.sums().reduce();
  const std::vector<double> beta = normalise(run, u);
  for (Index k = 0; k < run.active_count(); ++k) {
    run.column(k).data_norm = std::sqrt(run.sums().of(1, k));
    run.column(k).x_norm = std::sqrt(run.sums().of(2, k));
  }
  A_.apply_adjoint(T(1), u, T(0), v);
  run.sums().begin(run.active_count());
  run.sums().add_norms_squared(v);
  run.sums().reduce();
  const std::vector<double> alpha = normalise(run, v);
  bidiagonal_.assign(at(run.active_count()), {});
  for (Index k = 0; k < run.active_count(); ++k) {
    bidiagonal_[at(k)] = {alpha[at(k)], beta[at(k)]};
    ColumnState& state = run.column(k);
    state.residual_norm = beta[at(k)];
    state.tested_norm = state.reference = alpha[at(k)] * beta[at(k)];
  }
  begin(run, v, bidiagonal_);
}

template <Scalar T>
bool GolubKahan<T>::iterate(ColumnRun<T>& run) {
  DistMatrix<T> u = run.matrix(u_, A_.range()), v = run.matrix(v_, A_.domain());
  std::vector<Bidiagonal> now(at(run.active_count()));
  std::vector<double> factors(now.size());
  for (Index k = 0; k < run.active_count(); ++k) factors[at(k)] = -bidiagonal_[at(run.number(k))].alpha;
  run.scale(factors, u);
  A_.apply(T(1), v, T(1), u);
  run.sums().begin(run.active_count());
  run.sums().add_norms_squared(u);
  add_norms(run);
  if (run.reduce()) return false;
  std::vector<double> own_norms_squared(now.size());
  for (Index k = 0; k < run.active_count(); ++k) own_norms_squared[at(k)] = run.sums().of(1, k);
  const std::vector<double> beta = normalise(run, u);
  for (std::size_t k = 0; k < beta.size(); ++k) factors[k] = -beta[k];
  run.scale(factors, v);
  A_.apply_adjoint(T(1), u, T(1), v);
  run.sums().begin(run.active_count());
  run.sums().add_norms_squared(v);
  begin_step(run, beta);
  run.sums().reduce();
  const std::vector<double> alpha = normalise(run, v);
  for (Index k = 0; k < run.active_count(); ++k)
    bidiagonal_[at(run.number(k))] = now[at(k)] = {alpha[at(k)], beta[at(k)]};
  advance(run, v, now, own_norms_squared);
  return true;
}

template <Scalar T>
void GolubKahan<T>::set_norms(ColumnState& state, double damped_residual, double gradient) const {
  const double penalty = damp() * state.x_norm;
  const double squared = damped_residual * damped_residual - penalty * penalty;
  state.residual_norm = squared < 0 ? 0 : std::sqrt(squared);  // NaN stays NaN
  state.tested_norm = gradient;
}

template <Scalar T>
void GolubKahan<T>::add_final_norms(ColumnRun<T>& run) {
  DistMatrix<T> x = run.x(), u = run.matrix(u_, A_.range()), v = run.matrix(v_, A_.domain());
  run.copy(run.B(), u);
  A_.apply(T(-1), x, T(1), u);
  run.sums().add_norms_squared(u);
  run.copy(x, v);
  A_.apply_adjoint(T(1), u, to_scalar<T>(-damp() * damp()), v);
  run.sums().add_norms_squared(v);
  run.sums().add_norms_squared(v);
  run.sums().add_norms_squared(x);
}

// The tests of LSQR (Paige, Saunders: LSQR: an algorithm for sparse linear equations and sparse least
// squares, ACM TOMS 8, 1982, §6): a small residual, or a small gradient.
template <Scalar T>
bool GolubKahan<T>::meets_tolerance(const ColumnState& column, double tolerance) const {
  if (column.tested_norm == 0) return true;
  const double atol = options_.atol.value_or(tolerance), btol = options_.btol.value_or(tolerance);
  const double r = std::hypot(column.residual_norm, damp() * column.x_norm);
  return r <= btol * column.data_norm + atol * column.operator_norm * column.x_norm ||
         column.tested_norm <= atol * column.operator_norm * r;
}

template <Scalar T>
bool GolubKahan<T>::at_rounding_level(const ColumnState& column) const {
  const double unit = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
  const double r = std::hypot(column.residual_norm, damp() * column.x_norm);
  return r <= unit * (column.data_norm + column.operator_norm * column.x_norm) ||
         column.tested_norm <= unit * column.operator_norm * r;
}

template <Scalar T>
bool GolubKahan<T>::beyond_condition_limit(const ColumnState& column) const {
  return options_.condition_limit > 0 && column.condition >= options_.condition_limit;
}

#define GRIDLOPS_INSTANTIATE(T) template class GolubKahan<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
