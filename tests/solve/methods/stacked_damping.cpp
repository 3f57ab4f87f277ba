// SPDX-License-Identifier: BSD-3-Clause
// Damping is what a solver does without damping with the matrix [A; D I] and the data [b; 0]: it makes the
// same steps, and ends after as many.
#include <cmath>

#include "support/grids.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 90, n = 60, nrhs = 3;

template <Scalar T>
struct Method {
  const char* name;
  SolverFunction<T> solver;
};

template <Scalar T>
std::vector<Method<T>> methods() {
  return {{"cgls", cgls<T>}, {"lsqr", lsqr<T>}, {"lsmr", lsmr<T>}};
}

/// Σ over singular vectors, so that b is in the range of A, and only D x keeps the damped residual from zero.
template <Scalar T>
Element<T> data_in_range(const KnownSpectrum<T>& matrix) {
  return [&matrix](Index i, Index j) {
    T sum(0);
    for (Index k = 0; k < n; ++k) sum += counter_random<T>(7, k, j) * matrix.left(i, k);
    return sum;
  };
}

}  // namespace

TEMPLATE_TEST_CASE("A damped solve ends after as many iterations as one of the stacked system", "", double,
                   std::complex<double>) {
  using T = TestType;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 10));
  const Element<T> b = data_in_range(matrix);
  for (const double damp : {0.01, 0.003}) {
    const Element<T> stacked = [&](Index i, Index j) {
      return i < m ? matrix(i, j) : i - m == j ? T(damp) : T(0);
    };
    const Element<T> data = [&](Index i, Index j) { return i < m ? b(i, j) : T(0); };
    for (const GridPtr& grid : compact_grids()) {
      const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix),
                           of_stack = dense_operator<T>(grid, Algorithm::stationary_a, m + n, n, stacked);
      for (const Method<T>& method : methods<T>()) {
        SolveOptions options;
        options.tolerance = 1e-4;
        options.max_iterations = 1000;
        const Solution<T> expected = solve<T>(method.solver, *of_stack, nrhs, data, options);
        options.damp = damp;
        const Solution<T> found = solve<T>(method.solver, *A, nrhs, b, options);
        if (!grid->is_member()) continue;
        const WholeSystem<T> system(method.solver, m, n, Element<T>(matrix), b, options);
        for (Index j = 0; j < nrhs; ++j) {
          const ColumnReport &one = found.verdict(j), &other = expected.verdict(j);
          CAPTURE(method.name, damp, j, describe(*grid), one.iterations, other.iterations);
          const auto norms = system.norms(j, found.column(j));
          CHECK(std::abs(one.normal_residual_norm - norms.normal) <= 100 * norms.rounding);
          CHECK(one.reason == StopReason::converged);
          CHECK(other.reason == StopReason::converged);
          // Rounding, and what damping adds to an estimate of the norm of the matrix, make a difference of
          // one or two. LSQR's test without the damping in it takes six more.
          CHECK(std::abs(one.iterations - other.iterations) <= 3);
          CHECK(one.iterations > 10);
        }
      }
    }
  }
}
