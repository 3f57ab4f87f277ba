// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure_scope.hpp"
#include "dist/together.hpp"
#include "gridlops/error.hpp"
#include "gridlops/random.hpp"
#include "gridlops/solver.hpp"
#include "solve/tridiagonal.hpp"

namespace gridlops {

// Golub, Kahan: Calculating the singular values and pseudo-inverse of a matrix, SIAM J. Numer. Anal. 2, 1965:
// α₁v₁ = start, β₊u₊ = Av − αu, α₊v₊ = Aᴴu₊ − β₊v; ‖A‖² is estimated by the largest eigenvalue of BᵀB.
template <Scalar T>
double estimate_norm(const LinearOperator<T>& A, int steps, std::uint64_t seed) {
  require<UsageError>(steps >= 1, "a norm cannot be estimated in ", steps, " steps; take at least one");
  if (!A.domain().grid->is_member()) return 0;
  DistMatrix<T> v = make_together<T>(A.domain().grid, A.domain().layout(1)),
                u = make_together<T>(A.range().grid, A.range().layout(1));
  FailureScope failures;
  v.fill([seed](Index i, Index j) { return counter_random<T>(seed, i, j); });
  const auto scale = [&failures](double factor, DistMatrix<T>& x) {
    failures.run([&] { column_scale({to_scalar<T>(factor)}, x); });
  };
  const auto normalise = [&scale](DistMatrix<T>& x) {
    double norm = column_norms(x)[0], unit = 1;
    if constexpr (sizeof(Real<T>) == 8) {
      // Where squares leave the range of double precision.
      if (norm == 0 || std::isinf(norm)) {
        unit = norm == 0 ? 0x1p-600 : 0x1p600;
        scale(1 / unit, x);
        norm = column_norms(x)[0];
      }
    }
    if (norm > 0) scale(1 / norm, x);
    return norm * unit;
  };
  normalise(v);
  A.apply(T(1), v, T(0), u);
  double alpha = normalise(u);
  // B is upper bidiagonal: alphas on its diagonal, betas above it; here in units of a power of two.
  const double unit = alpha > 0 && std::isfinite(alpha) ? std::ldexp(1.0, std::ilogb(alpha)) : 1;
  Tridiagonal normal_matrix{{(alpha / unit) * (alpha / unit)}, {}};
  for (int step = 1; step < steps && alpha > 0; ++step) {
    A.apply_adjoint(T(1), u, to_scalar<T>(-alpha), v);
    const double beta = normalise(v);
    if (beta == 0) break;
    A.apply(T(1), v, to_scalar<T>(-beta), u);
    normal_matrix.off_diagonal.push_back((alpha / unit) * (beta / unit));
    alpha = normalise(u);
    normal_matrix.diagonal.push_back((alpha / unit) * (alpha / unit) + (beta / unit) * (beta / unit));
  }
  if (std::isnan(alpha)) return alpha;
  return unit * std::sqrt(eigenvalue(normal_matrix, 1, {0, eigenvalue_bounds(normal_matrix).high}));
}

#define GRIDLOPS_INSTANTIATE(T) template double estimate_norm(const LinearOperator<T>&, int, std::uint64_t);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
