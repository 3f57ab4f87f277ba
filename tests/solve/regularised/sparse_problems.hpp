// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/sparse_solver.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace gridlops::testing {

template <Scalar T>
using SparseSolver = SolveReport (*)(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&,
                                     const SolveOptions&);

/// Without an initial guess, X holds NaN before. S may be null.
template <Scalar T>
Solution<T> solve_sparse(bool momentum, const LinearOperator<T>& A, const LinearOperator<T>* S, Index nrhs,
                         const Element<T>& b, SolveOptions options, const Element<T>& guess = {}) {
  DistMatrix<T> B(A.range().grid, A.range().layout(nrhs)), X(A.domain().grid, A.domain().layout(nrhs));
  const T nan(std::numeric_limits<Real<T>>::quiet_NaN());
  B.fill(b);
  X.fill(guess ? guess : [nan](Index, Index) { return nan; });
  options.initial_guess = static_cast<bool>(guess);
  SolveReport report = S == nullptr ? (momentum ? fista(A, B, X, options) : ista(A, B, X, options))
                                    : (momentum ? fista(A, *S, B, X, options) : ista(A, *S, B, X, options));
  return {std::move(report), everywhere(X), A.cols()};
}

/// A dense problem with one right-hand side in extended precision, and ISTA and FISTA as the definitions say.
template <Scalar T>
class NaiveSparse {
 public:
  using Wide = Extended<T>;
  using Vector = std::vector<Wide>;

  NaiveSparse(Index m, Index n, const Element<T>& A, const Element<T>& b, Index column) : m_(m), n_(n) {
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i < m; ++i) A_.push_back(extended(A(i, j)));
    for (Index i = 0; i < m; ++i) b_.push_back(extended(b(i, column)));
  }

  void set_sparsifier(const Element<T>& S) {
    for (Index j = 0; j < n_; ++j)
      for (Index i = 0; i < n_; ++i) S_.push_back(extended(S(i, j)));
  }

  Vector residual(const Vector& x) const {
    Vector r = b_;
    for (Index j = 0; j < n_; ++j)
      for (Index i = 0; i < m_; ++i) r[at(i)] -= A_[at(i + j * m_)] * x[at(j)];
    return r;
  }
  Vector gradient(const Vector& x) const { return adjoint_product(A_, m_, residual(x)); }

  Vector solve(bool momentum, Threshold kind, long double lambda, long double alpha, Index iterations,
               Vector x, const std::vector<double>& decay = {}) const {
    Vector y = x;
    long double t = 1;
    for (Index k = 0; k < iterations; ++k) {
      const long double factor = decay.empty() ? 1 : decay[std::min(at(k), decay.size() - 1)];
      Vector next = y, g = gradient(y);
      for (std::size_t i = 0; i < next.size(); ++i) next[i] += alpha * g[i];
      if (!S_.empty()) next = adjoint_product(S_, n_, next);
      for (Wide& z : next) z = thresholded(kind, z, alpha * lambda * factor);
      if (!S_.empty()) next = product(S_, next);
      const long double t_next = (1 + std::sqrt(1 + 4 * t * t)) / 2, omega = momentum ? (t - 1) / t_next : 0;
      for (std::size_t i = 0; i < next.size(); ++i) y[i] = next[i] + omega * (next[i] - x[i]);
      x = next;
      t = t_next;
    }
    return x;
  }

  /// The objective ½‖Ax − b‖² + λ‖x‖₁.
  long double objective(const Vector& x, long double lambda) const {
    long double value = 0;
    for (const Wide& r : residual(x)) value += std::norm(r) / 2;
    for (const Wide& element : x) value += lambda * std::abs(element);
    return value;
  }

  /// By how much x fails to be the minimum, relative to λ. At the minimum Aᴴ(b − Ax) is λ x/|x| where x is
  /// not 0, and of modulus λ at most elsewhere.
  double optimality_defect(const Vector& x, long double lambda) const {
    long double worst = 0;
    const Vector g = gradient(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double magnitude = std::abs(x[i]);
      worst = std::max(worst, magnitude == 0
                                  ? std::abs(g[i]) - lambda
                                  : static_cast<long double>(std::abs(g[i] - lambda / magnitude * x[i])));
    }
    return static_cast<double>(worst / lambda);
  }

  /// The least λ for which x = 0 is the minimum.
  double largest_lambda() const {
    long double largest = 0;
    for (const Wide& g : gradient(Vector(at(n_), Wide(0))))
      largest = std::max<long double>(largest, std::abs(g));
    return static_cast<double>(largest);
  }

  Vector widened(const std::vector<T>& x) const {
    Vector result;
    for (const T element : x) result.push_back(extended(element));
    return result;
  }

  static Wide thresholded(Threshold kind, Wide x, long double t) {
    const long double magnitude = std::abs(x);
    if (kind == Threshold::soft) return magnitude <= t ? Wide(0) : x / magnitude * (magnitude - t);
    if (kind == Threshold::hard) return magnitude > std::sqrt(2 * t) ? x : Wide(0);
    if (magnitude <= std::pow(54.0L, 1.0L / 3) / 4 * std::pow(t, 2.0L / 3)) return Wide(0);
    const long double pi = std::acos(-1.0L),
                      phi = 2.0L / 3 * std::acos(t / 8 * std::pow(magnitude / 3, -1.5L));
    return x * (2.0L / 3 * (1 + std::cos(2 * pi / 3 - phi)));
  }

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  static Wide conjugated(Wide a) {
    if constexpr (is_complex<T>) {
      return std::conj(a);
    } else {
      return a;
    }
  }
  Vector adjoint_product(const Vector& M, Index rows, const Vector& y) const {
    Vector x(at(n_), Wide(0));
    for (Index j = 0; j < n_; ++j)
      for (Index i = 0; i < rows; ++i) x[at(j)] += conjugated(M[at(i + j * rows)]) * y[at(i)];
    return x;
  }
  Vector product(const Vector& M, const Vector& x) const {
    Vector y(at(n_), Wide(0));
    for (Index j = 0; j < n_; ++j)
      for (Index i = 0; i < n_; ++i) y[at(i)] += M[at(i + j * n_)] * x[at(j)];
    return y;
  }

  Index m_, n_;
  Vector A_, b_, S_;
};

}  // namespace gridlops::testing
