// SPDX-License-Identifier: BSD-3-Clause
// Iterates are those of the textbook, long before they converge.
#include "gridlops/ops/operator_algebra.hpp"
#include "solve/regularised/sparse_problems.hpp"
#include "support/catch.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 31, n = 23, nrhs = 3, steps = 8;

/// Conjugate gradients on H x = c (Hestenes, Stiefel 1952), of which it is told c − H x.
template <class Vector>
Vector conjugate_gradients(const std::function<Vector(const Vector&)>& residual, Vector x) {
  const auto dot = [](const Vector& a, const Vector& b) {
    long double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += std::real(std::conj(a[i]) * b[i]);
    return sum;
  };
  const Vector c = residual(Vector(x.size()));
  Vector r = residual(x), p = r;
  for (Index k = 0; k < steps; ++k) {
    Vector q = residual(p);
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = c[i] - q[i];  // H p
    const long double before = dot(r, r), alpha = before / dot(p, q);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += alpha * p[i], r[i] -= alpha * q[i];
    const long double beta = dot(r, r) / before;
    for (std::size_t i = 0; i < x.size(); ++i) p[i] = r[i] + beta * p[i];
  }
  return x;
}

/// These rows as copies on every rank that has these columns.
Space copies(const Space& space) { return {space.grid, Cut::uncut(space.dimension()), space.columns}; }

/// The operator, and it with copies of models, of data, or of both; CG needs both alike.
template <Scalar T>
std::vector<OperatorPtr<T>> placed(const OperatorPtr<T>& A, bool square) {
  const OperatorPtr<T> model = identity<T>(A->domain(), copies(A->domain())),
                       data = identity<T>(copies(A->range()), A->range());
  if (square) return {A, product(data, product(A, model))};
  return {A, product(A, model), product(data, A)};
}

template <Scalar T>
void check_iterates(SolverFunction<T> solver, double damp, bool guessed) {
  const bool square = solver == SolverFunction<T>(&cg<T>);
  const KnownSpectrum<T> matrix =
      square ? KnownSpectrum<T>::hermitian(geometric(n, 30)) : KnownSpectrum<T>(m, n, geometric(n, 30));
  const Element<T> b = random_elements<T>(4), guess = guessed ? random_elements<T>(9) : Element<T>{};
  std::vector<std::vector<Extended<T>>> expected;
  for (Index j = 0; j < nrhs; ++j) {
    using Vector = std::vector<Extended<T>>;
    const NaiveSparse<T> naive(matrix.rows(), n, Element<T>(matrix), b, j);
    Vector start(n);
    for (Index i = 0; guessed && i < n; ++i) start[static_cast<std::size_t>(i)] = extended(guess(i, j));
    expected.push_back(conjugate_gradients<Vector>(
        [&](const Vector& x) {
          Vector r = square ? naive.residual(x) : naive.gradient(x);
          for (std::size_t i = 0; i < r.size(); ++i)
            r[i] -= static_cast<long double>(damp) * static_cast<long double>(damp) * x[i];
          return r;
        },
        start));
  }
  SolveOptions options;
  options.damp = damp;
  options.tolerance = 0;
  options.max_iterations = steps;
  for (const GridPtr& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      const OperatorPtr<T> A =
          square ? square_operator(grid, algorithm, matrix) : dense_operator(grid, algorithm, matrix);
      for (const OperatorPtr<T>& op : placed(A, square)) {
        const Solution<T> solution = solve<T>(solver, *op, nrhs, b, options, guess);
        if (!grid->is_member()) continue;
        CAPTURE(solution.report.solver, damp, guessed, describe(*grid), name_of(algorithm),
                op->domain().describe(), op->range().describe());
        for (Index j = 0; j < nrhs; ++j) {
          CHECK(solution.verdict(j).iterations == steps);
          CHECK(relative_difference(solution.column(j), expected[static_cast<std::size_t>(j)]) <= 1e-11);
        }
      }
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("CG, CGLS and LSQR make the iterates of conjugate gradients, wherever model and data are",
                   "", double, std::complex<double>) {
  using T = TestType;
  for (const SolverFunction<T> solver :
       {SolverFunction<T>(cg<T>), SolverFunction<T>(cgls<T>), SolverFunction<T>(lsqr<T>)})
    for (const double damp : {0.0, 0.3})
      for (const bool guessed : {false, true}) check_iterates<T>(solver, damp, guessed);
}
