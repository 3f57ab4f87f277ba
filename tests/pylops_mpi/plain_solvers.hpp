// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/local/backend.hpp"
#include "gridlops/solve/solver.hpp"
#include "pylops_mpi/whole_arrays.hpp"

// Methods for one right-hand side and a dense matrix, written from their definitions.

namespace gridlops::testing {

/// Those of the tests of solvers.
struct SolverCase {
  Index rows, cols;  // of each rank's matrix
  bool guess, complex;
};
inline const std::vector<SolverCase> solver_cases{
    {11, 11, false, false}, {11, 11, false, true}, {11, 11, true, false}, {11, 11, true, true},
    {31, 11, false, false}, {31, 11, false, true}, {31, 11, true, false}, {31, 11, true, true},
};

template <Scalar T>
using Vector = std::vector<T>;

template <Scalar T>
Vector<T> plus(Vector<T> x, T factor, const Vector<T>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += factor * y[i];
  return x;
}
template <Scalar T>
Vector<T> residual(const Whole<T>& A, const Vector<T>& x, const Vector<T>& b) {
  return plus(b, T(-1), times(A, x));
}
template <Scalar T>
double squared_norm(const Vector<T>& x) {
  return norm_of(x) * norm_of(x);
}

/// Conjugate gradients (Hestenes, Stiefel 1952).
template <Scalar T>
Vector<T> plain_cg(const Whole<T>& A, const Vector<T>& b, Vector<T> x, int iterations) {
  Vector<T> r = residual(A, x, b), p = r;
  for (int k = 0; k < iterations; ++k) {
    const Vector<T> q = times(A, p);
    double pq = 0;
    for (std::size_t i = 0; i < p.size(); ++i) pq += std::real(conjugate(p[i]) * q[i]);
    const double before = squared_norm(r), alpha = before / pq;
    x = plus(x, T(alpha), p), r = plus(r, T(-alpha), q);
    p = plus(r, T(squared_norm(r) / before), p);
  }
  return x;
}

/// The same for the normal equations (Björck 1996, algorithm 7.4.1).
template <Scalar T>
Vector<T> plain_cgls(const Whole<T>& A, const Vector<T>& b, Vector<T> x, double damp, int iterations) {
  Vector<T> r = residual(A, x, b);
  const auto gradient = [&] { return plus(times(A, r, Op::adjoint), T(-damp * damp), x); };
  Vector<T> s = gradient(), p = s;
  for (int k = 0; k < iterations; ++k) {
    const Vector<T> q = times(A, p);
    const double before = squared_norm(s);
    const double alpha = before / (squared_norm(q) + damp * damp * squared_norm(p));
    x = plus(x, T(alpha), p), r = plus(r, T(-alpha), q);
    s = gradient();
    p = plus(s, T(squared_norm(s) / before), p);
  }
  return x;
}

/// The proximal map of t times a penalty (backend.hpp).
template <Scalar T>
T thresholded(Threshold kind, T x, double t) {
  const double m = std::abs(x);
  if (m == 0) return x;
  if (kind == Threshold::soft) return m <= t ? T(0) : x * ((m - t) / m);
  if (kind == Threshold::hard) return m * m <= 2 * t ? T(0) : x;
  if (m <= std::cbrt(54.0) / 4 * std::pow(t, 2.0 / 3)) return T(0);
  const double pi = std::acos(-1.0), phi = 2.0 / 3 * std::acos(t / 8 * std::pow(m / 3, -1.5));
  return x * (2.0 / 3 * (1 + std::cos(2 * pi / 3 - phi)));
}

enum class Momentum { none, fista, vandenberghe };

/// Proximal gradient steps of length alpha, with momentum.
template <Scalar T>
Vector<T> plain_proximal_gradient(const Whole<T>& A, const Vector<T>& b, Vector<T> x, Threshold kind,
                                  double lambda, double alpha, Momentum momentum, int iterations) {
  Vector<T> y = x;
  double t = 1;
  for (int k = 0; k < iterations; ++k) {
    Vector<T> next = plus(y, T(alpha), times(A, residual(A, y, b), Op::adjoint));
    for (T& value : next) value = thresholded(kind, value, alpha * lambda);
    const double t_next = (1 + std::sqrt(1 + 4 * t * t)) / 2;
    const double omega = momentum == Momentum::none    ? 0
                         : momentum == Momentum::fista ? (t - 1) / t_next
                                                       : static_cast<double>(k) / (k + 3);
    t = t_next;
    y = plus(next, T(omega), plus(next, T(-1), x));
    x = next;
  }
  return x;
}

/// Whether a solve with tolerance 0 made all iterations, or, after 20 of them at least, found that rounding
/// lets it get no further.
inline bool made_its_iterations(const SolveReport& report, Index iterations) {
  const StopReason reason = report.columns[0].reason;
  if (report.iterations == iterations) return true;
  return report.iterations >= 20 && (reason == StopReason::stagnated || reason == StopReason::converged);
}

/// The largest eigenvalue of AᴴA, by many steps of power iteration.
template <Scalar T>
double largest_eigenvalue(const Whole<T>& A, int steps = 400) {
  Vector<T> v = random_array<T>(77, A.cols);
  double lambda = 0;
  for (int k = 0; k < steps; ++k) {
    v = times(A, times(A, v), Op::adjoint);
    lambda = norm_of(v);
    for (T& value : v) value /= lambda;
  }
  return lambda;
}

}  // namespace gridlops::testing
