// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/ridge.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/base/error.hpp"
#include "solve/methods/factor_problems.hpp"
#include "solve/ridge/reference_ridge.hpp"
#include "support/agreed_failures.hpp"
#include "support/metered_backend.hpp"
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

TEMPLATE_TEST_CASE("Rows have weights in means, coefficients and scores", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    for (const auto& [m, n] : shapes) {
      for (const RidgeScore score : {RidgeScore::r2, RidgeScore::correlation, RidgeScore::negative_mse}) {
        for (const bool by_folds : {true, false}) {
          RidgeOptions options{.alphas = {0.3, 30, 3}, .score = score};
          if (by_folds) options.folds = interleaved_folds(m, 2);
          if (!by_folds) options.validation = RidgeValidation::leave_one_out;
          // One row counts for nothing, one for much.
          for (Index i = 0; i < m; ++i)
            options.weights.push_back(i == 1 ? 0 : i == 2 ? 60 : 0.1 + static_cast<double>(i % 4));
          options.intercept = score != RidgeScore::correlation || m != 31;
          options.standardize = score != RidgeScore::r2 && by_folds;
          CAPTURE(grid->rows(), grid->cols(), m, n, name_of(score), by_folds);
          const auto found =
              fitted<T>(grid, Algorithm::stationary_a, m, n, features<T>(), targets<T>(n), options);
          if (grid->is_member())
            check_ridge<T>(found, m, n, features<T>(), targets<T>(n), options, 3 * rounding_of<T>);
        }
      }
    }
  }
}

TEST_CASE("A row of weight 3 is three rows, and one of weight 0 none") {
  constexpr Index m = 14, n = 5;
  const std::vector<double> weights{1, 3, 1, 0, 2, 1, 1, 2, 0, 1, 4, 1, 1, 2};
  std::vector<Index> copies, folds = interleaved_folds(m, 2), of_copies;
  for (Index i = 0; i < m; ++i)
    for (double k = 0; k < weights[static_cast<std::size_t>(i)]; ++k) {
      copies.push_back(i);
      of_copies.push_back(folds[static_cast<std::size_t>(i)]);
    }
  const auto original = [&](Index i) { return copies[static_cast<std::size_t>(i)]; };
  for (const auto& grid : compact_grids()) {
    for (const bool standardize : {false, true}) {
      RidgeOptions options{.alphas = {0.1, 5}, .folds = folds, .weights = weights};
      options.standardize = standardize;
      const auto weighted =
          fitted<double>(grid, Algorithm::block, m, n, features<double>(), targets<double>(n), options);
      options.folds = of_copies;
      options.weights = {};
      const auto copied = fitted<double>(
          grid, Algorithm::block, std::ssize(copies), n,
          [&](Index i, Index j) { return features<double>()(original(i), j); },
          [&](Index i, Index j) { return targets<double>(n)(original(i), j); }, options);
      if (!grid->is_member()) continue;
      CHECK(relative_difference(weighted.X, copied.X) <= 1e-12);
      CHECK(relative_difference(weighted.report.scores, copied.report.scores) <= 1e-12);
    }
  }
}

TEST_CASE("Data and features that are constant are so with any weights") {
  constexpr Index m = 12, n = 3;
  RidgeOptions options{.alphas = {1}, .folds = interleaved_folds(m, 3)};
  for (Index i = 0; i < m; ++i) options.weights.push_back(1 / (1.0 + static_cast<double>(i)));
  options.standardize = true;
  for (const auto& grid : compact_grids()) {
    const auto found = fitted<float>(
        grid, Algorithm::block, m, n,
        [](Index i, Index j) { return j == 1 ? 0.3F : features<float>()(i, j); },
        [](Index i, Index j) {
          return j == 0 ? 0.1F : j == 1 && i % 3 == 0 ? 7.7F : targets<float>(n)(i, j);
        },
        options, 3);
    if (!grid->is_member()) continue;
    CHECK(found.report.columns[0].score == 1);
    CHECK(std::abs(found.report.columns[0].intercept - std::complex<double>(0.1F)) <= 1e-7);
    CHECK((found.X[1] == 0 && found.X[n + 1] == 0));
    // Of the first fold, where data are constant, nothing is explained; of the others something is.
    CHECK((found.report.columns[1].score > -10 && found.report.columns[1].score < 1));
  }
}

TEMPLATE_TEST_CASE("Of a fold where a target has no cases nothing is explained", "", float, double) {
  using T = TestType;
  constexpr Index n = 3, folds = 5;
  for (const Index m : {500, 5000}) {
    for (const int weighted : {0, 1, 2}) {
      RidgeOptions options{.alphas = {1, 100}, .folds = contiguous_folds(m, folds)};
      for (Index i = 0; i < m && weighted > 0; ++i)
        options.weights.push_back(weighted == 1 ? 3 : 1 / (1.0 + static_cast<double>(i % 7)));
      for (const auto& grid : compact_grids()) {
        const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n, features<T>());
        DistMatrix<T> B(grid, A->range().layout(1));
        B.fill([&](Index i, Index) { return T(i >= m / folds && features<T>()(i, 0) > T(0.2) ? 1 : 0); });
        PreparedRidge<T> prepared(*A, options, false, 1);
        const RidgeReport report = prepared.fit(B, nullptr);
        if (!grid->is_member()) continue;
        REQUIRE(report.fold_scores.size() == folds * options.alphas.size());
        for (std::size_t k = 0; k < report.fold_scores.size(); ++k) {
          CAPTURE(m, weighted, k, report.fold_scores[k]);
          const double score = report.fold_scores[k];
          CHECK((k % folds == 0 ? score == 0 : score > 0.1 && score < 1));
        }
      }
    }
  }
}

TEST_CASE("Without features that vary, predictions are means of the training rows, also without damping") {
  constexpr Index m = 12;
  const Element<double> y = [](Index i, Index) { return counter_random<double>(7, i, 0); };
  const auto error = [&](const std::vector<double>& w, const auto& is_tested, double factor = 1) {
    double weight = 0, mean = 0, squares = 0, of_tested = 0;
    for (Index i = 0; i < m; ++i)
      if (!is_tested(i)) weight += w[static_cast<std::size_t>(i)];
    for (Index i = 0; i < m; ++i)
      if (!is_tested(i)) mean += w[static_cast<std::size_t>(i)] * y(i, 0) / weight;
    for (Index i = 0; i < m; ++i) {
      if (!is_tested(i) && factor == 1) continue;
      squares += w[static_cast<std::size_t>(i)] * std::pow(factor * (y(i, 0) - mean), 2);
      of_tested += w[static_cast<std::size_t>(i)];
    }
    return std::pair(squares, of_tested);
  };
  std::vector<double> weights, ones(static_cast<std::size_t>(m), 1.0);
  for (Index i = 0; i < m; ++i) weights.push_back(1 / (1.3 + static_cast<double>(i)));
  double left_out = 0, in_all = 0, of_folds = 0;
  for (Index k = 0; k < m; ++k) {
    const auto [squares, weight] = error(weights, [&](Index i) { return i == k; });
    left_out += squares;
    in_all += weight;
  }
  for (Index fold = 0; fold < 2; ++fold) {
    const auto [squares, weight] = error(ones, [&](Index i) { return i * 2 / m == fold; });
    of_folds += squares / weight / 2;
  }
  const double by_all = error(
                            ones, [](Index) { return false; }, m / (m - 1.0))
                            .first /
                        m;
  for (const auto& grid : compact_grids())
    for (const Index n : {1, 21})
      for (const double constant : {0.0, 0.1})
        for (const double alpha : {0.0, 1.0}) {
          CAPTURE(grid->rows(), grid->cols(), n, constant, alpha);
          const auto score = [&](RidgeOptions options) {
            options.alphas = {alpha};
            options.score = RidgeScore::negative_mse;
            const Element<double> A = [&](Index, Index j) { return constant * static_cast<double>(j + 1); };
            const auto found = fitted<double>(grid, Algorithm::stationary_a, m, n, A, y, options, 1);
            return grid->is_member() ? -found.report.columns[0].score : NAN;
          };
          const double gcv = score({.validation = RidgeValidation::gcv}),
                       loo = score({.validation = RidgeValidation::leave_one_out, .weights = weights}),
                       folds = score({.folds = contiguous_folds(m, 2)});
          if (!grid->is_member()) continue;
          CHECK(std::abs(gcv - by_all) <= 1e-12);
          CHECK(std::abs(loo - left_out / in_all) <= 1e-12);
          CHECK(std::abs(folds - of_folds) <= 1e-12);
        }
}

TEST_CASE("A feature that is constant in a training set has no coefficient there, also without damping") {
  // Only the first row has the feature. The mean of all rows is subtracted first.
  constexpr Index m = 15, first = 8;
  const auto y = [](Index i, Index) { return counter_random<double>(7, i, 0); };
  const auto rare = [](Index i, Index) { return i == 0 ? 1.0 : 0.0; };
  double mean = 0, expected = 0;
  for (Index i = first; i < m; ++i) mean += y(i, 0) / (m - first);
  for (Index i = 0; i < first; ++i) expected += std::pow(y(i, 0) - mean, 2) / first;
  RidgeOptions options{.alphas = {0}, .folds = contiguous_folds(m, 2), .score = RidgeScore::negative_mse};
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<double> A = dense_operator<double>(grid, Algorithm::stationary_a, m, 1, rare);
    DistMatrix<double> B(grid, A->range().layout(1));
    B.fill(y);
    const RidgeReport report = PreparedRidge<double>(*A, options, false, 1).fit(B, nullptr);
    if (grid->is_member()) CHECK(std::abs(report.fold_scores[0] + expected) <= 1e-12);
  }
}

TEST_CASE("A training row of any weight is constant") {
  // Two equal rows are the truth. What rounding leaves differs from row to row.
  RidgeOptions one{.alphas = {1}, .folds = {0, 1}, .score = RidgeScore::negative_mse, .intercept = false};
  RidgeOptions two = one;
  one.weights = {2, 2};
  two.folds = {0, 0, 1, 1};
  one.standardize = two.standardize = true;
  const auto y = [](Index i, Index) { return 2.0 + static_cast<double>(i); };
  for (const auto& grid : compact_grids())
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const auto A = [&](Index i, Index j) {
        return counter_random<double>(seed, i, j) / 4 + static_cast<double>(j) / 20;
      };
      const auto found = fitted<double>(grid, Algorithm::block, 2, 21, A, y, one, 1);
      const auto expected = fitted<double>(
          grid, Algorithm::block, 4, 21, [&](Index i, Index j) { return A(i / 2, j); },
          [&](Index i, Index j) { return y(i / 2, j); }, two, 1);
      if (grid->is_member())
        CHECK(std::abs(found.report.columns[0].score - expected.report.columns[0].score) <= 1e-12);
    }
}

TEST_CASE("A constant feature is not standardised, whatever the weights and the rows") {
  // Of whole weights, rows that are copied are the truth.
  constexpr Index m = 30, n = 3;
  const auto element = [](Index i, Index j) { return j == 1 ? 1.0F : features<float>()(i, j); };
  RidgeOptions weighted{.alphas = {30}, .validation = RidgeValidation::none, .intercept = false};
  weighted.standardize = true;
  RidgeOptions copied = weighted;
  std::vector<Index> rows;
  for (Index i = 0; i < m; ++i) {
    weighted.weights.push_back(static_cast<double>(1 + i % 3));
    rows.insert(rows.end(), static_cast<std::size_t>(1 + i % 3), i);
  }
  const auto row = [&](Index i) { return rows[static_cast<std::size_t>(i)]; };
  // In either fold the last feature is constant, so that it is none.
  constexpr Index many = 100000;
  RidgeOptions options{.alphas = {1}, .folds = contiguous_folds(many, 2)};
  options.standardize = true;
  const auto with_one = [](Index i, Index j) {
    return j == 2 ? (i < many / 2 ? 1.0 : 0.0) : features<double>()(i, j);
  };
  for (const auto& grid : compact_grids()) {
    const auto found = fitted<float>(grid, Algorithm::block, m, n, element, targets<float>(n), weighted, 2);
    const auto expected = fitted<float>(
        grid, Algorithm::block, std::ssize(rows), n, [&](Index i, Index j) { return element(row(i), j); },
        [&](Index i, Index j) { return targets<float>(n)(row(i), j); }, copied, 2);
    const auto with =
        fitted<double>(grid, Algorithm::block, many, 3, with_one, targets<double>(2), options, 1);
    const auto without =
        fitted<double>(grid, Algorithm::block, many, 2, features<double>(), targets<double>(2), options, 1);
    if (!grid->is_member()) continue;
    CHECK(relative_difference(found.X, expected.X) <= 1e-4);
    CHECK(std::abs(with.report.columns[0].score - without.report.columns[0].score) <= 1e-9);
  }
}

TEMPLATE_TEST_CASE("A ridge leaves one row out exactly", "", float, double, std::complex<double>) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    for (const auto& [m, n] : shapes) {
      for (const bool intercept : {true, false}) {
        RidgeOptions options{.alphas = {0.5, 5}, .validation = RidgeValidation::leave_one_out};
        options.intercept = intercept;
        options.score = intercept ? RidgeScore::negative_mse : RidgeScore::r2;
        CAPTURE(grid->rows(), grid->cols(), m, n, intercept);
        const auto found =
            fitted<T>(grid, Algorithm::stationary_a, m, n, features<T>(), targets<T>(n), options);
        if (grid->is_member())
          check_ridge<T>(found, m, n, features<T>(), targets<T>(n), options, rounding_of<T>);
      }
    }
  }
}

TEMPLATE_TEST_CASE("A ridge leaves one row out exactly where all others are interpolated", "", float, double,
                   std::complex<double>) {
  using T = TestType;
  // The definition loses digits, too: ε‖A‖²/α of the data.
  const double tolerance = is_double<T> ? 1e-6 : 2e-3;
  for (const auto& grid : compact_grids()) {
    for (const auto& [m, n] : {std::pair<Index, Index>{15, 30}, {17, 18}, {16, 16}, {17, 16}}) {
      for (const bool intercept : {true, false}) {
        RidgeOptions options{.alphas = {1e-8, 1e-5, 1}, .validation = RidgeValidation::leave_one_out};
        options.intercept = intercept;
        CAPTURE(grid->rows(), grid->cols(), m, n, intercept);
        const auto found =
            fitted<T>(grid, Algorithm::stationary_a, m, n, features<T>(), targets<T>(n), options);
        if (grid->is_member()) check_ridge<T>(found, m, n, features<T>(), targets<T>(n), options, tolerance);
      }
    }
  }
}

TEST_CASE("A ridge leaves one of two equal rows out exactly") {
  constexpr Index m = 16, n = 30;
  const Element<double> A = [](Index i, Index j) { return features<double>()(i % 8, j); };
  for (const auto& grid : compact_grids()) {
    RidgeOptions options{.alphas = {1e-6, 1e-3, 1}, .validation = RidgeValidation::leave_one_out};
    options.score = RidgeScore::negative_mse;
    const auto found = fitted<double>(grid, Algorithm::stationary_a, m, n, A, targets<double>(n), options);
    if (grid->is_member()) check_ridge<double>(found, m, n, A, targets<double>(n), options, 1e-6);
  }
}

TEMPLATE_TEST_CASE("Generalised cross-validation divides by the trace", "", double, std::complex<double>) {
  using T = TestType;
  const auto grid = compact_grids().front();
  for (const auto& [m, n] : shapes) {
    RidgeOptions options{
        .alphas = {0.5, 5}, .validation = RidgeValidation::gcv, .score = RidgeScore::negative_mse};
    const auto found = fitted<T>(grid, Algorithm::stationary_a, m, n, features<T>(), targets<T>(n), options);
    if (!grid->is_member()) continue;
    // Predictions of data that are 1 in one row have that row's leverage there.
    const Element<T> unit = [](Index i, Index j) { return T(i == j ? 1.0 : 0.0); };
    const ReferenceRidge<T> of_units(m, n, features<T>(), unit, options),
        reference(m, n, features<T>(), targets<T>(n), options);
    for (Index d = 0; d < 2; ++d) {
      const double alpha = options.alphas[static_cast<std::size_t>(d)];
      double trace = 0;
      for (Index i = 0; i < m; ++i)
        trace += std::real(of_units.fit(of_units.all_rows(), i, alpha).predicted(features<T>(), i));
      const double left = 1 - trace / static_cast<double>(m);
      for (Index j = 0; j < columns; ++j) {
        const auto fit = reference.fit(reference.all_rows(), j, alpha);
        double error = 0;
        for (Index i = 0; i < m; ++i)
          error += std::norm(std::complex<double>(targets<T>(n)(i, j)) -
                             std::complex<double>(fit.predicted(features<T>(), i)));
        const double expected = -error / static_cast<double>(m) / (left * left),
                     score = found.report.scores[static_cast<std::size_t>(d + 2 * j)];
        CAPTURE(m, n, d, j, score, expected);
        CHECK(std::abs(score - expected) <= 1e-9 * std::abs(expected));
      }
    }
  }
}

TEST_CASE("Folds may be unequal, of one row, and leave rows to training") {
  constexpr Index m = 11, n = 4;
  for (const auto& grid : compact_grids()) {
    for (const auto& folds : {std::vector<Index>{7, 7, 7, 7, 7, 7, 7, 0, -1, 3, -1},
                              std::vector<Index>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                              std::vector<Index>{5, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}}) {
      const RidgeOptions options{
          .alphas = {1, 10}, .folds = folds, .score = RidgeScore::negative_mse, .batch = 2};
      const auto found = fitted<double>(grid, Algorithm::stationary_a, m, n, features<double>(),
                                        targets<double>(n), options);
      if (grid->is_member())
        check_ridge<double>(found, m, n, features<double>(), targets<double>(n), options, 1e-9);
    }
  }
}

TEST_CASE("Targets choose together, and dampings may be given") {
  constexpr Index m = 30, n = 6;
  for (const auto& grid : compact_grids()) {
    RidgeOptions options{.alphas = {0.1, 10, 1000, 1e5}, .folds = contiguous_folds(m, 5), .batch = 2};
    const auto each =
        fitted<double>(grid, Algorithm::block, m, n, features<double>(), targets<double>(n), options);
    options.groups = {4, 2, 4, 2, 2};
    const auto grouped =
        fitted<double>(grid, Algorithm::block, m, n, features<double>(), targets<double>(n), options);
    if (!grid->is_member()) continue;
    CHECK(grouped.report.scores == each.report.scores);
    for (const auto& members : {std::vector<std::size_t>{0, 2}, std::vector<std::size_t>{1, 3, 4}}) {
      std::size_t best = 0;
      std::vector<double> sums(4, 0.0);
      for (std::size_t d = 0; d < 4; ++d) {
        for (const std::size_t j : members) sums[d] += each.report.scores[d + 4 * j];
        if (sums[d] > sums[best]) best = d;
      }
      for (const std::size_t j : members) CHECK(grouped.report.columns[j].chosen == static_cast<Index>(best));
    }
    // The chosen dampings, given, lead to the same coefficients.
    RidgeOptions given{.alphas = {}, .validation = RidgeValidation::none};
    for (const RidgeColumn& column : grouped.report.columns) given.alphas.push_back(column.alpha);
    const auto again =
        fitted<double>(grid, Algorithm::block, m, n, features<double>(), targets<double>(n), given);
    CHECK(relative_difference(again.X, grouped.X) <= 1e-12);
    CHECK(std::isnan(again.report.columns[0].score));
    CHECK(again.report.scores.empty());
  }
}

TEMPLATE_TEST_CASE("A prepared ridge fits some columns at a time", "", float, double, std::complex<double>) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    for (const auto& [m, n] : shapes) {
      CAPTURE(grid->rows(), grid->cols(), m, n);
      const RidgeOptions options{
          .alphas = {0.3, 30, 3}, .folds = interleaved_folds(m, 3), .score = RidgeScore::negative_mse};
      const auto whole =
          fitted<T>(grid, Algorithm::stationary_a, m, n, features<T>(), targets<T>(n), options);
      const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n, features<T>());
      PreparedRidge<T> prepared(*A, options, true, columns);
      // One column, the others, none; and with a damping that is not the best.
      for (const Range part : {Range{0, 1}, {1, columns - 1}, {3, 0}}) {
        DistMatrix<T> B(grid, column_blocks(*grid, m, part.size)),
            X(grid, column_blocks(*grid, n, part.size));
        B.fill([&](Index i, Index j) { return targets<T>(n)(i, part.begin + j); });
        const RidgeReport report = prepared.fit(B, &X);
        const std::vector<Index> last(static_cast<std::size_t>(part.size), 2);
        const RidgeReport given = prepared.fit(B, nullptr, last);
        const std::vector<T> x = everywhere(X);
        if (!grid->is_member()) continue;
        REQUIRE(std::ssize(report.columns) == part.size);
        CHECK(std::ssize(report.fold_scores) == part.size * 3 * prepared.folds_scored());
        for (Index j = 0; j < part.size; ++j) {
          const RidgeColumn &one = report.columns[static_cast<std::size_t>(j)],
                            &other = whole.report.columns[static_cast<std::size_t>(part.begin + j)];
          CHECK(one.chosen == other.chosen);
          CHECK(std::abs(one.score - other.score) <= rounding_of<T> * std::abs(other.score));
          const std::vector<T> x_j(x.begin() + j * n, x.begin() + (j + 1) * n),
              of_whole(whole.X.begin() + (part.begin + j) * n, whole.X.begin() + (part.begin + j + 1) * n);
          CHECK(relative_difference(x_j, of_whole) <= rounding_of<T>);
          CHECK((given.columns[static_cast<std::size_t>(j)].alpha == 3 &&
                 std::isnan(given.columns[static_cast<std::size_t>(j)].score)));
        }
      }
      if (!grid->is_member()) continue;
      DistMatrix<T> B(grid, column_blocks(*grid, m, 2));
      B.fill(targets<T>(n));
      for (const auto& [wrong, text] :
           {std::pair<std::vector<Index>, std::string>{{1}, "but 1 of 3 dampings"},
            {{1, 1, 1}, "but 3 of 3 dampings"},
            {{0, 3}, "no damping 3 of 3"}}) {
        const Ending ending = ending_of([&] { prepared.fit(B, nullptr, wrong); });
        CHECK(all_ended_alike(*grid, ending));
        CHECK(contains(ending.text, text));
      }
    }
  }
}

TEST_CASE("A ridge takes collinear and constant features, constant data, and any damping") {
  constexpr Index m = 24, n = 5;
  // Column 1 is twice column 0, and column 2 is constant.
  const Element<double> A = [](Index i, Index j) {
    if (j == 2) return 0.1;
    return j == 1 ? 2 * counter_random<double>(1, i, 0) : counter_random<double>(1, i, j);
  };
  const Element<double> B = [](Index i, Index j) { return j == 0 ? 0.3 : counter_random<double>(5, i, j); };
  for (const auto& grid : compact_grids()) {
    for (const bool standardize : {false, true}) {
      RidgeOptions options{.alphas = {0, 1e-30, 1, 1e30}, .folds = contiguous_folds(m, 4)};
      options.standardize = standardize;
      const auto found = fitted<double>(grid, Algorithm::stationary_a, m, n, A, B, options, 3);
      if (!grid->is_member()) continue;
      for (std::size_t d = 0; d < 4; ++d) CHECK(found.report.scores[d] == 1);
      CHECK(found.report.columns[0].intercept == 0.3);
      for (std::size_t j = 0; j < 3; ++j) {
        CHECK(is_solved(found.report.columns[j].reason));
        CHECK(std::abs(found.report.scores[4 * j] - found.report.scores[1 + 4 * j]) <= 1e-9);
        for (std::size_t i = 0; i < n; ++i) CHECK(std::isfinite(found.X[i + n * j]));
      }
      // With no damping the shortest coefficients: those of the two columns are in the ratio of the columns.
      RidgeOptions none{.alphas = {0}, .validation = RidgeValidation::none};
      const auto shortest = fitted<double>(grid, Algorithm::stationary_a, m, n, A, B, none, 3);
      CHECK(std::abs(shortest.X[1 + n] - 2 * shortest.X[n]) <= 1e-9);
      CHECK(std::abs(shortest.X[2 + n]) <= 1e-12);
      // With the largest the mean is predicted.
      none.alphas = {1e30};
      const auto least = fitted<double>(grid, Algorithm::stationary_a, m, n, A, B, none, 3);
      CHECK(std::abs(least.X[n]) <= 1e-25);
    }
  }
}

TEST_CASE("Numbers of any size have a ridge, and single precision keeps its digits beside a large mean") {
  constexpr Index m = 40, n = 6;
  for (const auto& grid : compact_grids()) {
    const RidgeOptions plain{.alphas = {1, 30}, .folds = contiguous_folds(m, 4)};
    const auto expected =
        fitted<double>(grid, Algorithm::stationary_a, m, n, features<double>(), targets<double>(n), plain);
    for (const int power : {-200, 200}) {
      RidgeOptions options = plain;
      for (double& alpha : options.alphas) alpha = std::ldexp(alpha, 2 * power);
      const auto found = fitted<double>(
          grid, Algorithm::stationary_a, m, n,
          [&](Index i, Index j) { return std::ldexp(features<double>()(i, j), power); },
          [&](Index i, Index j) { return std::ldexp(targets<double>(n)(i, j), -2 * power); }, options);
      if (!grid->is_member()) continue;
      CHECK(found.report.scores == expected.report.scores);
      std::vector<double> X = found.X;
      for (double& x : X) x = std::ldexp(x, 3 * power);
      CHECK(X == expected.X);
    }
    // The integers and their sums with the mean are exact in single precision.
    const Element<float> A = [](Index i, Index j) { return small_integer<float>(1, i, j) + 4096.0F; },
                         B = [](Index i, Index j) { return small_integer<float>(2, i, j) + 65536.0F; };
    const auto found = fitted<float>(grid, Algorithm::stationary_a, m, n, A, B, plain);
    if (grid->is_member()) check_ridge<float>(found, m, n, A, B, plain, 1e-5);
  }
}

TEMPLATE_TEST_CASE("Standardised features have no unit", "", float, double) {
  using T = TestType;
  const int most = is_double<T> ? 200 : 60;
  for (const auto& grid : compact_grids()) {
    for (const auto& [m, n] : {std::pair<Index, Index>{40, 6}, {12, 20}}) {
      RidgeOptions options{.alphas = {1, 30}, .folds = contiguous_folds(m, 4)};
      options.standardize = true;
      const auto expected =
          fitted<T>(grid, Algorithm::stationary_a, m, n, features<T>(), targets<T>(n), options);
      for (const int power : {-most, most}) {
        CAPTURE(grid->rows(), grid->cols(), m, n, power);
        const auto found = fitted<T>(
            grid, Algorithm::stationary_a, m, n,
            [&](Index i, Index j) { return std::ldexp(features<T>()(i, j), power); }, targets<T>(n), options);
        if (!grid->is_member()) continue;
        CHECK(found.report.scores == expected.report.scores);
        std::vector<T> X = found.X;
        for (T& x : X) x = std::ldexp(x, power);
        CHECK(X == expected.X);
        for (std::size_t j = 0; j < columns; ++j) {
          const RidgeColumn &ours = found.report.columns[j], &theirs = expected.report.columns[j];
          CHECK(is_solved(ours.reason));
          CHECK(ours.normal_residual_norm == theirs.normal_residual_norm);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("Correlations of predictions do not vanish with them", "", float, double) {
  using T = TestType;
  constexpr Index m = 40, n = 6;
  for (const auto& grid : compact_grids()) {
    // From the first one on, coefficients are AᴴB/α within 1e-6.
    const RidgeOptions options{
        .alphas = {1e8, 1e20, 1e30}, .folds = contiguous_folds(m, 4), .score = RidgeScore::correlation};
    const auto found = fitted<T>(grid, Algorithm::stationary_a, m, n, features<T>(), targets<T>(n), options);
    if (!grid->is_member()) continue;
    const ReferenceRidge<T> reference(m, n, features<T>(), targets<T>(n), options);
    for (Index j = 0; j < columns; ++j) {
      const double expected = reference.score(j, 1e8);
      for (Index d = 0; d < 3; ++d)
        CHECK(std::abs(found.report.scores[static_cast<std::size_t>(d + 3 * j)] - expected) <= 1e-5);
    }
  }
}

TEST_CASE("Few rows with large means have a ridge in single precision") {
  constexpr Index m = 20, n = 35;
  const Element<float> A = [](Index i, Index j) { return counter_random<float>(1, i, j) + 100.0F; };
  for (const auto& grid : compact_grids()) {
    for (const bool intercept : {true, false}) {
      RidgeOptions options{.alphas = {0.01, 1}, .folds = contiguous_folds(m, 4)};
      options.intercept = intercept;
      CAPTURE(grid->rows(), grid->cols(), intercept);
      const auto found = fitted<float>(grid, Algorithm::stationary_a, m, n, A, targets<float>(n), options);
      if (grid->is_member()) check_ridge<float>(found, m, n, A, targets<float>(n), options, 3e-4);
    }
  }
}

TEST_CASE("Without features a row is predicted by the mean of the others") {
  constexpr Index m = 5;
  const Element<double> B = [](Index i, Index) { return static_cast<double>(i); };
  for (const auto& grid : compact_grids()) {
    const RidgeOptions options{.validation = RidgeValidation::leave_one_out,
                               .score = RidgeScore::negative_mse};
    const auto found = fitted<double>(grid, Algorithm::stationary_a, m, 0, features<double>(), B, options, 1);
    if (!grid->is_member()) continue;
    // The residuals from the mean are −2, …, 2, those from the mean of the others 5/4 of them.
    CHECK(std::abs(found.report.scores[0] + 2 * 25.0 / 16) <= 1e-12);
  }
}

TEST_CASE("A ridge has few rows, columns and targets") {
  for (const auto& grid : compact_grids()) {
    for (const auto& [m, n, nrhs] : {std::array<Index, 3>{4, 0, 3}, {4, 3, 0}, {2, 1, 1}, {2, 9, 2}}) {
      CAPTURE(m, n, nrhs);
      const RidgeOptions options{
          .alphas = {1, 2}, .folds = contiguous_folds(m, 2), .score = RidgeScore::negative_mse};
      const auto found =
          fitted<double>(grid, Algorithm::block, m, n, features<double>(), targets<double>(n), options, nrhs);
      if (!grid->is_member()) continue;
      if (n > 0) {
        check_ridge<double>(found, m, n, features<double>(), targets<double>(n), options, 1e-9, nrhs);
        continue;
      }
      // Without features the mean is predicted.
      double mean = 0;
      for (Index i = 0; i < m; ++i) mean += targets<double>(0)(i, 0) / static_cast<double>(m);
      CHECK(std::abs(found.report.columns[0].intercept - mean) <= 1e-12);
    }
  }
}

TEMPLATE_TEST_CASE("A ridge takes no more memory than it says", "", float, double) {
  using T = TestType;
  constexpr Index nrhs = 300;
  for (const GridPtr& grid :
       all_grids([] { return std::make_shared<MeteredBackend>(make_host_backend()); })) {
    if (!grid->is_member()) continue;
    auto& backend = dynamic_cast<MeteredBackend&>(*grid->backend());
    for (const auto& [m, n] : {std::pair<Index, Index>{700, 30}, {41, 90}, {40, 40}}) {
      // One fold has nearly all rows.
      std::vector<Index> unequal(static_cast<std::size_t>(m), 0);
      unequal[2] = unequal[3] = 1;
      unequal[5] = -1;
      for (const RidgeOptions& options :
           {RidgeOptions{.alphas = {1, 2}, .folds = unequal, .score = RidgeScore::negative_mse},
            RidgeOptions{.alphas = {1e-7, 2}, .folds = contiguous_folds(m, 3), .batch = 7},
            RidgeOptions{.alphas = {1, 2}, .validation = RidgeValidation::leave_one_out},
            RidgeOptions{.alphas = {1, 2}, .validation = RidgeValidation::gcv},
            RidgeOptions{.validation = RidgeValidation::none}}) {
        const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n, features<T>());
        DistMatrix<T> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs));
        B.fill(features<T>());
        for (const bool with_coefficients : {true, false}) {
          CAPTURE(describe(*grid), m, n, name_of(options.validation), with_coefficients);
          const Index before = backend.bytes_in_use();
          backend.forget_most();
          static_cast<void>(ridge<T>(*A, B, options, with_coefficients ? &X : nullptr));
          CHECK(backend.most_bytes_in_use() - before <=
                ridge_bytes(m, n, nrhs, scalar_type_of<T>, options, with_coefficients, grid->comm().size()));
        }
      }
    }
  }
}

TEST_CASE("A ridge of too many eigenvectors is refused before its memory is counted") {
  CHECK_THROWS_AS(
      ridge_bytes(50000, 40000, 1, ScalarType::f32, {.validation = RidgeValidation::none}, true, 1),
      UsageError);
  CHECK(ridge_bytes(500000, 20000, 1, ScalarType::f32, {.validation = RidgeValidation::none}, true, 1) > 0);
}

TEST_CASE("A ridge refuses what it cannot fit, on all ranks") {
  constexpr Index m = 6, n = 2;
  const auto grid = compact_grids().back();
  if (!grid->is_member()) return;
  const auto message_of = [&](const RidgeOptions& options, const Element<double>& A,
                              const Element<double>& B) {
    const Ending ending =
        ending_of([&] { fitted<double>(grid, Algorithm::stationary_a, m, n, A, B, options, 2); });
    CHECK(all_ended_alike(*grid, ending));
    return ending.text;
  };
  const auto refused = [&](const RidgeOptions& options) {
    return message_of(options, features<double>(), targets<double>(n));
  };
  const std::vector<Index> folds = contiguous_folds(m, 2);
  const auto says = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(contains(text, part));
  };
  says(refused({.alphas = {}, .folds = folds}), "there are no dampings");
  says(refused({.alphas = {1, -2}, .folds = folds}), "the damping -2 is impossible");
  says(refused({.folds = {0, 1}}), "6 rows, but there are 2 labels");
  says(refused({.folds = {0, 0, 0, 0, 0, 0}}), "at least 2");
  says(refused({.folds = {0, 0, 0, 0, 0, 7}}), "the fold of label 7 has one row");
  says(refused({.alphas = {1, 2, 3}, .validation = RidgeValidation::none}), "3 dampings for 2 columns");
  says(refused({.folds = folds, .groups = {1}}), "2 columns, but there are 1 numbers");
  says(refused({.folds = folds, .weights = {1, 2}}), "6 rows, but there are 2 weights");
  says(refused({.folds = folds, .weights = {1, 1, 1, -1, 1, 1}}), "the weight -1 of a row");
  says(refused({.folds = folds, .weights = {1, 1, 1, 0, 0, 1}}), "the fold of label 1 has 1 of 4 rows");
  says(refused({.folds = folds, .weights = {1, 1, 1, 0, 0, 0}}), "has 3 of 3 rows");
  says(refused({.validation = RidgeValidation::gcv, .weights = {1, 1, 1, 0, 1, 1}, .score = RidgeScore::r2}),
       "1 rows have weight 0");
  says(refused({.validation = RidgeValidation::none, .weights = {0, 0, 0, 0, 0, 0}}), "0 of 6 rows");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  says(message_of(
           {.folds = folds}, [&](Index i, Index j) { return i == 4 && j == 1 ? nan : 1.0; },
           targets<double>(n)),
       "A has nan at row 4, column 1");
  says(message_of({.folds = folds}, features<double>(),
                  [&](Index i, Index j) { return i == 3 && j == 1 ? nan : 1.0; }),
       "B has nan at row 3, column 1");
}
