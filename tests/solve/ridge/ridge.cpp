// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/ridge.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/base/error.hpp"
#include "solve/methods/factor_problems.hpp"
#include "solve/ridge/reference_ridge.hpp"
#include "support/agreed_failures.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index columns = 5;

/// Features that have means of about their size.
template <Scalar T>
Element<T> features() {
  return [](Index i, Index j) { return counter_random<T>(1, i, j) + T(Real<T>(j % 3)); };
}
/// Data that depend on features, more or less noisy.
template <Scalar T>
Element<T> targets(Index n) {
  return [n](Index i, Index j) {
    Accumulator<T> sum = 3.0 + static_cast<double>(j);
    for (Index k = 0; k < n; ++k)
      sum += Accumulator<T>(features<T>()(i, k)) * Accumulator<T>(counter_random<T>(2, k, j));
    return T(sum + static_cast<double>(j + 1) * Accumulator<T>(counter_random<T>(3, i, j)));
  };
}

template <Scalar T>
struct Fitted {
  RidgeReport report;
  std::vector<T> X;
};
template <Scalar T>
Fitted<T> fitted(const GridPtr& grid, Algorithm algorithm, Index m, Index n, const Element<T>& A,
                 const Element<T>& B, const RidgeOptions& options, Index nrhs = columns) {
  const OperatorPtr<T> op = dense_operator<T>(grid, algorithm, m, n, A);
  DistMatrix<T> data(grid, op->range().layout(nrhs)), X(grid, op->domain().layout(nrhs));
  data.fill(B);
  RidgeReport report = ridge<T>(*op, data, options, &X);
  return {std::move(report), everywhere(X)};
}

/// Checks scores and coefficients against the definition. tolerance: relative to the scores' 1.
template <Scalar T>
void check_ridge(const Fitted<T>& found, Index m, Index n, const Element<T>& A, const Element<T>& B,
                 const RidgeOptions& options, double tolerance, Index nrhs = columns) {
  const ReferenceRidge<T> reference(m, n, A, B, options);
  const auto dampings = std::ssize(options.alphas);
  REQUIRE(std::ssize(found.report.columns) == nrhs);
  for (Index j = 0; j < nrhs; ++j) {
    const RidgeColumn& column = found.report.columns[static_cast<std::size_t>(j)];
    CAPTURE(j, column.alpha, name_of(column.reason));
    double best = -std::numeric_limits<double>::infinity();
    for (Index d = 0; d < dampings; ++d) {
      const double score = found.report.scores[static_cast<std::size_t>(d + j * dampings)],
                   expected = reference.score(j, options.alphas[static_cast<std::size_t>(d)]);
      CAPTURE(d, score, expected);
      CHECK(std::abs(score - expected) <= tolerance * std::max(1.0, std::abs(expected)));
      best = std::max(best, score);
    }
    CHECK(column.score == best);
    CHECK(is_solved(column.reason));
    const auto fit = reference.fit(reference.all_rows(), j, column.alpha);
    const std::vector<T> x(found.X.begin() + j * n, found.X.begin() + (j + 1) * n);
    CHECK(relative_difference(x, std::vector<T>(fit.x.begin(), fit.x.end())) <= tolerance * 10);
    CHECK(std::abs(column.intercept - std::complex<double>(fit.intercept)) <=
          tolerance * 10 * (1 + std::abs(fit.intercept)));
  }
}

template <Scalar T>
constexpr double rounding_of = is_double<T> ? 1e-9 : 3e-4;

constexpr std::pair<Index, Index> shapes[] = {{31, 7}, {9, 14}, {12, 12}, {6, 1}, {40, 3}};

}  // namespace

TEMPLATE_TEST_CASE("A ridge has the scores and the coefficients of its definition", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : {Algorithm::block, Algorithm::stationary_a}) {
      for (const auto& [m, n] : shapes) {
        for (const RidgeScore score : {RidgeScore::r2, RidgeScore::correlation, RidgeScore::negative_mse}) {
          RidgeOptions options{.alphas = {0.3, 30, 3}, .folds = interleaved_folds(m, 3), .score = score};
          options.intercept = score != RidgeScore::correlation || m != 31;
          options.standardize = score != RidgeScore::r2;
          CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), m, n, name_of(score));
          const auto found = fitted<T>(grid, algorithm, m, n, features<T>(), targets<T>(n), options);
          if (!grid->is_member()) {
            CHECK(found.report.columns.empty());
            continue;
          }
          check_ridge<T>(found, m, n, features<T>(), targets<T>(n), options, rounding_of<T>);
        }
      }
    }
  }
}
