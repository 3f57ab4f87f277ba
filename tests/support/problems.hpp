// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gridlops/base/random.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solver.hpp"
#include "support/catch.hpp"
#include "support/test_data.hpp"

namespace gridlops::testing {

/// A matrix, given by its elements.
template <Scalar T>
using Element = std::function<T(Index i, Index j)>;

template <Scalar T>
constexpr double epsilon_of = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());

/// `count` values from 1 down to 1/condition, each smaller than the one before by the same factor.
inline std::vector<double> geometric(Index count, double condition) {
  std::vector<double> values;
  for (Index k = 0; k < count; ++k)
    values.push_back(
        count == 1 ? 1 : std::pow(condition, -static_cast<double>(k) / static_cast<double>(count - 1)));
  return values;
}

/// A = U Σ Vᴴ, where U and V are Householder reflectors of random vectors. The singular values and vectors
/// are known, and an element costs a few operations.
template <Scalar T>
class KnownSpectrum {
 public:
  using Wide = Accumulator<T>;

  /// m × n with these min(m, n) singular values, of any order and sign.
  KnownSpectrum(Index m, Index n, std::vector<double> values, std::uint64_t seed = 1)
      : KnownSpectrum(std::move(values), unit_vector(m, seed), unit_vector(n, seed + 1)) {}

  /// Hermitian, with these eigenvalues.
  static KnownSpectrum hermitian(std::vector<double> values, std::uint64_t seed = 1) {
    const std::vector<Wide> u = unit_vector(static_cast<Index>(values.size()), seed);
    return KnownSpectrum(std::move(values), u, u);
  }

  Index rows() const { return static_cast<Index>(u_.size()); }
  Index cols() const { return static_cast<Index>(v_.size()); }

  T operator()(Index i, Index j) const {
    const Wide u_i = u_[at(i)], conj_v_j = conjugate(v_[at(j)]);
    return narrow((i == j ? value(i) : 0.0) - 2.0 * u_i * conjugate(entry(u_, j)) * value(j) -
                  2.0 * value(i) * entry(v_, i) * conj_v_j + 4.0 * u_i * coupling_ * conj_v_j);
  }
  /// Element i of the k-th left (right) singular vector; for k ≥ min(m, n) it is orthogonal to the range of A
  /// (in the kernel of A).
  T left(Index i, Index k) const { return reflector(u_, i, k); }
  T right(Index i, Index k) const { return reflector(v_, i, k); }

  /// The x that minimises ‖A x − b‖² + D²‖x‖² for column j of b: the shortest if D is 0.
  std::vector<T> least_squares_solution(const Element<T>& b, Index j, double damp) const {
    std::vector<Wide> x(v_.size(), 0);
    for (Index k = 0; k < static_cast<Index>(values_.size()); ++k) {
      if (value(k) == 0) continue;
      const Wide along = component(b, j, k) * (value(k) / (value(k) * value(k) + damp * damp));
      for (Index i = 0; i < cols(); ++i) x[at(i)] += along * Wide(right(i, k));
    }
    return {x.begin(), x.end()};
  }
  /// Column j of b along the k-th left singular vector.
  Wide component(const Element<T>& b, Index j, Index k) const {
    Wide along = 0;
    for (Index i = 0; i < rows(); ++i) along += Wide(conjugate(left(i, k))) * Wide(b(i, j));
    return along;
  }

 private:
  KnownSpectrum(std::vector<double> values, std::vector<Wide> u, std::vector<Wide> v)
      : values_(std::move(values)), u_(std::move(u)), v_(std::move(v)) {
    for (Index k = 0; k < static_cast<Index>(values_.size()); ++k)
      coupling_ += conjugate(u_[at(k)]) * value(k) * v_[at(k)];
  }

  static std::vector<Wide> unit_vector(Index n, std::uint64_t seed) {
    std::vector<Wide> x;
    double squares = 0;
    for (Index i = 0; i < n; ++i) {
      x.push_back(counter_random<Wide>(seed, i, 0));
      squares += std::norm(x.back());
    }
    for (Wide& element : x) element /= std::sqrt(squares);
    return x;
  }
  static T reflector(const std::vector<Wide>& w, Index i, Index k) {
    return narrow((i == k ? 1.0 : 0.0) - 2.0 * w[at(i)] * conjugate(w[at(k)]));
  }
  static T narrow(Wide value) {
    if constexpr (is_complex<T>) {
      return T(static_cast<Real<T>>(value.real()), static_cast<Real<T>>(value.imag()));
    } else {
      return static_cast<T>(value);
    }
  }
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  double value(Index k) const { return k < static_cast<Index>(values_.size()) ? values_[at(k)] : 0.0; }
  static Wide entry(const std::vector<Wide>& x, Index i) {
    return i < static_cast<Index>(x.size()) ? x[at(i)] : Wide(0);
  }

  std::vector<double> values_;
  std::vector<Wide> u_, v_;
  Wide coupling_ = 0;
};

/// Random elements. `first` is the number of the first column.
template <Scalar T>
Element<T> random_elements(std::uint64_t seed, Index first = 0) {
  return [=](Index i, Index j) { return counter_random<T>(seed, i, first + j); };
}

template <Scalar T>
OperatorPtr<T> dense_operator(const GridPtr& grid, Algorithm algorithm, Index m, Index n,
                              const Element<T>& element, const MatrixMultOptions& options = {}) {
  DistMatrix<T> A(grid, matrix_layout(algorithm, *grid, m, n));
  A.fill(element);
  return matrix_mult(algorithm, std::move(A), options);
}

template <Scalar T>
OperatorPtr<T> dense_operator(const GridPtr& grid, Algorithm algorithm, const KnownSpectrum<T>& A,
                              const MatrixMultOptions& options = {}) {
  return dense_operator<T>(grid, algorithm, A.rows(), A.cols(), Element<T>(A), options);
}

/// A square matrix as an operator from a space to itself, by any algorithm.
template <Scalar T>
OperatorPtr<T> square_operator(const GridPtr& grid, Algorithm algorithm, const KnownSpectrum<T>& matrix,
                               const MatrixMultOptions& options = {}) {
  const OperatorPtr<T> A = dense_operator(grid, algorithm, matrix, options);
  return A->domain() == A->range() ? A : product(identity<T>(A->domain(), A->range()), A);
}

/// The whole of X on every member of its grid, column by column; empty on idle ranks.
template <Scalar T>
std::vector<T> everywhere(const ConstDistMatrix<T>& X) {
  if (!X.grid()->is_member()) return {};
  std::vector<T> whole = gather(X, 0);
  whole.resize(static_cast<std::size_t>(X.rows() * X.cols()));
  X.grid()->comm().broadcast(whole, 0);
  return whole;
}

/// CGLS with one pass over A per iteration, if the operator supports it.
template <Scalar T>
SolveReport one_pass_cgls(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                          const SolveOptions& options) {
  SolveOptions in_one_pass = options;
  in_one_pass.one_pass = true;
  return cgls(A, B, X, in_one_pass);
}

template <Scalar T>
using SolverFunction = SolveReport (*)(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&,
                                       const SolveOptions&);

template <Scalar T>
struct Solution {
  SolveReport report;
  std::vector<T> X;  ///< the whole of X, on every member of the grid
  Index rows = 0;

  std::vector<T> column(Index j) const { return {X.begin() + j * rows, X.begin() + (j + 1) * rows}; }
  const ColumnReport& verdict(Index j) const { return report.columns[static_cast<std::size_t>(j)]; }
};

/// Solves for these columns. Without an initial guess, X holds NaN before the solve.
template <Scalar T>
Solution<T> solve(SolverFunction<T> solver, const LinearOperator<T>& A, const Partition& columns,
                  const Element<T>& b, SolveOptions options = {}, const Element<T>& guess = {}) {
  DistMatrix<T> B(A.range().grid, A.range().layout(columns)), X(A.domain().grid, A.domain().layout(columns));
  const T nan(std::numeric_limits<Real<T>>::quiet_NaN());
  B.fill(b);
  X.fill(guess ? guess : [nan](Index, Index) { return nan; });
  options.initial_guess = static_cast<bool>(guess);
  SolveReport report = solver(A, B, X, options);
  return {std::move(report), everywhere(X), A.cols()};
}

template <Scalar T>
Solution<T> solve(SolverFunction<T> solver, const LinearOperator<T>& A, Index nrhs, const Element<T>& b,
                  const SolveOptions& options = {}, const Element<T>& guess = {}) {
  const Partition columns = A.range().layout(nrhs).cols.partition;
  return solve(solver, A, columns, b, options, guess);
}

/// Solves for column j alone.
template <Scalar T>
Solution<T> solve_alone(SolverFunction<T> solver, const LinearOperator<T>& A, Index j, const Element<T>& b,
                        const SolveOptions& options = {}, const Element<T>& guess = {}) {
  const auto of_column = [j](const Element<T>& many) -> Element<T> {
    if (!many) return {};
    return [many, j](Index i, Index) { return many(i, j); };
  };
  return solve(solver, A, Index{1}, of_column(b), options, of_column(guess));
}

template <Scalar T>
double norm_of(const std::vector<T>& x) {
  double squares = 0;
  for (const T element : x) squares += std::norm(static_cast<Accumulator<T>>(element));
  return std::sqrt(squares);
}

/// ‖x − y‖ / ‖y‖.
template <Scalar T>
double relative_difference(const std::vector<T>& x, const std::vector<T>& y) {
  std::vector<T> difference;
  for (std::size_t i = 0; i < y.size(); ++i) difference.push_back(x[i] - y[i]);
  const double norm = norm_of(difference);
  return norm == 0 ? 0 : norm / norm_of(y);
}

/// The error against a reference in extended precision; ‖x‖ where the reference is zero.
template <Scalar T>
double relative_difference(const std::vector<T>& x, const std::vector<Extended<T>>& y) {
  long double difference = 0, norm = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    difference += std::norm(extended(x[i]) - y[i]);
    norm += std::norm(y[i]);
  }
  return static_cast<double>(std::sqrt(norm == 0 ? difference : difference / norm));
}

/// The products of an operator with these models and data: A X, Aᴴ Y, and the three of a normal product.
template <Scalar T>
std::vector<T> products(const LinearOperator<T>& op, const Whole<T>& X, const Whole<T>& Y) {
  const GridPtr& grid = op.domain().grid;
  const DistMatrix<T> model = filled(grid, op.domain().layout(X.cols), X);
  const DistMatrix<T> data = filled(grid, op.range().layout(Y.cols), Y);
  DistMatrix<T> AX = filled(grid, data.layout(), Y), AhY = filled(grid, model.layout(), X);
  op.apply(number<T>(1, 2), model, number<T>(3, -1), AX);
  op.apply_adjoint(number<T>(-1, 1), data, T(0), AhY);
  DistMatrix<T> Q(grid, data.layout()), U(grid, model.layout()), V(grid, model.layout());
  op.normal_product(model, data, Q, U, V);
  std::vector<T> all;
  for (const DistMatrix<T>* result : {&AX, &AhY, &Q, &U, &V}) {
    const std::vector<T> block = on_host<T>(*result);
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

}  // namespace gridlops::testing
