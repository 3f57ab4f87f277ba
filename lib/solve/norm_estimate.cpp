// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/message.hpp"
#include "gridlops/error.hpp"
#include "gridlops/random.hpp"
#include "gridlops/solver.hpp"

namespace gridlops {

namespace {

/// How many eigenvalues of the symmetric tridiagonal matrix are above x: the sign changes of Sturm's sequence
/// (Golub, Van Loan: Matrix Computations, §8.4).
int eigenvalues_above(const std::vector<double>& diagonal, const std::vector<double>& off_diagonal,
                      double x) {
  int count = 0;
  double pivot = 1;
  for (std::size_t i = 0; i < diagonal.size(); ++i) {
    const double coupling = i == 0 ? 0 : off_diagonal[i - 1] * off_diagonal[i - 1];
    pivot = diagonal[i] - x - (coupling == 0 ? 0 : coupling / pivot);
    if (pivot == 0) pivot = -1e-300;
    if (pivot > 0) ++count;
  }
  return count;
}

double largest_eigenvalue(const std::vector<double>& diagonal, const std::vector<double>& off_diagonal) {
  double bound = 0;  // by Gershgorin
  for (std::size_t i = 0; i < diagonal.size(); ++i) {
    const double left = i > 0 ? off_diagonal[i - 1] : 0;
    const double right = i < off_diagonal.size() ? off_diagonal[i] : 0;
    bound = std::max(bound, diagonal[i] + left + right);
  }
  double low = 0, high = bound;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = 0.5 * (low + high);
    (eigenvalues_above(diagonal, off_diagonal, middle) > 0 ? low : high) = middle;
  }
  return high;
}

}  // namespace

// Golub, Kahan: Calculating the singular values and pseudo-inverse of a matrix, SIAM J. Numer. Anal. 2, 1965:
// α₁v₁ = start, β₊u₊ = Av − αu, α₊v₊ = Aᴴu₊ − β₊v; ‖A‖² is estimated by the largest eigenvalue of BᵀB.
template <Scalar T>
double estimate_norm(const LinearOperator<T>& A, int steps, std::uint64_t seed) {
  require<UsageError>(steps >= 1, "a norm cannot be estimated in ", steps, " steps; take at least one");
  if (!A.domain().grid->is_member()) return 0;
  DistMatrix<T> v(A.domain().grid, A.domain().layout(1)), u(A.range().grid, A.range().layout(1));
  v.fill([seed](Index i, Index j) { return counter_random<T>(seed, i, j); });
  const auto normalise = [](DistMatrix<T>& x) {
    const double norm = column_norms(x)[0];
    if (norm > 0) column_scale({static_cast<T>(static_cast<Real<T>>(1 / norm))}, x);
    return norm;
  };
  normalise(v);
  A.apply(T(1), v, T(0), u);
  double alpha = normalise(u);
  // B is upper bidiagonal: alphas on its diagonal, betas above it.
  std::vector<double> diagonal{alpha * alpha}, off_diagonal;
  for (int step = 1; step < steps && alpha > 0; ++step) {
    A.apply_adjoint(T(1), u, static_cast<T>(static_cast<Real<T>>(-alpha)), v);
    const double beta = normalise(v);
    if (beta == 0) break;
    A.apply(T(1), v, static_cast<T>(static_cast<Real<T>>(-beta)), u);
    off_diagonal.push_back(alpha * beta);
    alpha = normalise(u);
    diagonal.push_back(alpha * alpha + beta * beta);
  }
  if (std::isnan(alpha)) return alpha;
  return std::sqrt(largest_eigenvalue(diagonal, off_diagonal));
}

template double estimate_norm(const LinearOperator<float>&, int, std::uint64_t);
template double estimate_norm(const LinearOperator<double>&, int, std::uint64_t);
template double estimate_norm(const LinearOperator<std::complex<float>>&, int, std::uint64_t);
template double estimate_norm(const LinearOperator<std::complex<double>>&, int, std::uint64_t);

}  // namespace gridlops
