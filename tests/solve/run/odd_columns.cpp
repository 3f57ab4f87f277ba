// SPDX-License-Identifier: BSD-3-Clause
// Some columns could disturb others or be disturbed by them, and columns save work by ending early.
#include <algorithm>
#include <numeric>

#include "gridlops/ops/operator_algebra.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 45, n = 23, nrhs = 40;
constexpr Index zero_column = 5, nan_column = 9, tiny_column = 20, solved_column = 30;
constexpr double condition = 3, tolerance = 1e-8;

/// Columns 12 and 13 are equal; the guess is zero but for the column that it solves.
template <Scalar T>
struct OddColumns {
  explicit OddColumns(KnownSpectrum<T> A) : matrix(std::move(A)) {}

  Element<T> b() const {
    return [this](Index i, Index j) {
      if (j == zero_column) return T(0);
      if (j == nan_column && i == 4) return T(std::numeric_limits<Real<T>>::quiet_NaN());
      if (j == tiny_column) return T(Real<T>(1e-12)) * counter_random<T>(4, i, j);
      if (j == solved_column) return solved[static_cast<std::size_t>(i)];
      return counter_random<T>(4, i, j == 13 ? 12 : j);
    };
  }
  Element<T> guess() const {
    return [](Index i, Index j) { return j == solved_column ? counter_random<T>(8, i, j) : T(0); };
  }
  /// The solution by singular vectors, which for Hermitian matrices are eigenvectors.
  std::vector<T> expected(Index j, const std::vector<double>& values) const {
    std::vector<T> x(static_cast<std::size_t>(matrix.cols()), T(0));
    const Element<T> data = b();
    for (Index k = 0; k < matrix.cols(); ++k) {
      T component(0);
      for (Index i = 0; i < matrix.rows(); ++i) component += conjugate(matrix.left(i, k)) * data(i, j);
      component *= static_cast<Real<T>>(1 / values[static_cast<std::size_t>(k)]);
      for (Index i = 0; i < matrix.cols(); ++i)
        x[static_cast<std::size_t>(i)] += component * matrix.right(i, k);
    }
    return x;
  }

  KnownSpectrum<T> matrix;
  std::vector<T> solved = [this] {
    std::vector<T> product(static_cast<std::size_t>(matrix.rows()), T(0));
    for (Index k = 0; k < matrix.cols(); ++k)
      for (Index i = 0; i < matrix.rows(); ++i)
        product[static_cast<std::size_t>(i)] += matrix(i, k) * counter_random<T>(8, k, solved_column);
    return product;
  }();
};

template <Scalar T>
void check_odd_columns(SolverFunction<T> solver, const LinearOperator<T>& A, const OddColumns<T>& odd,
                       bool like_alone) {
  const auto& grid = A.domain().grid;
  SolveOptions options;
  options.tolerance = tolerance;
  const Element<T> b = odd.b(), guess = odd.guess();
  const Solution<T> together = solve<T>(solver, A, nrhs, b, options, guess);
  CAPTURE(grid->rows(), grid->cols(), together.report.solver);
  const std::vector<double> values = geometric(n, condition);
  for (Index j = 0; j < nrhs; ++j) {
    CAPTURE(j);
    const Solution<T> alone =
        like_alone ? solve_alone<T>(solver, A, j, b, options, guess) : Solution<T>{together.report, {}, 0};
    if (!grid->is_member()) continue;
    const ColumnReport& column = together.verdict(j);
    CHECK(column.reason == (j == nan_column ? StopReason::non_finite : StopReason::converged));
    if (like_alone) {
      CHECK(column.reason == alone.verdict(0).reason);
      CHECK(column.iterations == alone.verdict(0).iterations);
    }
    if (j == nan_column) {
      CHECK(std::isnan(std::norm(together.column(j)[0])));
      continue;
    }
    if (j == zero_column || j == solved_column) CHECK(column.iterations == 0);
    if (j == zero_column) {
      CHECK(norm_of(together.column(j)) == 0);
      continue;
    }
    CHECK(relative_difference(together.column(j), odd.expected(j, values)) <= 10 * condition * tolerance);
    if (like_alone)
      CHECK(relative_difference(together.column(j), alone.column(0)) <= 10 * condition * tolerance);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("Of forty columns each odd one gets the verdict and the solution that it gets alone", "",
                   double, std::complex<double>) {
  using T = TestType;
  const OddColumns<T> tall(KnownSpectrum<T>(m, n, geometric(n, condition))),
      hermitian(KnownSpectrum<T>::hermitian(geometric(n, condition)));
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : {Algorithm::summa, Algorithm::stationary_a}) {
      const auto A = dense_operator(grid, algorithm, tall.matrix);
      for (const SolverFunction<T> solver :
           {SolverFunction<T>(cgls<T>), SolverFunction<T>(lsqr<T>), SolverFunction<T>(lsmr<T>)})
        check_odd_columns<T>(solver, *A, tall, true);
      const auto H = dense_operator(grid, algorithm, hermitian.matrix);
      check_odd_columns<T>(cg, *product(identity<T>(H->domain(), H->range()), H), hermitian, true);
      if (algorithm == Algorithm::stationary_a) check_odd_columns<T>(block_cgls, *A, tall, false);
    }
  }
}

namespace {

constexpr Index parts = 8, spectrum = parts * (parts + 4);
/// The number of singular directions that column j excites: 5, 7, … 19.
Index excited_by(Index j) { return 5 + 2 * j; }

/// For each direction the column that excites it. The directions of a column spread over the whole spectrum.
std::vector<Index> exciting_columns() {
  std::vector<std::pair<double, Index>> places;
  for (Index j = 0; j < parts; ++j)
    for (Index t = 0; t < excited_by(j); ++t)
      places.emplace_back((static_cast<double>(t) + 0.5) / static_cast<double>(excited_by(j)), j);
  std::sort(places.begin(), places.end());
  std::vector<Index> columns;
  for (const auto& place : places) columns.push_back(place.second);
  return columns;
}

}  // namespace

TEST_CASE("The work is the sum of the columns' own iterations, not the most of them times all") {
  const KnownSpectrum<double> matrix(spectrum + 20, spectrum, geometric(spectrum, 4));
  const std::vector<Index> columns = exciting_columns();
  const Element<double> b = [&](Index i, Index j) {
    double sum = 0;
    for (Index k = 0; k < spectrum; ++k)
      if (columns[static_cast<std::size_t>(k)] == j) sum += matrix.left(i, k);
    return sum;
  };
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : {Algorithm::summa, Algorithm::stationary_a}) {
      for (const SolverFunction<double> solver :
           {SolverFunction<double>(cgls<double>), SolverFunction<double>(lsqr<double>),
            SolverFunction<double>(lsmr<double>)}) {
        const auto A = dense_operator(grid, algorithm, matrix);
        const auto solution = solve<double>(solver, *A, parts, b);
        const OperatorActivity activity = A->activity();
        Index own_iterations = 0;
        for (Index j = 0; j < parts; ++j) {
          const auto alone = solve_alone<double>(solver, *A, j, b);
          if (!grid->is_member()) continue;
          CAPTURE(solution.report.solver, name_of(algorithm), j);
          CHECK(solution.verdict(j).reason == StopReason::converged);
          // In exact arithmetic there is one for each direction. Rounding may ask for one more here.
          CHECK(std::abs(solution.verdict(j).iterations - alone.verdict(0).iterations) <= 1);
          CHECK(std::abs(solution.verdict(j).iterations - excited_by(j)) <= 1);
          own_iterations += solution.verdict(j).iterations;
        }
        if (!grid->is_member()) continue;
        // The first gradients and the final norms take one product each.
        CHECK(activity.forward_columns == own_iterations + parts);
        CHECK(activity.adjoint_columns == own_iterations + 2 * parts);
        // This is far less than all columns for as long as the slowest takes.
        CHECK(3 * own_iterations < 2 * parts * solution.report.iterations);
      }
      // With one step for all, as if all columns were one long vector, each column would take a step for
      // every direction.
      const auto A = dense_operator(grid, algorithm, matrix);
      const auto all = block_diagonal<double>(std::vector<OperatorPtr<double>>(parts, A));
      const std::vector<Space> ranges(parts, A->range());
      DistMatrix<double> B(grid, all->range().layout(1)), X(grid, all->domain().layout(1));
      for (Index j = 0; j < parts; ++j)
        stack_rows(ranges, static_cast<std::size_t>(j), B).fill([&](Index i, Index) { return b(i, j); });
      const SolveReport flattened = cgls(*all, B, X);
      if (grid->is_member()) CHECK(2 * flattened.iterations > 3 * excited_by(parts - 1));
    }
  }
}
