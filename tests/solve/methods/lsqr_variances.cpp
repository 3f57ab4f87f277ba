// SPDX-License-Identifier: BSD-3-Clause
// LSQR estimates variances.
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 31, n = 19, nrhs = 9;

/// Column j is made of j % 5 + 1 left singular vectors, column 7 of none. After as many iterations as there
/// are vectors, LSQR has seen these and no others.
std::vector<Index> directions_of(Index j) {
  std::vector<Index> numbers;
  for (Index t = 0; j != 7 && t <= j % 5; ++t) numbers.push_back(j % 4 + 3 * t);
  return numbers;
}

template <Scalar T>
void check_variances(const GridPtr& grid, Algorithm algorithm, double damp, Index batch, bool guess) {
  const std::vector<double> values = geometric(n, 4);
  const KnownSpectrum<T> matrix(m, n, values);
  const auto A = dense_operator(grid, algorithm, matrix);
  const auto combination = [](Index j, const auto& vector) {
    T sum(0);
    for (const Index k : directions_of(j))
      sum += vector(k) * static_cast<Real<T>>(1 + 0.1 * static_cast<double>(k % 3));
    return sum;
  };
  DistMatrix<T> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs)), V = X.clone();
  B.fill([&](Index i, Index j) { return combination(j, [&](Index k) { return matrix.left(i, k); }); });
  // The guess is in the same directions, so that the residual is in them, too.
  X.fill([&](Index i, Index j) {
    return T(Real<T>(0.3)) * combination(j, [&](Index k) { return matrix.right(i, k); });
  });
  V.fill([](Index, Index) { return T(-7); });
  SolveOptions options;
  options.damp = damp;
  options.batch = batch;
  options.initial_guess = guess;
  options.tolerance = sizeof(Real<T>) == 4 ? 1e-5 : 1e-10;  // less than one direction is worth
  const SolveReport report = lsqr(*A, B, X, V, options);
  const std::vector<T> found = everywhere(V);
  if (!grid->is_member()) return;
  CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), damp, batch, guess);
  for (Index j = 0; j < nrhs; ++j) {
    CHECK(report.columns[static_cast<std::size_t>(j)].iterations ==
          static_cast<Index>(directions_of(j).size()));
    CAPTURE(j);
    double difference = 0, imaginary = 0;
    for (Index i = 0; i < n; ++i) {
      double expected = 0;
      for (const Index k : directions_of(j)) {
        const double value = values[static_cast<std::size_t>(k)];
        expected += std::norm(matrix.right(i, k)) / (value * value + damp * damp);
      }
      const T v = found[static_cast<std::size_t>(i + j * n)];
      difference = std::max(difference, std::abs(static_cast<double>(std::real(v)) - expected));
      imaginary = std::max(imaginary, static_cast<double>(std::abs(std::imag(v))));
    }
    // Entries are at most κ² = 16; the last of five iterations has lost a few digits of orthogonality.
    CHECK(difference <= 16 * 1e4 * epsilon_of<T>);
    CHECK(imaginary == 0);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("LSQR's variances are those of the directions that a column has seen", "", float, double,
                   std::complex<double>) {
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const Index batch : {0, 3}) {
        check_variances<TestType>(grid, algorithm, 0, batch, false);
        check_variances<TestType>(grid, algorithm, 0.3, batch, true);
      }
    }
  }
}

TEST_CASE("Asking for variances changes nothing else") {
  for (const auto& grid : compact_grids()) {
    const auto A = dense_operator(grid, Algorithm::summa, KnownSpectrum<double>(m, n, geometric(n, 10)),
                                  {.column_stable = true});
    DistMatrix<double> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs)), Y = X.clone(),
                                                                                            V = X.clone();
    B.fill(random_elements<double>(4));
    SolveOptions options;
    options.column_stable = true;
    const SolveReport with = lsqr(*A, B, X, V, options), without = lsqr(*A, B, Y, options);
    CHECK(everywhere(X) == everywhere(Y));
    CHECK(numbers_in(with) == numbers_in(without));
    DistMatrix<double> narrow(grid, A->domain().layout(nrhs - 1));
    CHECK_THROWS_AS(lsqr(*A, B, X, narrow, options), ShapeError);
  }
}
