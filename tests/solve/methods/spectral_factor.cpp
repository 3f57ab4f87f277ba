// SPDX-License-Identifier: BSD-3-Clause
// One factor for all dampings: solutions, curves and choices.
#include "gridlops/solve/spectral_factor.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "solve/methods/factor_problems.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// A point of the curve of column j, from the known singular values and vectors.
struct ExactPoint {
  long double x = 0, residual = 0, free_dimensions = 0;
};
template <Scalar T>
ExactPoint exact_point(const KnownSpectrum<T>& A, const std::vector<double>& values, const Element<T>& b,
                       Index j, double damp) {
  ExactPoint point;
  for (Index k = 0; k < A.rows(); ++k) {
    const long double value = k < std::ssize(values) ? values[static_cast<std::size_t>(k)] : 0.0L, D = damp,
                      sum = value * value + D * D, square = std::norm(A.component(b, j, k)),
                      left = value == 0 ? 1 : D * D / sum;
    if (value > 0) point.x += value * value * square / (sum * sum);
    point.residual += left * left * square;
    point.free_dimensions += left;
  }
  point.x = std::sqrt(point.x);
  point.residual = std::sqrt(point.residual);
  return point;
}

/// B ← b times 2^power.
template <Scalar T>
DistMatrix<T> data_of(const LinearOperator<T>& A, Index columns, const Element<T>& b, int power = 0) {
  DistMatrix<T> B(A.range().grid, A.range().layout(columns));
  B.fill(b);
  B *= std::ldexp(1.0, power);
  return B;
}

}  // namespace

TEMPLATE_TEST_CASE("Columns of the direct solver may have dampings of their own", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  const Element<T> b = random_elements<T>(4);
  const std::vector<double> damps{0.3, 0, 2, 0.01, 0.3};
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const auto& [m, n] : factor_shapes) {
        const KnownSpectrum<T> matrix(m, n, geometric(std::min(m, n), 30));
        const OperatorPtr<T> A = dense_operator(grid, algorithm, matrix);
        CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), m, n);
        SolveOptions options;
        options.damp = damps;
        const Solution<T> solution = solve<T>(direct, *A, 5, b, options);
        if (!grid->is_member()) continue;
        for (Index j = 0; j < 5; ++j) {
          CHECK(is_solved(solution.verdict(j).reason));
          CHECK(solution.verdict(j).iterations <= (is_double<T> ? 1 : 3));
          const double damp = damps[static_cast<std::size_t>(j)];
          CHECK(relative_difference(solution.column(j), matrix.least_squares_solution(b, j, damp)) <=
                (is_double<T> ? 1e-11 : 1e-3));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("A spectral factor has the singular values of A, at any scale", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  const int far = is_double<T> ? 300 : 50;
  for (const auto& grid : compact_grids()) {
    for (const auto& [m, n] : factor_shapes) {
      for (const int power : {0, -far, far}) {
        std::vector<double> values = geometric(std::min(m, n), 20);
        if (values.size() > 4) values[2] = 0;
        for (double& value : values) value = std::ldexp(value, power);
        const KnownSpectrum<T> matrix(m, n, values);
        const OperatorPtr<T> A = dense_operator(grid, Algorithm::stationary_a, matrix);
        const auto V = spectral_factor(*A);
        if (!grid->is_member()) continue;
        CAPTURE(grid->rows(), grid->cols(), m, n, power);
        std::sort(values.begin(), values.end(), std::greater<>());
        REQUIRE(V->singular_values().size() == values.size());
        for (std::size_t k = 0; k < values.size(); ++k)
          CHECK(
              std::abs(V->singular_values()[k] - values[k]) <=
              std::max((is_double<T> ? 1e-12 : 1e-4) * values.front(), values[k] == 0 ? V->resolution() : 0));
        CHECK(V->facts().rank == static_cast<Index>(values.size() - (values.size() > 4 ? 1 : 0)));
        CHECK(V->facts().by_qr);
        const double damp = std::ldexp(0.5, power);
        double free = static_cast<double>(m);
        for (const double value : values) free -= std::pow(value / std::hypot(value, damp), 2);
        CHECK(V->free_dimensions(damp) == Approx(free).epsilon(is_double<T> ? 1e-12 : 1e-3));
      }
    }
  }
}

TEMPLATE_TEST_CASE("Curves of a spectral factor are those of the exact solutions", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  const double close = is_double<T> ? 1e-9 : 2e-3;
  const Element<T> b = random_elements<T>(4);
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : {Algorithm::stationary_a, Algorithm::block, Algorithm::summa}) {
      for (const auto& [m, n] : factor_shapes) {
        for (const int power : {0, is_double<T> ? 250 : 40}) {
          const std::vector<double> values = geometric(std::min(m, n), 30);
          const KnownSpectrum<T> matrix(m, n, values);
          // 2^power A and 2^−power b have D 2^power and x 2^(−2·power).
          const OperatorPtr<T> A = dense_operator<T>(grid, algorithm, m, n, [&](Index i, Index j) {
            return to_scalar<T>(std::ldexp(1.0, power)) * matrix(i, j);
          });
          std::vector<double> damps{1, 0.2, 0, 30, 0.01};
          for (double& damp : damps) damp = std::ldexp(damp, power);
          const auto V = spectral_factor(*A);
          const DistMatrix<T> B = data_of<T>(*A, 3, b, -power);
          const auto curves = damping_curves(*A, B, *V, damps, DampingRule::gcv);
          CHECK(curves.size() == (grid->is_member() ? 3 : 0));
          for (std::size_t j = 0; j < curves.size(); ++j) {
            CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), m, n, power, j);
            REQUIRE(curves[j].points.size() == damps.size());
            std::vector<long double> gcv;
            for (std::size_t d = 0; d < damps.size(); ++d) {
              const CurvePoint& point = curves[j].points[d];
              const ExactPoint exact =
                  exact_point(matrix, values, b, static_cast<Index>(j), std::ldexp(damps[d], -power));
              CHECK(point.damp == damps[d]);
              CHECK(is_solved(point.reason));
              CHECK(point.x_norm ==
                    Approx(static_cast<double>(std::ldexp(exact.x, -2 * power))).epsilon(close));
              const double residual = static_cast<double>(std::ldexp(exact.residual, -power)),
                           data = static_cast<double>(
                               exact_point(matrix, values, b, static_cast<Index>(j), 1e9).residual);
              CHECK(std::abs(point.residual_norm - residual) <= close * std::ldexp(data, -power));
              CHECK(std::abs(point.free_dimensions - static_cast<double>(exact.free_dimensions)) <=
                    close * static_cast<double>(m));
              gcv.push_back(exact.free_dimensions > 0 ? std::pow(exact.residual / exact.free_dimensions, 2)
                                                      : std::numeric_limits<long double>::infinity());
            }
            REQUIRE(curves[j].chosen);
            // Of equal values, as where A is a number, any may be chosen.
            CHECK(gcv[static_cast<std::size_t>(*curves[j].chosen)] <=
                  (1 + close) * *std::min_element(gcv.begin(), gcv.end()));
          }
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("The rows of an ill-conditioned A give curves at dampings that AᴴA hides", "", double,
                   std::complex<double>) {
  using T = TestType;
  const std::vector<double> values = geometric(20, 1e9);
  const Element<T> b = random_elements<T>(4);
  for (const auto& grid : compact_grids()) {
    for (const auto& [m, n] : {std::pair<Index, Index>{60, 20}, {20, 60}}) {
      const KnownSpectrum<T> matrix(m, n, values);
      const OperatorPtr<T> A = dense_operator(grid, Algorithm::stationary_a, matrix);
      const DistMatrix<T> B = data_of<T>(*A, 2, b);
      const std::vector<double> damps{1e-8, 1e-6, 1e-4, 1e-2, 1};
      for (const double least : {1e-8, 1e-2}) {
        const auto V = spectral_factor(*A, least);
        std::vector<double> served;
        for (const double damp : damps)
          if (damp >= least) served.push_back(damp);
        const auto curves = damping_curves(*A, B, *V, served, DampingRule::lcurve);
        if (!grid->is_member()) continue;
        CAPTURE(grid->rows(), grid->cols(), m, n, least);
        CHECK(V->facts().by_qr == (least < 1e-4));
        CHECK(V->relative_rounding(least) <= 1e-6);
        for (const DampingCurve& curve : curves)
          for (const CurvePoint& point : curve.points) {
            const ExactPoint exact = exact_point(matrix, values, b, &curve - curves.data(), point.damp);
            CAPTURE(point.damp);
            CHECK(point.x_norm == Approx(static_cast<double>(exact.x)).epsilon(1e-5));
            CHECK(point.residual_norm == Approx(static_cast<double>(exact.residual)).epsilon(1e-9));
          }
      }
    }
  }
}

TEST_CASE("Other right-hand sides and dampings take a spectral factor that was made before", "") {
  using T = double;
  const KnownSpectrum<T> matrix(45, 23, geometric(23, 30));
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator(grid, Algorithm::stationary_a, matrix);
    const auto V = spectral_factor(*A, 0.1);
    for (const std::uint64_t seed : {std::uint64_t{4}, std::uint64_t{5}}) {
      const Element<T> b = random_elements<T>(seed);
      const DistMatrix<T> B = data_of<T>(*A, 3, b);
      DistMatrix<T> X(grid, A->domain().layout(3));
      const std::vector<double> damps{0.1, 3, 0.5};
      const SolveReport report = solve(Solver::direct, *A, B, X, {.damp = damps}, {.factor = V.get()});
      const std::vector<T> whole = everywhere<T>(X);
      if (!grid->is_member()) continue;
      CHECK(A->activity().forward_columns == static_cast<Index>(3 * (seed - 3)));
      for (Index j = 0; j < 3; ++j) {
        const std::vector<T> x(whole.begin() + j * 23, whole.begin() + (j + 1) * 23);
        const double damp = damps[static_cast<std::size_t>(j)];
        CHECK(is_solved(report.columns[static_cast<std::size_t>(j)].reason));
        CHECK(relative_difference(x, matrix.least_squares_solution(b, j, damp)) <= 1e-12);
      }
    }
  }
}

TEMPLATE_TEST_CASE("Variances of the direct solver are the diagonal, for the damping of each column", "",
                   float, double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  constexpr Index m = 45, n = 23;
  std::vector<double> values = geometric(n, 30);
  values[5] = 0;
  const KnownSpectrum<T> matrix(m, n, values);
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      const OperatorPtr<T> A = dense_operator(grid, algorithm, matrix);
      const DistMatrix<T> B = data_of<T>(*A, 3, random_elements<T>(4));
      DistMatrix<T> X(grid, A->domain().layout(3)), V = X.clone();
      // Without rows of A a column that depends on others needs a damping.
      const bool has_rows = algorithm == Algorithm::block || algorithm == Algorithm::stationary_a;
      for (const std::vector<double>& damps :
           {std::vector<double>{0.3, has_rows ? 0.0 : 3.0, 2}, {0.5, 0.5, 0.5}, {0.7}}) {
        V.fill([](Index, Index) { return T(-7); });
        SolveOptions options;
        options.damp = damps;
        solve(Solver::direct, *A, B, X, options, {.variances = &V});
        const std::vector<T> found = everywhere<T>(V);
        if (!grid->is_member()) continue;
        for (Index j = 0; j < 3; ++j) {
          const double damp = options.damp[j];
          CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), damp);
          double difference = 0, largest = 0;
          for (Index i = 0; i < n; ++i) {
            double expected = 0;
            for (Index k = 0; k < n; ++k) {
              const double square = std::pow(std::hypot(values[static_cast<std::size_t>(k)], damp), 2);
              if (square > 0) expected += std::norm(matrix.right(i, k)) / square;
            }
            largest = std::max(largest, expected);
            difference = std::max<double>(
                difference, std::abs(found[static_cast<std::size_t>(i + j * n)] - to_scalar<T>(expected)));
          }
          CHECK(difference <= (is_double<T> ? 1e-11 : 1e-3) * largest);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE(
    "Dampings as small as what an ill-conditioned A loses by rounding give what a factor gives", "", float,
    double) {
  using T = TestType;
  const Element<T> b = random_elements<T>(4);
  for (const auto& grid : compact_grids()) {
    for (const auto& [m, n] : {std::pair<Index, Index>{45, 23}, {23, 45}}) {
      const double condition = is_double<T> ? 1e13 : m < n ? 1e5 : 1e6;
      const OperatorPtr<T> A =
          dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<T>(m, n, geometric(23, condition)));
      for (const double damp : {3 / condition, 30 / condition}) {
        SolveOptions options;
        options.damp = {damp, damp};
        const Solution<T> solution = solve<T>(direct, *A, 2, b, options);
        options.damp = damp;
        const Solution<T> expected = solve<T>(direct, *A, 2, b, options);
        if (!grid->is_member()) continue;
        CAPTURE(grid->rows(), grid->cols(), m, n, damp);
        for (Index j = 0; j < 2; ++j)
          CHECK(relative_difference(solution.column(j), expected.column(j)) <= 0.05);
      }
    }
  }
}

TEMPLATE_TEST_CASE(
    "Columns of A that depend on each other have the shortest solution, however small a damping", "", float,
    double, std::complex<double>) {
  using T = TestType;
  std::vector<double> values = geometric(23, 30);
  values[7] = 0;
  const KnownSpectrum<T> matrix(45, 23, values);
  const Element<T> b = random_elements<T>(4);
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator(grid, Algorithm::stationary_a, matrix);
    for (const double damp : {0.0, 1e-8, 1e-15, 1e-30}) {
      if (is_double<T> && damp == 1e-8) continue;  // this one is more than rounding
      SolveOptions options;
      options.damp = {damp, 0.5};
      const Solution<T> solution = solve<T>(direct, *A, 2, b, options);
      if (!grid->is_member()) continue;
      CAPTURE(grid->rows(), grid->cols(), damp);
      CHECK(is_solved(solution.verdict(0).reason));
      CHECK(relative_difference(solution.column(0), matrix.least_squares_solution(b, 0, 0)) <=
            (is_double<T> ? 1e-11 : 1e-3));
    }
  }
}

TEST_CASE("Damped columns of an A with few rows ignore a guess, whatever it has", "") {
  using T = double;
  const KnownSpectrum<T> matrix(23, 45, geometric(23, 30));
  const Element<T> b = random_elements<T>(4);
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<T> B = data_of<T>(*A, 2, b);
    DistMatrix<T> X(grid, A->domain().layout(2));
    X.fill([](Index, Index j) { return j == 0 ? std::nan("") : 0.0; });
    SolveOptions options;
    options.damp = {0.3, 0};
    options.initial_guess = true;
    const SolveReport report = solve(Solver::direct, *A, B, X, options);
    const std::vector<T> whole = everywhere<T>(X);
    if (!grid->is_member()) continue;
    for (Index j = 0; j < 2; ++j) {
      CHECK(is_solved(report.columns[static_cast<std::size_t>(j)].reason));
      CHECK(relative_difference(std::vector<T>(whole.begin() + j * 45, whole.begin() + (j + 1) * 45),
                                matrix.least_squares_solution(b, j, options.damp[j])) <= 1e-11);
    }
  }
}

TEST_CASE("An A without columns or rows has a spectral factor, too", "") {
  using T = double;
  for (const auto& grid : compact_grids()) {
    for (const auto& [m, n] : {std::pair<Index, Index>{5, 0}, {0, 5}, {0, 0}}) {
      CAPTURE(grid->rows(), grid->cols(), m, n);
      const OperatorPtr<T> A =
          dense_operator<T>(grid, Algorithm::stationary_a, m, n, [](Index, Index) { return 1.0; });
      const auto V = spectral_factor(*A);
      const DistMatrix<T> B = data_of<T>(*A, 2, random_elements<T>(4));
      DistMatrix<T> X(grid, A->domain().layout(2));
      const SolveReport report = solve(Solver::direct, *A, B, X, {.damp = {0.1, 2}}, {.factor = V.get()});
      const auto curves = damping_curves(*A, B, *V, {0.1, 2}, DampingRule::discrepancy, 100);
      if (!grid->is_member()) continue;
      CHECK(V->free_dimensions(1) == static_cast<double>(m));
      for (const ColumnReport& column : report.columns) CHECK(is_solved(column.reason));
      REQUIRE(curves.size() == 2);
      CHECK(curves[0].points[1].x_norm == 0);
      CHECK(curves[1].points[0].residual_norm == Approx(column_norms(B)[1]));
    }
  }
}

TEST_CASE("A spectral factor refuses what it cannot serve, on all ranks", "") {
  using T = double;
  const Element<T> b = random_elements<T>(4);
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<T> A =
        dense_operator(grid, Algorithm::summa, KnownSpectrum<T>(23, 45, geometric(23, 1e9)));
    CHECK_THROWS_AS(spectral_factor(*A, -1), UsageError);
    CHECK_THROWS_AS(spectral_factor(*A, std::nan("")), UsageError);
    const auto V = spectral_factor(*A, 1e-12), of_large = spectral_factor(*A, 0.5);
    const DistMatrix<T> B = data_of<T>(*A, 2, b);
    DistMatrix<T> X(grid, A->domain().layout(2));
    if (!grid->is_member()) continue;
    const auto refusal = [&](const auto& factor, const std::vector<double>& damps, const PerColumn& noise = 0,
                             const SolveOptions& options = {}) {
      return message_of<Error>([&] {
        static_cast<void>(damping_curves(*A, B, *factor, damps, DampingRule::discrepancy, noise, options));
      });
    };
    CHECK(contains(refusal(V, {1e-12, 1}), "rounding hides the singular values that decide at D"));
    CHECK(refusal(V, {0.01, 1}).empty());
    CHECK(contains(refusal(V, {0.01, 1e-12}), "rounding hides the singular values that decide at D"));
    const auto of_parts = [&](const std::vector<double>& values) {
      return dense_operator(grid, Algorithm::summa, KnownSpectrum<T>(23, 45, values));
    };
    // At D = 1e-6 AAᴴ + D²I has D², but not 1e-9, which decides about x.
    std::vector<double> values(23, 1.0);
    std::fill(values.begin() + 10, values.end(), 1e-9);
    for (const int power : {0, 600, -600}) {
      std::vector<double> scaled = values;
      for (double& value : scaled) value = std::ldexp(value, power);
      const OperatorPtr<T> hidden = of_parts(scaled);
      const double D = std::ldexp(1e-6, power), large = std::ldexp(0.1, power);
      const auto U = spectral_factor(*hidden, D);
      const DistMatrix<T> of_hidden = data_of<T>(*hidden, 2, b, power);
      CAPTURE(power);
      CHECK(contains(message_of<UsageError>([&] {
                       static_cast<void>(damping_curves(*hidden, of_hidden, *U, {D}, DampingRule::gcv));
                     }),
                     "rounding hides the singular values that decide at D"));
      CHECK(damping_curves(*hidden, of_hidden, *U, {large}, DampingRule::gcv).size() == 2);
    }
    CHECK(contains(refusal(of_large, {0.6, 0.1}), "the damping 0.1"));
    CHECK(contains(refusal(of_large, {0.6}, PerColumn({1, 2, 3})), "the norms of 3 noises"));
    CHECK(contains(refusal(of_large, {0.6}, 1, {.damp = 2}), "dampings are those of the curves"));
    CHECK(contains(refusal(of_large, {std::nan("")}), "the damping nan"));
    CHECK(contains(message_of<UsageError>([&] {
                     solve(Solver::direct, *A, B, X, {.damp = {0.6, 0.1}}, {.factor = of_large.get()});
                   }),
                   "dampings from 0.5 on, but the problem has 0.1"));
    CHECK(refusal(of_large, {}).empty());
    if (grid->comm().size() > 1) {
      const int rank = grid->comm().rank();
      CHECK(contains(refusal(of_large, {0.6}, rank + 1.0), "noise"));
      CHECK(contains(refusal(of_large, {rank + 0.6}), "damping"));
      const OperatorPtr<T> square =
          dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<T>(23, 23, geometric(23, 30)));
      DistMatrix<T> its_X(grid, square->domain().layout(2)), its_variances = its_X.clone();
      CHECK(contains(message_of<UsageError>([&] {
                       solve(Solver::direct, *square, data_of<T>(*square, 2, b), its_X, {},
                             {.variances = rank == 0 ? &its_variances : nullptr});
                     }),
                     "variances"));
    }
    CHECK(contains(message_of<UsageError>([&] {
                     DistMatrix<T> diagonals = X.clone();
                     solve(Solver::direct, *A, B, X, {}, {.variances = &diagonals});
                   }),
                   "variances are for an A with at least as many rows as columns"));
    const OperatorPtr<T> without_rows =
        dense_operator(grid, Algorithm::summa, KnownSpectrum<T>(45, 23, geometric(23, 1e8)));
    const DistMatrix<T> its_data = data_of<T>(*without_rows, 2, b);
    DistMatrix<T> of_models(grid, without_rows->domain().layout(2)), V_of_models = of_models.clone();
    CHECK(contains(message_of<UsageError>([&] {
                     solve(Solver::direct, *without_rows, its_data, of_models, {},
                           {.variances = &V_of_models});
                   }),
                   "are hidden by rounding of AᴴA"));
    const DistMatrix<T> none = data_of<T>(*A, 0, b);
    CHECK(damping_curves(*A, none, *of_large, {0.6}, DampingRule::gcv).empty());
  }
}
