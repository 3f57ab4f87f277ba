// SPDX-License-Identifier: BSD-3-Clause
// One space has the solutions of all right-hand sides and dampings: those of the filter factors of Tikhonov
// regularisation.
#include "gridlops/solve/solution_space.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/dist/column_arithmetic.hpp"
#include "io/npy_files.hpp"
#include "support/disagreements.hpp"
#include "support/filtered_solutions.hpp"
#include "support/grids.hpp"
#include "support/metered_backend.hpp"
#include "support/solution_checks.hpp"

#include "dist/column_powers.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

struct Shape {
  Index m, n;
};

}  // namespace

TEMPLATE_TEST_CASE("A space has the solutions of all right-hand sides for all dampings", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  const double tolerance = sizeof(Real<T>) == 4 ? 1e-4 : 1e-10;
  const std::vector<double> damps{1, 0.03, 0.3, 0.1};
  for (const Shape shape : {Shape{45, 23}, Shape{17, 40}, Shape{31, 31}}) {
    std::vector<double> values = geometric(std::min(shape.m, shape.n), 1e3);
    if (shape.m == shape.n) std::fill(values.begin() + 20, values.end(), 0.0);  // of rank 20
    const KnownSpectrum<T> matrix(shape.m, shape.n, values);
    const Element<T> b = right_hand_sides<T>();
    for (const Index columns : {0, 1, 6}) {
      for (const GridPtr& grid : compact_grids()) {
        CAPTURE(shape.m, shape.n, columns, describe(*grid));
        const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
        const DistMatrix<T> B = filled(A->range(), columns, b);
        DistMatrix<T> X(grid, A->domain().layout(columns));
        const SolutionSpace<T> space(A, B, {.damps = damps, .tolerance = tolerance});
        const OperatorActivity made = A->activity();
        const std::vector<DampingCurve> curves = space.curves();
        if (!grid->is_member()) {
          CHECK(curves.empty());
          CHECK(space.solve(B, X, {}).columns.empty());
          continue;
        }
        CHECK(space.products() == made.forward_columns + made.adjoint_columns);
        CHECK(made.forward_columns == space.dimension());
        CHECK(made.adjoint_columns <= space.dimension() + columns);
        CHECK(space.dimension() <= std::min({shape.m, shape.n, Index{std::ssize(values)}}));
        CHECK((space.end() == SpaceEnd::converged || space.end() == SpaceEnd::complete));
        REQUIRE(std::ssize(curves) == columns);
        for (std::size_t d = 0; d < damps.size(); ++d) {
          const SolveReport report = space.solve(B, X, {.damp = damps[d]});
          const std::vector<T> whole = everywhere(X);
          for (Index j = 0; j < columns; ++j) {
            const Filtered<T> exact(matrix, values, b, j, damps[d]);
            const ColumnReport& column = report.columns[static_cast<std::size_t>(j)];
            const CurvePoint& point = curves[static_cast<std::size_t>(j)].points[d];
            CAPTURE(j, damps[d], name_of(column.reason), column.iterations);
            CHECK(is_solved(column.reason));
            CHECK(column.iterations == 0);
            CHECK(point.reason == StopReason::converged);
            CHECK(point.damp == damps[d]);
            double error = 0;
            for (Index i = 0; i < shape.n; ++i)
              error += std::norm(Accumulator<T>(whole[static_cast<std::size_t>(i + j * shape.n)]) -
                                 exact.x[static_cast<std::size_t>(i)]);
            const double size = exact.x_norm + exact.residual_norm;
            // ‖x − x*‖ ≤ ‖gradient‖/D²
            const double allowed = size * (tolerance / std::pow(damps[d], 2) + 1e3 * epsilon_of<T>);
            CHECK(std::sqrt(error) <= allowed);
            CHECK(std::abs(point.x_norm - exact.x_norm) <= allowed);
            CHECK(std::abs(point.residual_norm - exact.residual_norm) <= allowed);
          }
        }
        // Another damping for each column, also one that the space was not made for.
        if (columns < 6) continue;
        const std::vector<double> mixed{0.03, 0.3, 0.07, 0.1, 1, 0.3};
        const SolveReport report = space.solve(B, X, {.damp = mixed});
        const std::vector<T> whole = everywhere(X);
        for (Index j = 0; j < columns; ++j) {
          const std::size_t column = static_cast<std::size_t>(j);
          const Filtered<T> exact(matrix, values, b, j, mixed[column]);
          CAPTURE(j, mixed[column]);
          CHECK(is_solved(report.columns[column].reason));
          double error = 0;
          for (Index i = 0; i < shape.n; ++i)
            error += std::norm(Accumulator<T>(whole[static_cast<std::size_t>(i + j * shape.n)]) -
                               exact.x[static_cast<std::size_t>(i)]);
          CHECK(std::sqrt(error) <= (exact.x_norm + exact.residual_norm) *
                                        (tolerance / std::pow(mixed[column], 2) + 1e3 * epsilon_of<T>));
        }
      }
    }
  }
}

TEST_CASE("A sweep in one space takes a fraction of the products of its columns") {
  const Index n = 60, columns = 5;
  const KnownSpectrum<std::complex<double>> matrix(n, n, geometric(n, 1e4));
  std::vector<double> damps;
  for (int k = 0; k < 20; ++k) damps.push_back(std::pow(10, -3 + 0.15 * k));
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    using T = std::complex<double>;
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<T> B = filled(A->range(), columns, random_elements<T>(4));
    const SolutionSpace<T> space(A, B, {.damps = damps, .tolerance = 1e-6});
    Index of_columns = 0;
    for (const double damp : damps) {
      DistMatrix<T> X(grid, A->domain().layout(columns));
      const SolveReport report = cgls(*A, B, X, {.max_iterations = 2000, .tolerance = 1e-6, .damp = damp});
      for (const ColumnReport& column : report.columns) of_columns += 2 * column.iterations;
    }
    CHECK(space.end() == SpaceEnd::converged);
    CHECK(space.products() <= 2 * n + columns);
    CHECK(20 * space.products() <= of_columns);
  }
}

TEMPLATE_TEST_CASE("Other data take few iterations where they are like those of the space", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  // All data are combinations of the first 12 singular vectors, so that the space has the solutions of
  // others.
  const Index m = 40, n = 30, rank = 12;
  const std::vector<double> values = geometric(n, 100);
  const KnownSpectrum<T> matrix(m, n, values);
  const auto data = [&](std::uint64_t seed) -> Element<T> {
    return [&matrix, seed](Index i, Index j) {
      T sum = 0;
      for (Index k = 0; k < rank; ++k) sum += counter_random<T>(seed, k, j) * matrix.left(i, k);
      return j == 2 ? sum * Real<T>(1000) : sum;
    };
  };
  const double tolerance = sizeof(Real<T>) == 4 ? 1e-3 : 1e-8;
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    CAPTURE(describe(*grid));
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<T> B = filled(A->range(), 5, data(1));
    const SolutionSpace<T> space(A, B, {.damps = {0.1}, .tolerance = tolerance / 10});
    for (const Index columns : {0, 1, 40}) {
      const Element<T> others = data(2);
      const DistMatrix<T> C = filled(A->range(), columns, others);
      DistMatrix<T> X(grid, A->domain().layout(columns));
      for (const double damp : {0.1, 0.5}) {
        const SolveReport report = space.solve_others(C, X, {.tolerance = tolerance, .damp = damp});
        const std::vector<T> whole = everywhere(X);
        for (Index j = 0; j < columns; ++j) {
          const ColumnReport& column = report.columns[static_cast<std::size_t>(j)];
          CAPTURE(damp, j, column.iterations);
          CHECK(column.reason == StopReason::converged);
          CHECK(column.iterations == 0);
          const Filtered<T> exact(matrix, values, others, j, damp);
          double error = 0;
          for (Index i = 0; i < n; ++i)
            error += std::norm(Accumulator<T>(whole[static_cast<std::size_t>(i + j * n)]) -
                               exact.x[static_cast<std::size_t>(i)]);
          CHECK(std::sqrt(error) <= (exact.x_norm + exact.residual_norm) * tolerance / std::pow(damp, 2));
        }
      }
    }
    // Data unlike those are solved by iterations.
    const DistMatrix<T> unlike = filled(A->range(), 2, random_elements<T>(9));
    DistMatrix<T> X(grid, A->domain().layout(2));
    for (const ColumnReport& column :
         space.solve_others(unlike, X, {.max_iterations = 500, .damp = 0.1}).columns) {
      CHECK(is_solved(column.reason));
      CHECK(column.iterations > 0);
    }
  }
}

TEST_CASE("A full space, and a complete one, say so, and columns are solved all the same") {
  using T = double;
  const Index m = 30, n = 25, columns = 4;
  const std::vector<double> values = geometric(n, 1e3);
  const KnownSpectrum<T> matrix(m, n, values);
  const Element<T> b = random_elements<T>(7);
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    CAPTURE(describe(*grid));
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<T> B = filled(A->range(), columns, b);
    DistMatrix<T> X(grid, A->domain().layout(columns));
    const SolutionSpace<T> limited(A, B, {.damps = {0.01}, .max_dimension = 9});
    CHECK(limited.end() == SpaceEnd::dimension_limit);
    CHECK(limited.dimension() == 8);
    CHECK(limited.curves().front().points.front().reason == StopReason::iteration_limit);
    const SolveReport report = limited.solve(B, X, {.max_iterations = 500, .damp = 0.01});
    for (const ColumnReport& column : report.columns) {
      CHECK(column.reason == StopReason::converged);
      CHECK(column.iterations > 0);
    }
    // No tolerance is met before the space is that of all models.
    const SolutionSpace<T> complete(A, B, {.damps = {0}, .tolerance = 0});
    CHECK(complete.dimension() == n);
    const std::vector<DampingCurve> curves = complete.curves(DampingRule::none);
    for (Index j = 0; j < columns; ++j) {
      const Filtered<T> exact(matrix, values, b, j, 0);
      CHECK(curves[static_cast<std::size_t>(j)].points[0].x_norm == Approx(exact.x_norm).epsilon(1e-9));
      CHECK(curves[static_cast<std::size_t>(j)].points[0].residual_norm ==
            Approx(exact.residual_norm).epsilon(1e-9));
    }
    // All right-hand sides are 0, or orthogonal to the range.
    const DistMatrix<T> outside =
        filled<T>(A->range(), 2, [&](Index i, Index j) { return j == 0 ? 0.0 : matrix.left(i, n); });
    DistMatrix<T> zeros(grid, A->domain().layout(2));
    const SolutionSpace<T> empty(A, outside, {.damps = {0.1}});
    for (const ColumnReport& column : empty.solve(outside, zeros, {.damp = 0.1}).columns)
      CHECK(is_solved(column.reason));
    for (const double norm : column_norms(zeros)) CHECK(norm <= 1e-13);
  }
}

TEMPLATE_TEST_CASE("Data of any size, and data that are no numbers, get the verdicts of cgls", "", float,
                   double) {
  using T = TestType;
  const Index m = 20, n = 12;
  const Real<T> large = std::numeric_limits<Real<T>>::max() / 1000,
                small = std::numeric_limits<Real<T>>::min() * 1000;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 10));
  const Element<T> random = random_elements<T>(5);
  const Element<T> b = [=](Index i, Index j) {
    if (j == 2) return i == 3 ? std::numeric_limits<T>::quiet_NaN() : T(1);
    return random(i, j) * (j == 0 ? large : j == 1 ? small : T(1));
  };
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    for (const T scale : {T(1), T(1e-30), T(1e30)}) {
      CAPTURE(describe(*grid), scale);
      const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n,
                                                 [&](Index i, Index j) { return scale * matrix(i, j); });
      const DistMatrix<T> B = filled(A->range(), 4, b);
      DistMatrix<T> X(grid, A->domain().layout(4));
      const SolutionSpace<T> space(A, B, {.damps = {static_cast<double>(scale)}});
      const SolveReport report = space.solve(B, X, {.damp = static_cast<double>(scale)});
      DistMatrix<T> Y(grid, A->domain().layout(4));
      const SolveReport expected = cgls(*A, B, Y, {.damp = static_cast<double>(scale)});
      for (std::size_t j = 0; j < 4; ++j) {
        CAPTURE(j, name_of(report.columns[j].reason), name_of(expected.columns[j].reason));
        CHECK(is_solved(report.columns[j].reason) == is_solved(expected.columns[j].reason));
        CHECK((report.columns[j].reason == StopReason::non_finite) ==
              (expected.columns[j].reason == StopReason::non_finite));
      }
    }
  }
}

TEMPLATE_TEST_CASE(
    "A and B at any scale have the same space, curves, choices and solutions, times powers of two", "", float,
    double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  const bool is_single = sizeof(Real<T>) == 4;
  const int far = is_single ? 100 : 664;  // elements of 1e30, or of 1e200
  const Index m = 45, n = 23, columns = 6;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 30));
  const Element<T> b = right_hand_sides<T>();
  const std::vector<double> damps{1, 0.03, 0.3, 0.1};
  const double norm = 2;
  const ScratchFolder folder;
  struct Found {
    std::vector<double> numbers;  // as they would be with p = q = 0
    std::vector<std::optional<Index>> chosen;
    std::vector<T> X, others;
    Index dimension;
  };
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    const auto find = [&](int p, int q) {
      const auto times = [](T value, int power) {
        return value * T(static_cast<Real<T>>(std::ldexp(1.0, power)));
      };
      const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n,
                                                 [&](Index i, Index j) { return times(matrix(i, j), p); });
      const DistMatrix<T> B =
          filled<T>(A->range(), columns, [&](Index i, Index j) { return times(b(i, j), q); });
      DistMatrix<T> X(grid, A->domain().layout(columns));
      SpaceOptions options{.damps = damps, .tolerance = is_single ? 1e-4 : 1e-10, .has_probe = true};
      for (double& damp : options.damps) damp = std::ldexp(damp, p);
      SolutionSpace<T> space(A, B, options);
      Found found{{}, {}, {}, {}, space.dimension()};
      const auto take_curves = [&](const SolutionSpace<T>& of, DampingRule rule) {
        for (const DampingCurve& curve :
             of.curves(rule, std::ldexp(8.0, q), {.frobenius_norm = std::ldexp(norm, p)})) {
          found.chosen.push_back(curve.chosen);
          for (const CurvePoint& point : curve.points) {
            found.numbers.insert(found.numbers.end(),
                                 {std::ldexp(point.x_norm, p - q), std::ldexp(point.residual_norm, -q),
                                  static_cast<double>(point.reason)});
            if (!std::isnan(point.error_bound)) found.numbers.push_back(std::ldexp(point.error_bound, p - q));
          }
        }
      };
      const auto solution = [&](const SolveReport& report) {
        for (const ColumnReport& column : report.columns) CHECK(is_solved(column.reason));
        multiply_by_powers(X, std::vector<int>(static_cast<std::size_t>(columns), p - q));
        return everywhere(X);
      };
      for (const DampingRule rule : {DampingRule::lcurve, DampingRule::discrepancy, DampingRule::gcv})
        take_curves(space, rule);
      const SolveOptions solving{
          .max_iterations = 500, .tolerance = options.tolerance, .damp = options.damps[3]};
      found.X = solution(space.solve(B, X, solving));
      found.others = solution(space.solve_others(B, X, solving));
      const std::string directory =
          folder.file(describe(*grid) + std::to_string(p) + "," + std::to_string(q));
      space.save(directory);
      take_curves(SolutionSpace<T>(A, directory), DampingRule::gcv);
      // A space that is too small leaves pairs to cgls, and grows on when it is read from its files.
      options.max_dimension = columns + 2;
      options.checkpoint.directory = directory + "-small";
      SolutionSpace<T> small(A, B, options);
      for (const ColumnReport& column : small.solve_rest(B, {.max_iterations = 500}).columns)
        CHECK(is_solved(column.reason));
      take_curves(small, DampingRule::gcv);
      options.max_dimension = 0;
      options.checkpoint = {.restart = options.checkpoint.directory};
      take_curves(SolutionSpace<T>(A, B, options), DampingRule::lcurve);
      return found;
    };
    const Found plain = find(0, 0);
    CHECK(plain.dimension > columns);
    for (const auto& [p, q] : std::vector<std::pair<int, int>>{
             {far, 0}, {-far, 0}, {far, far}, {-far, -far}, {0, far}, {10, is_single ? -80 : -far}}) {
      CAPTURE(describe(*grid), p, q);
      const Found found = find(p, q);
      CHECK(found.dimension == plain.dimension);
      CHECK((found.chosen == plain.chosen));
      if (grid->backend()->memory_space() == MemorySpace::host) {
        CHECK((found.numbers == plain.numbers));
        CHECK((found.X == plain.X));
        CHECK((found.others == plain.others));
      } else {  // where bits depend on addresses
        const double rounding = is_single ? 1e-3 : 1e-9;
        REQUIRE(found.numbers.size() == plain.numbers.size());
        for (std::size_t k = 0; k < plain.numbers.size(); ++k)
          CHECK(found.numbers[k] == Approx(plain.numbers[k]).epsilon(rounding));
        CHECK(relative_difference(found.X, plain.X) < rounding);
        CHECK(relative_difference(found.others, plain.others) < rounding);
      }
    }
  }
}

TEMPLATE_TEST_CASE("Where D hides A, x is Aᴴb/D²", "", float, double, std::complex<float>,
                   std::complex<double>) {
  using T = TestType;
  const Index m = 20, n = 12;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 10));
  const Element<T> random = random_elements<T>(5);
  const bool is_single = sizeof(Real<T>) == 4;
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    for (const double ratio : is_single ? std::vector{1e9, 1e20} : std::vector{1e17, 1e100, 1e140}) {
      CAPTURE(describe(*grid), ratio);
      const auto root = static_cast<Real<T>>(std::sqrt(ratio));
      const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n,
                                                 [&](Index i, Index j) { return matrix(i, j) / root; });
      const DistMatrix<T> B =
          filled<T>(A->range(), 1, [&](Index i, Index j) { return random(i, j) * root * root * root; });
      DistMatrix<T> X(grid, A->domain().layout(1)), expected(grid, A->domain().layout(1));
      A->apply_adjoint(T(1) / root, B, T(0), expected);
      expected *= 1 / static_cast<double>(root);
      const SolutionSpace<T> space(A, B, {.damps = {static_cast<double>(root)}});
      const CurvePoint point = space.curves()[0].points[0];
      CHECK(point.reason == StopReason::converged);
      CHECK(point.x_norm == Approx(column_norms(expected)[0]).epsilon(1e-5));
      CHECK(
          space.solve(B, X, {.max_iterations = 0, .damp = static_cast<double>(root)}).columns[0].iterations ==
          0);
      update(axpy(-1, expected, X));
      CHECK(column_norms(X)[0] <= 1e-5 * column_norms(expected)[0]);
    }
  }
}

TEST_CASE("A column with NaN is called so by its curve, and harms no other") {
  using T = double;
  const Index m = 20, n = 12;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 10));
  const Element<T> random = random_elements<T>(5);
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    CAPTURE(describe(*grid));
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    for (const Index others : {0, 2}) {
      const auto data = [&](bool has_nan) {
        return filled<T>(A->range(), others + 1, [&](Index i, Index j) {
          return has_nan && j == 0 && i == 3 ? std::numeric_limits<T>::quiet_NaN() : random(i, j);
        });
      };
      const SpaceOptions options{.damps = {1, 0.1}};
      const DistMatrix<T> B = data(true);
      SolutionSpace<T> space(A, B, options);
      CHECK((space.end() == SpaceEnd::converged || space.end() == SpaceEnd::complete));
      CHECK(space.solve_rest(B, {}).columns.empty());
      DistMatrix<T> X(grid, A->domain().layout(others + 1));
      const SolveReport report = space.solve(B, X, {.damp = 0.1});
      const std::vector<T> whole = everywhere(X);
      const std::vector<DampingCurve> curves =
          space.curves(DampingRule::discrepancy, 100, {.frobenius_norm = 10});
      for (Index j = 0; j <= others; ++j) {
        const auto place = static_cast<std::size_t>(j);
        CAPTURE(others, j);
        CHECK((report.columns[place].reason == StopReason::non_finite) == (j == 0));
        CHECK(std::isnan(whole[place * static_cast<std::size_t>(n)]) == (j == 0));
        CHECK(curves[place].chosen.has_value() == (j > 0));
        for (const CurvePoint& point : curves[place].points) {
          CHECK(point.reason == (j == 0 ? StopReason::non_finite : StopReason::converged));
          CHECK(std::isnan(point.x_norm) == (j == 0));
          CHECK(std::isnan(point.residual_norm) == (j == 0));
          CHECK(std::isnan(point.error_bound) == (j == 0));
        }
      }
    }
  }
}

TEST_CASE("GCV in a space chooses what the exact trace chooses") {
  using T = double;
  const Index m = 45, n = 23, columns = 3;
  const std::vector<double> values = geometric(n, 1e3);
  const KnownSpectrum<T> matrix(m, n, values);
  const Element<T> b = [&](Index i, Index j) {
    double sum = 0.02 * counter_uniform(3, i, j);
    for (Index k = 0; k < n; ++k)
      sum += std::pow(values[static_cast<std::size_t>(k)], 1.5) * std::cos(j + k) * matrix.left(i, k);
    return sum;
  };
  const Element<T> z = [](Index i, Index) { return gcv_probe(i); };
  std::vector<double> damps;
  for (int k = 0; k < 25; ++k) damps.push_back(std::pow(10, -2 + 0.1 * ((7 * k) % 25)));
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<T> B = filled(A->range(), columns, b);
    const SolutionSpace<T> space(A, B, {.damps = damps, .tolerance = 1e-10, .has_probe = true});
    const std::vector<DampingCurve> curves = space.curves(DampingRule::gcv);
    REQUIRE(std::ssize(curves) == columns);
    for (Index j = 0; j < columns; ++j) {
      std::vector<double> merits;
      for (const double damp : damps) {
        const Filtered<T> exact(matrix, values, b, j, damp), probe(matrix, values, z, 0, damp);
        const double trace = std::pow(probe.residual_norm, 2) + std::pow(damp * probe.x_norm, 2);
        merits.push_back(std::pow(exact.residual_norm / trace, 2));
      }
      const DampingCurve& curve = curves[static_cast<std::size_t>(j)];
      REQUIRE(curve.chosen);
      CHECK(*curve.chosen == std::min_element(merits.begin(), merits.end()) - merits.begin());
      for (std::size_t d = 0; d < damps.size(); ++d)
        CHECK(curve.points[d].merit == Approx(merits[d]).epsilon(1e-6));
    }
    // Each has a noise of its own.
    std::vector<double> noises;
    std::vector<Index> largest(static_cast<std::size_t>(columns), -1);
    for (Index j = 0; j < columns; ++j) {
      noises.push_back(
          1.01 *
          Filtered<T>(matrix, values, b, j, std::pow(10, -1 + 0.5 * static_cast<double>(j))).residual_norm);
      Index& best = largest[static_cast<std::size_t>(j)];
      for (Index d = 0; d < std::ssize(damps); ++d) {
        const double damp = damps[static_cast<std::size_t>(d)];
        if (Filtered<T>(matrix, values, b, j, damp).residual_norm <= noises.back() &&
            (best < 0 || damp > damps[static_cast<std::size_t>(best)]))
          best = d;
      }
    }
    const std::vector<DampingCurve> within = space.curves(DampingRule::discrepancy, noises);
    for (std::size_t j = 0; j < within.size(); ++j) CHECK(within[j].chosen == largest[j]);
    CHECK_THROWS_AS(SolutionSpace<T>(A, B, {.damps = damps}).curves(DampingRule::gcv), UsageError);
  }
}

TEST_CASE("The memory of a space is what was foretold") {
  using T = float;
  const Index m = 120, n = 110;  // so that no block loses columns
  const KnownSpectrum<T> matrix(m, n, geometric(n, 1e3));
  for (const GridPtr& grid : all_grids([] { return std::make_shared<MeteredBackend>(make_backend()); })) {
    if (!grid->is_member()) continue;
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    for (const Index columns : {1, 7, 20, 33}) {
      CAPTURE(describe(*grid), columns);
      const DistMatrix<T> B = filled(A->range(), columns, random_elements<T>(4));
      DistMatrix<T> X(grid, A->domain().layout(columns)), Y(grid, A->range().layout(columns));
      A->apply(1, X, 0, Y);  // takes the memory of products
      A->apply_adjoint(1, Y, 0, X);
      const auto& memory = dynamic_cast<const MeteredBackend&>(*grid->backend());
      const Index before = memory.bytes_in_use();
      const SolutionSpace<T> space(A, B, {.damps = {0}, .tolerance = 0, .max_dimension = 2 * columns + 1});
      REQUIRE(space.dimension() == (columns == 1 ? 3 : 2 * columns));
      CHECK(memory.bytes_in_use() - before ==
            solution_space_bytes(*A, columns, space.dimension(), grid->my_row(), grid->my_col()));
    }
  }
}

TEST_CASE("What cannot be one space is refused by all ranks") {
  using T = double;
  const KnownSpectrum<T> matrix(12, 10, geometric(10, 10));
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<T> B = filled(A->range(), 2, random_elements<T>(1)),
                        other = filled(A->range(), 2, random_elements<T>(2)),
                        more = filled(A->range(), 3, random_elements<T>(1));
    const auto make = [&](const SpaceOptions& options) { return SolutionSpace<T>(A, B, options); };
    CHECK_THROWS_AS(make({}), UsageError);
    CHECK_THROWS_AS(make({.damps = {0.1, -1}}), UsageError);
    CHECK_THROWS_AS(make({.damps = {std::numeric_limits<double>::infinity()}}), UsageError);
    CHECK_THROWS_AS(make({.damps = {1}, .tolerance = -1.0}), UsageError);
    CHECK_THROWS_AS(make({.damps = {1}, .max_dimension = -1}), UsageError);
    CHECK_THROWS_AS(SolutionSpace<T>(A, filled(A->domain(), 2, random_elements<T>(1)), {.damps = {1}}),
                    ShapeError);
    const SolutionSpace<T> space = make({.damps = {1}});
    DistMatrix<T> X(grid, A->domain().layout(2)), wide(grid, A->domain().layout(3));
    CHECK_THROWS_AS(space.solve(other, X, {}), UsageError);
    CHECK_THROWS_AS(space.solve(more, wide, {}), ShapeError);
    CHECK_THROWS_AS(space.solve(B, X, {.initial_guess = true}), UsageError);
    CHECK_THROWS_AS(space.solve(B, X, {.damp = {1, 2, 3}}), ShapeError);
    CHECK_THROWS_AS(space.curves(DampingRule::discrepancy, {1, 2, 3}), ShapeError);
    if (const int ranks = grid->comm().size(); ranks > 1) {
      const bool am_last = grid->comm().rank() == ranks - 1;
      check_disagreement(grid->comm(), {difference("a damping", "1", "2", ranks - 1, ranks)},
                         [&] { make({.damps = {am_last ? 2.0 : 1.0}}); });
      // They would not meet in the files.
      check_disagreement(grid->comm(),
                         {difference("the iterations between checkpoints", "1", "2", ranks - 1, ranks)},
                         [&] { make({.damps = {1}, .checkpoint = {.every_iterations = am_last ? 2 : 1}}); });
      if (grid->cols() > 1) {
        const OperatorPtr<T> cut = dense_operator<T>(grid, Algorithm::summa, matrix);
        CHECK_THROWS_AS(SolutionSpace<T>(cut, filled(cut->range(), 2, random_elements<T>(1)), {.damps = {1}}),
                        ShapeError);
      }
    }
  }
}
