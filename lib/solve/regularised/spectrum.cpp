// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "ops/operator/library_operator.hpp"
#include "solve/problem_scale.hpp"

namespace gridlops {

namespace {

/// A real symmetric tridiagonal matrix; off_diagonal has one entry fewer than the diagonal.
struct Tridiagonal {
  std::vector<double> diagonal, off_diagonal;
};

struct Interval {
  double low = 0, high = 0;
};

/// The number of eigenvalues above x, from the signs in Sturm's sequence (Golub, Van Loan: Matrix
/// Computations, §8.4).
int eigenvalues_above(const Tridiagonal& matrix, double x) {
  int count = 0;
  double pivot = 1;
  for (std::size_t i = 0; i < matrix.diagonal.size(); ++i) {
    const double coupling = i == 0 ? 0 : matrix.off_diagonal[i - 1] * matrix.off_diagonal[i - 1];
    pivot = matrix.diagonal[i] - x - (coupling == 0 ? 0 : coupling / pivot);
    if (pivot == 0) pivot = -1e-300;
    if (pivot > 0) ++count;
  }
  return count;
}

/// An interval that contains all eigenvalues (Gershgorin).
Interval eigenvalue_bounds(const Tridiagonal& matrix) {
  Interval bounds;
  for (std::size_t i = 0; i < matrix.diagonal.size(); ++i) {
    const double left = i > 0 ? std::abs(matrix.off_diagonal[i - 1]) : 0;
    const double right = i < matrix.off_diagonal.size() ? std::abs(matrix.off_diagonal[i]) : 0;
    const double low = matrix.diagonal[i] - left - right, high = matrix.diagonal[i] + left + right;
    bounds = i == 0 ? Interval{low, high} : Interval{std::min(bounds.low, low), std::max(bounds.high, high)};
  }
  return bounds;
}

/// Divides the matrix by a power of two, so that its elements can be squared. Returns the power.
int take_out_power(Tridiagonal& matrix) {
  double largest = 0;
  for (const std::vector<double>* elements : {&matrix.diagonal, &matrix.off_diagonal})
    for (const double element : *elements) largest = std::max(largest, std::abs(element));
  const int power = largest > 0 && std::isfinite(largest) ? std::ilogb(largest) : 0;
  for (std::vector<double>* elements : {&matrix.diagonal, &matrix.off_diagonal})
    for (double& element : *elements) element = std::ldexp(element, -power);
  return power;
}

/// The k-th largest eigenvalue, k ≥ 1, if it lies in the interval: found by bisection, to 2⁻⁶⁰ of its length.
double eigenvalue(const Tridiagonal& matrix, int k, Interval within) {
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = 0.5 * (within.low + within.high);
    (eigenvalues_above(matrix, middle) >= k ? within.low : within.high) = middle;
  }
  return within.high;
}

template <Scalar T>
void require_square(const LinearOperator<T>& A) {
  require<ShapeError>(A.domain() == A.range(),
                      "eigenvalues need an operator from a space to itself; this one is ", A.rows(), " x ",
                      A.cols(), ", layouts included");
}

template <Scalar T>
DistMatrix<T> random_column(const Space& space, std::uint64_t seed) {
  DistMatrix<T> x = allocate_matrix<T>(space.grid, space.layout(1));
  x.fill([seed](Index i, Index j) { return counter_random<T>(seed, i, j); });
  return x;
}

/// Scales x, of one column, to unit norm unless it is zero, and returns its old norm.
template <Scalar T>
double normalise(DistMatrix<T>& x) {
  return normalise_columns(x)[0];
}

/// y ← y − αx.
template <Scalar T>
void subtract(Accumulator<T> alpha, const ConstDistMatrix<T>& x, DistMatrix<T>& y) {
  y.grid()->backend()->template kernels<T>().add(static_cast<T>(-alpha), x.local(), T(1), y.local());
}

/// Orthonormal columns with the layout of w. This rank's rows of them are stored side by side.
template <Scalar T>
class LanczosBasis {
 public:
  LanczosBasis(const ConstDistMatrix<T>& w, Index most)
      : vectors_(w.grid()->backend(), w.local().size() * most),
        coefficients_(w.grid()->backend(), most),
        local_rows_(w.local().cols == 0 ? 0 : w.local().rows) {}

  void append(const ConstDistMatrix<T>& q) {
    kernels(q).copy(q.local(), vectors_.matrix(local_rows_, count_ + 1).col_block({count_, q.local().cols}));
    ++count_;
  }

  /// Makes w orthogonal to the basis. Returns its coefficient for the last basis vector.
  double orthogonalise(DistMatrix<T>& w) {
    const MatrixView<const T> Q = vectors_.matrix(local_rows_, count_);
    Backend& backend = *w.grid()->backend();
    const MatrixView<T> h = coefficients_.matrix(count_, 1);
    std::vector<T> sums(static_cast<std::size_t>(count_), T(0));
    if (w.owned() && w.local().cols > 0) {
      kernels(w).gemm(Op::adjoint, Op::none, T(1), Q, w.local(), T(0), h);
      backend.download(h.data, sums.data(), count_ * static_cast<Index>(sizeof(T)));
    }
    FailureScope().reduce(w.grid()->comm(), sums);
    if (w.local().cols > 0) {
      backend.upload(sums.data(), h.data, count_ * static_cast<Index>(sizeof(T)));
      kernels(w).gemm(Op::none, Op::none, T(-1), Q, h, T(1), w.local());
    }
    return static_cast<double>(std::real(sums.back()));
  }

 private:
  static const Kernels<T>& kernels(const ConstDistMatrix<T>& w) {
    return w.grid()->backend()->template kernels<T>();
  }

  Buffer<T> vectors_, coefficients_;
  Index local_rows_, count_ = 0;
};

}  // namespace

template <Scalar T>
DominantEigenpair<T> power_iteration(const LinearOperator<T>& A, Index max_iterations, double tolerance,
                                     std::uint64_t seed) {
  agree(A.domain().grid, "power_iteration", [&](Agreement& agreement) {
    describe_operator(agreement, A);
    agreement.on("the limit of iterations", max_iterations)
        .on("the tolerance", tolerance)
        .on("the seed", seed);
    require_square(A);
    require<UsageError>(max_iterations >= 1, "an eigenvalue cannot be found in ", max_iterations,
                        " iterations; take at least one");
    require<UsageError>(tolerance >= 0 && std::isfinite(tolerance), "the tolerance is ", tolerance,
                        "; it must be a finite number ≥ 0");
  });
  DominantEigenpair<T> pair{{}, 0, 0, false, random_column<T>(A.domain(), seed)};
  if (!A.domain().grid->is_member()) return pair;
  DistMatrix<T> image = allocate_matrix<T>(A.domain().grid, A.domain().layout(1)),
                residual = allocate_matrix<T>(A.domain().grid, A.domain().layout(1));
  FailureScope failures;
  normalise(pair.vector);
  while (pair.iterations < max_iterations && !pair.converged) {
    if (pair.iterations > 0) copy(image, pair.vector);
    A.apply(T(1), pair.vector, T(0), image);
    ++pair.iterations;
    const double norm = normalise(image);
    // Uses the quotient of Av/‖Av‖, so that large elements of A cannot overflow in the test.
    const Accumulator<T> quotient = column_dots(pair.vector, image)[0];
    pair.eigenvalue = quotient * norm;
    copy(image, residual);
    failures.run([&] { subtract(quotient, pair.vector, residual); });
    const double defect = column_norms(residual)[0];
    pair.residual = defect * norm;
    pair.converged = defect <= tolerance * std::abs(quotient) && std::isfinite(norm);
  }
  return pair;
}

template <Scalar T>
SpectrumExtremes lanczos_extremes(const LinearOperator<T>& A, int steps, std::uint64_t seed) {
  agree(A.domain().grid, "lanczos_extremes", [&](Agreement& agreement) {
    describe_operator(agreement, A);
    agreement.on("the steps", steps).on("the seed", seed);
    require_square(A);
    require<UsageError>(steps >= 1, "eigenvalues cannot be found in ", steps, " steps; take at least one");
  });
  if (!A.domain().grid->is_member() || A.rows() == 0) return {};
  const Index most = std::min<Index>(steps, A.rows());
  Communicator& comm = A.domain().grid->comm();
  DistMatrix<T> q = random_column<T>(A.domain(), seed),
                w = allocate_matrix<T>(A.domain().grid, A.domain().layout(1));
  std::optional<LanczosBasis<T>> made;
  attempt(comm, [&] { made.emplace(q, most); });
  LanczosBasis<T>& basis = *made;
  FailureScope failures;
  normalise(q);
  Tridiagonal projected;
  for (Index step = 0; step < most; ++step) {
    basis.append(q);
    A.apply(T(1), q, T(0), w);
    // Rounding makes a second orthogonalisation necessary (Parlett: The symmetric eigenvalue problem, §6.9).
    const double first = basis.orthogonalise(w);
    projected.diagonal.push_back(first + basis.orthogonalise(w));
    const double beta = normalise(w);
    const Interval bounds = eigenvalue_bounds(projected);
    const double rounding = 10 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon()) *
                            std::max(std::abs(bounds.low), std::abs(bounds.high));
    if (!(beta > rounding) || step + 1 == most) break;  // an invariant subspace, or NaN
    projected.off_diagonal.push_back(beta);
    copy(w, q);
  }
  if (!std::isfinite(projected.diagonal.back()))
    return {projected.diagonal.back(), projected.diagonal.back()};
  const int power = take_out_power(projected), count = static_cast<int>(projected.diagonal.size());
  const Interval bounds = eigenvalue_bounds(projected);
  return {std::ldexp(eigenvalue(projected, count, bounds), power),
          std::ldexp(eigenvalue(projected, 1, bounds), power)};
}

// Golub, Kahan: Calculating the singular values and pseudo-inverse of a matrix, SIAM J. Numer. Anal. 2, 1965:
// α₁v₁ = start, β₊u₊ = Av − αu, α₊v₊ = Aᴴu₊ − β₊v. The largest eigenvalue of BᵀB estimates ‖A‖².
template <Scalar T>
double estimate_norm(const LinearOperator<T>& A, int steps, std::uint64_t seed) {
  agree(A.domain().grid, "estimate_norm", [&](Agreement& agreement) {
    describe_operator(agreement, A);
    agreement.on("the steps", steps).on("the seed", seed);
    require<UsageError>(steps >= 1, "a norm cannot be estimated in ", steps, " steps; take at least one");
  });
  if (!A.domain().grid->is_member()) return 0;
  DistMatrix<T> v = random_column<T>(A.domain(), seed),
                u = allocate_matrix<T>(A.range().grid, A.range().layout(1));
  FailureScope failures;
  normalise(v);
  A.apply(T(1), v, T(0), u);
  // B is upper bidiagonal: α on its diagonal, β above it.
  Tridiagonal B{{normalise(u)}, {}};
  for (int step = 1; step < steps && B.diagonal.back() > 0; ++step) {
    A.apply_adjoint(T(1), u, to_scalar<T>(-B.diagonal.back()), v);
    const double beta = normalise(v);
    if (beta == 0) break;
    A.apply(T(1), v, to_scalar<T>(-beta), u);
    B.off_diagonal.push_back(beta);
    B.diagonal.push_back(normalise(u));
  }
  if (std::isnan(B.diagonal.back())) return B.diagonal.back();
  const int power = take_out_power(B);
  Tridiagonal normal_matrix{{}, {}};
  for (std::size_t k = 0; k < B.diagonal.size(); ++k) {
    const double alpha = B.diagonal[k], beta = k == 0 ? 0 : B.off_diagonal[k - 1];
    normal_matrix.diagonal.push_back(alpha * alpha + beta * beta);
    if (k > 0) normal_matrix.off_diagonal.push_back(B.diagonal[k - 1] * beta);
  }
  return std::ldexp(std::sqrt(eigenvalue(normal_matrix, 1, {0, eigenvalue_bounds(normal_matrix).high})),
                    power);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                          \
  template double estimate_norm(const LinearOperator<T>&, int, std::uint64_t);                           \
  template DominantEigenpair<T> power_iteration(const LinearOperator<T>&, Index, double, std::uint64_t); \
  template SpectrumExtremes lanczos_extremes(const LinearOperator<T>&, int, std::uint64_t);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
