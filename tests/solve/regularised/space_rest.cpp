// SPDX-License-Identifier: BSD-3-Clause
// A space ends before it costs more than CGLS of all pairs of right-hand side and damping, and CGLS solves
// those that it has left.
#include <algorithm>
#include <cmath>

#include "gridlops/solve/solution_space.hpp"
#include "support/disagreements.hpp"
#include "support/filtered_solutions.hpp"
#include "support/grids.hpp"
#include "support/solution_checks.hpp"

#include "comm/failure/failure.hpp"
#include "solve/methods/block_bidiagonalisation.hpp"

using namespace gridlops;
using namespace gridlops::testing;

TEMPLATE_TEST_CASE("CGLS solves the pairs that a space leaves", "", float, double, std::complex<float>,
                   std::complex<double>) {
  using T = TestType;
  const Index m = 45, n = 23;
  const std::vector<double> values = geometric(n, 100), damps{1, 0.03, 0.3, 0.1};
  const KnownSpectrum<T> matrix(m, n, values);
  const double tolerance = sizeof(Real<T>) == 4 ? 1e-4 : 1e-10;
  for (const Element<T>& b : {right_hand_sides<T>(), random_elements<T>(4)}) {
    for (const Index columns : {0, 1, 6}) {
      for (const GridPtr& grid : compact_grids()) {
        if (!grid->is_member()) continue;
        CAPTURE(columns, describe(*grid));
        const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
        const DistMatrix<T> B = filled(A->range(), columns, b);
        SolutionSpace<T> space(
            A, B, {.damps = damps, .tolerance = tolerance, .max_dimension = columns + 2, .has_probe = true});
        Index left = 0;
        for (const DampingCurve& curve : space.curves())
          left += std::count_if(curve.points.begin(), curve.points.end(),
                                [](const CurvePoint& point) { return !is_solved(point.reason); });
        const Index dimension = space.dimension(), products = space.products();
        const SolveReport report = space.solve_rest(B, {.max_iterations = 500});
        const Index pairs = std::ssize(report.columns);
        CHECK((pairs >= left && pairs <= left + std::ssize(damps)));  // the probe has as many
        CHECK((columns == 0 || left > 0));
        for (const ColumnReport& column : report.columns) CHECK(is_solved(column.reason));
        CHECK(report.history.empty());
        CHECK((space.dimension() == dimension && space.products() == products));
        const std::vector<DampingCurve> curves = space.curves(DampingRule::gcv);
        REQUIRE(std::ssize(curves) == columns);
        for (std::size_t d = 0; d < damps.size(); ++d) {
          const Element<T> z = [](Index i, Index) { return T(static_cast<Real<T>>(gcv_probe(i))); };
          const Filtered<T> probe(matrix, values, z, 0, damps[d]);
          const double trace = std::pow(probe.residual_norm, 2) + std::pow(damps[d] * probe.x_norm, 2);
          for (Index j = 0; j < columns; ++j) {
            const Filtered<T> exact(matrix, values, b, j, damps[d]);
            const CurvePoint& point = curves[static_cast<std::size_t>(j)].points[d];
            const double allowed = (exact.x_norm + exact.residual_norm) *
                                   (tolerance / std::pow(damps[d], 2) + 1e3 * epsilon_of<T>);
            CAPTURE(j, damps[d], name_of(point.reason));
            CHECK(is_solved(point.reason));
            CHECK(std::abs(point.x_norm - exact.x_norm) <= allowed);
            CHECK(std::abs(point.residual_norm - exact.residual_norm) <= allowed);
            CHECK(point.free_dimensions == Approx(trace).epsilon(1e3 * tolerance));
          }
        }
        CHECK(space.solve_rest(B, {}).columns.empty());
      }
    }
  }
}

TEST_CASE("A space ends before it costs more than CGLS of all pairs") {
  using T = std::complex<double>;
  const Index m = 70, n = 60, columns = 3;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 1e4));
  std::vector<double> damps;
  for (int k = 0; k < 20; ++k) damps.push_back(std::pow(10, -3 + 0.15 * k));
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    CAPTURE(describe(*grid));
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<T> B = filled(A->range(), columns, random_elements<T>(4));
    SpaceOptions options{.damps = damps, .tolerance = 1e-6};
    const SolutionSpace<T> unlimited(A, B, options);
    options.limits_cost = true;
    // Beside products as dear as these, nothing else counts, and CGLS takes 20 times as many.
    options.product_cost = 1e9;
    const SolutionSpace<T> dear(A, B, options);
    CHECK(dear.end() == SpaceEnd::converged);
    CHECK(dear.products() == unlimited.products());
    // Where products are free, so is CGLS. One step shows that.
    options.product_cost = 1e-3;
    const SolutionSpace<T> cheap(A, B, options);
    CHECK(cheap.end() == SpaceEnd::cost_limit);
    CHECK(cheap.dimension() == columns);
    // With one damping for which CGLS takes few iterations, a step more than these is not made.
    options = {.damps = {1}, .tolerance = 1e-12, .limits_cost = true, .product_cost = 1e9};
    DistMatrix<T> X(grid, A->domain().layout(columns));
    const SolveReport report = cgls(*A, B, X, {.tolerance = 1e-12, .damp = 1});
    const SolutionSpace<T> one(A, B, options);
    CHECK(one.dimension() <= columns * report.iterations);
    if (one.end() != SpaceEnd::converged) CHECK(one.end() == SpaceEnd::cost_limit);
  }
}

TEMPLATE_TEST_CASE("The small problem shows how many iterations CGLS takes", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  const Index m = 45, n = 30, columns = 3;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 4));
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<T> B = filled(A->range(), columns, random_elements<T>(4));
    DistMatrix<T> X(grid, A->domain().layout(columns)), G(grid, A->domain().layout(columns));
    A->apply_adjoint(1, B, 0, G);
    const std::vector<double> references = column_norms(G);
    BlockBidiagonalisation<T> blocks(*A);
    FailureScope failures;
    blocks.begin(B, false);
    blocks.grow();
    for (Index j = 0; j < columns; ++j)  // nothing is solved after a step, and more are known to be needed
      CHECK(blocks.projected().cgls_iterations(j, 0, 1e-3 * references[0], 100) > 1);
    for (int step = 1; step < 9; ++step) blocks.grow();
    for (const double tolerance : {0.3, 0.1, 0.03}) {
      for (const double damp : {0.0, 0.1}) {
        const SolveReport report = cgls(*A, B, X, {.tolerance = tolerance, .damp = damp});
        for (Index j = 0; j < columns; ++j) {
          const Index taken = report.columns[static_cast<std::size_t>(j)].iterations;
          const double gradient = tolerance * std::ldexp(references[static_cast<std::size_t>(j)],
                                                         -blocks.powers()[static_cast<std::size_t>(j)]);
          CAPTURE(describe(*grid), tolerance, damp, j, taken);
          REQUIRE(taken <= 8);
          CHECK(blocks.projected().cgls_iterations(j, damp, gradient, 100) == taken);
          CHECK(blocks.projected().cgls_iterations(j, damp, gradient, taken - 1) == taken - 1);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("A space that is too small preconditions CGLS", "", float, double, std::complex<float>,
                   std::complex<double>) {
  using T = TestType;
  const Index m = 150, n = 140, columns = 5;
  std::vector<double> values;
  for (Index k = 0; k < n; ++k) values.push_back(std::pow(10, -0.04 * static_cast<double>(k)));
  const KnownSpectrum<T> matrix(m, n, values);
  const double tolerance = sizeof(Real<T>) == 4 ? 1e-4 : 1e-8, damp = 1e-3;
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    CAPTURE(describe(*grid));
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<T> B = filled(A->range(), columns, random_elements<T>(4)),
                        others = filled(A->range(), 2, random_elements<T>(5));
    const SolveOptions options{.max_iterations = 5000, .tolerance = tolerance, .damp = damp};
    DistMatrix<T> X(grid, A->domain().layout(columns)), Y(grid, A->domain().layout(2));
    const Index alone = cgls(*A, B, X, options).iterations;
    const SolutionSpace<T> space(A, B, {.damps = {damp}, .tolerance = tolerance, .max_dimension = 80});
    REQUIRE(space.end() == SpaceEnd::dimension_limit);
    for (const bool is_other : {false, true}) {
      const SolveReport report =
          is_other ? space.solve_others(others, Y, options) : space.solve(B, X, options);
      if (sizeof(Real<T>) == 8) {
        CHECK(report.solver == "pcgls");
        CHECK(5 * report.iterations <= alone);
      }
      const std::vector<T> whole = everywhere(is_other ? Y : X);
      for (Index j = 0; j < (is_other ? 2 : columns); ++j) {
        CHECK(is_solved(report.columns[static_cast<std::size_t>(j)].reason));
        const Filtered<T> exact(matrix, values, random_elements<T>(is_other ? 5 : 4), j, damp);
        double error = 0;
        for (Index i = 0; i < n; ++i)
          error += std::norm(Accumulator<T>(whole[static_cast<std::size_t>(i + j * n)]) -
                             exact.x[static_cast<std::size_t>(i)]);
        CHECK(std::sqrt(error) <=
              (exact.x_norm + exact.residual_norm) * (tolerance / (damp * damp) + 1e3 * epsilon_of<T>));
      }
    }
  }
}

TEST_CASE("Whether a space preconditions is judged by the tolerance of the solve") {
  using T = double;
  const Index m = 150, n = 140, columns = 5;
  std::vector<double> values;
  for (Index k = 0; k < n; ++k) values.push_back(std::pow(10, -0.04 * static_cast<double>(k)));
  const KnownSpectrum<T> matrix(m, n, values);
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<T> B = filled(A->range(), columns, random_elements<T>(4));
    DistMatrix<T> X(grid, A->domain().layout(columns));
    const SolveOptions fine{.max_iterations = 5000, .tolerance = 1e-8, .damp = 1e-3};
    const Index alone = cgls(*A, B, X, fine).iterations;
    CAPTURE(describe(*grid), alone);
    const SolutionSpace<T> rough(A, B, {.damps = {1e-3}, .tolerance = 1e-3});
    REQUIRE(rough.end() == SpaceEnd::converged);
    const SolveReport report = rough.solve(B, X, fine);
    CHECK(report.solver == "pcgls");
    CHECK(10 * report.iterations <= alone);
    for (const ColumnReport& column : report.columns) CHECK(is_solved(column.reason));
    CHECK(rough.solve(B, X, {.tolerance = 1e-3, .damp = 1e-3}).solver == "cgls");
    CHECK(rough.solve(B, X, {.tolerance = 1e-3, .damp = 1e-4}).solver == "pcgls");
    const SolutionSpace<T> small(A, B, {.damps = {1e-3}, .tolerance = 1e-8, .max_dimension = 80});
    CHECK(small.solve(B, X, {.tolerance = 0.5, .damp = 1e-3}).solver == "cgls");
    CHECK(small.solve(B, X, {.tolerance = std::vector<double>{0.5, 0.5, 1e-8, 0.5, 0.5}, .damp = 1e-3})
              .solver == "pcgls");

    // The space preconditions for the small damping alone.
    SolutionSpace<T> left(A, B, {.damps = {1e-3, 0.1}, .tolerance = 1e-10, .max_dimension = 50});
    const SolveReport rest = left.solve_rest(B, {.max_iterations = 5000});
    CHECK(std::ssize(rest.columns) == 2 * columns);
    CHECK(rest.solver == "pcgls");
  }
}

TEMPLATE_TEST_CASE("No error in a space is above its bound", "", float, double, std::complex<float>,
                   std::complex<double>) {
  using T = TestType;
  const Index m = 45, n = 23, columns = 6;
  const std::vector<double> values = geometric(n, 20), damps{0, 0.3, 0.03};
  const KnownSpectrum<T> matrix(m, n, values);
  const Element<T> b = right_hand_sides<T>();
  double squares = 0;
  for (const double value : values) squares += value * value;
  const double norm = std::sqrt(squares), sigma = 0.9 * values.back();
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<T> B = filled(A->range(), columns, b);
    DistMatrix<T> X(grid, A->domain().layout(columns));
    for (const Index dimension : {4, 8, 23}) {
      const SolutionSpace<T> space(A, B, {.damps = damps, .max_dimension = dimension});
      const std::vector<DampingCurve> curves =
          space.curves(DampingRule::none, 0, {.sigma_min = sigma, .frobenius_norm = norm});
      for (std::size_t d = 0; d < damps.size(); ++d) {
        space.solve(B, X, {.max_iterations = 0, .damp = damps[d]});
        const std::vector<T> whole = everywhere(X);
        const double mu = sigma * sigma + damps[d] * damps[d];
        for (Index j = 0; j < columns; ++j) {
          const Filtered<T> exact(matrix, values, b, j, damps[d]);
          const double bound = curves[static_cast<std::size_t>(j)].points[d].error_bound;
          CAPTURE(describe(*grid), dimension, damps[d], j);
          if (j == 3) {  // b = 0
            CHECK(std::isnan(bound));
            continue;
          }
          double error = 0;
          for (Index i = 0; i < n; ++i)
            error += std::norm(Accumulator<T>(whole[static_cast<std::size_t>(i + j * n)]) -
                               exact.x[static_cast<std::size_t>(i)]);
          // The matrix of T is not quite that of the singular values.
          const double of_matrix = 10 * epsilon_of<T> * (exact.x_norm + exact.residual_norm) / mu;
          CHECK(std::sqrt(error) <= bound + of_matrix);
          if (dimension == 23)
            CHECK(bound <= 1e3 * epsilon_of<T> * (exact.x_norm + exact.residual_norm) / mu +
                               2 * default_tolerance(scalar_type_of<T>) * exact.residual_norm / mu +
                               1e3 * default_tolerance(scalar_type_of<T>) * exact.x_norm);
        }
      }
    }
    const SolutionSpace<T> space(A, B, {.damps = damps});
    CHECK(std::isnan(space.curves()[0].points[0].error_bound));
    CHECK_THROWS_AS(space.curves(DampingRule::none, 0, {.sigma_min = -1}), UsageError);
  }
}

TEMPLATE_TEST_CASE("Nor is one above it where rounding alone is left", "", float, double) {
  using T = TestType;
  const Index columns = 3;
  using Wide = long double;
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Index m = 1 + static_cast<Index>(seed);
      const Element<T> a = random_elements<T>(seed), noise = random_elements<T>(seed + 100);
      const Element<T> b = [=](Index i, Index j) {
        return static_cast<T>(j + 1) * a(i, 0) + T(0.001) * noise(i, j);
      };
      const OperatorPtr<T> A =
          dense_operator<T>(grid, Algorithm::stationary_a, m, 1, [&](Index i, Index) { return a(i, 0); });
      const DistMatrix<T> B = filled(A->range(), columns, b);
      DistMatrix<T> X(grid, A->domain().layout(columns));
      Wide squares = 0;
      for (Index i = 0; i < m; ++i) squares += Wide(a(i, 0)) * Wide(a(i, 0));
      const double norm = static_cast<double>(std::sqrt(squares)), damp = 0.1 * norm;
      const SolutionSpace<T> space(A, B, {.damps = {damp}, .tolerance = 0});
      const std::vector<DampingCurve> curves =
          space.curves(DampingRule::none, 0, {.sigma_min = 0.999 * norm, .frobenius_norm = norm});
      space.solve(B, X, {.max_iterations = 0, .damp = damp});
      const std::vector<T> whole = everywhere(X);
      for (Index j = 0; j < columns; ++j) {
        const auto place = static_cast<std::size_t>(j);
        Wide dot = 0;
        for (Index i = 0; i < m; ++i) dot += Wide(a(i, 0)) * Wide(b(i, j));
        const Wide x = dot / (squares + Wide(damp) * Wide(damp));
        CAPTURE(describe(*grid), m, j);
        const double bound = curves[place].points[0].error_bound;
        CHECK(static_cast<double>(std::abs(Wide(whole[place]) - x)) <= bound);
        CHECK(bound <= 1000 * epsilon_of<T> * static_cast<double>(std::abs(x)));
      }
    }
  }
}

TEST_CASE("What a space cannot solve of the rest is refused by all ranks") {
  using T = double;
  const KnownSpectrum<T> matrix(12, 10, geometric(10, 10));
  for (const GridPtr& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<T> B = filled(A->range(), 2, random_elements<T>(1)),
                        other = filled(A->range(), 2, random_elements<T>(2)),
                        more = filled(A->range(), 3, random_elements<T>(1));
    CHECK_THROWS_AS(SolutionSpace<T>(A, B, {.damps = {1}, .product_cost = -1}), UsageError);
    SolutionSpace<T> space(A, B, {.damps = {1}});
    CHECK_THROWS_AS(space.solve_rest(B, {.damp = 1}), UsageError);
    CHECK_THROWS_AS(space.solve_rest(B, {.initial_guess = true}), UsageError);
    CHECK_THROWS_AS(space.solve_rest(B, {.tolerance = PerColumn{1e-3, 1e-4}}), UsageError);
    CHECK_THROWS_AS(space.solve_rest(B, {.checkpoint = {.directory = "nowhere"}}), UsageError);
    if (!grid->is_member()) {
      CHECK(space.solve_rest(B, {}).columns.empty());
      continue;
    }
    CHECK_THROWS_AS(space.solve_rest(other, {}), UsageError);
    CHECK_THROWS_AS(space.solve_rest(more, {}), ShapeError);
    if (const int ranks = grid->comm().size(); ranks > 1) {
      const bool am_last = grid->comm().rank() == ranks - 1;
      check_disagreement(grid->comm(), {difference("the limit of cost", "0", "1", ranks - 1, ranks)},
                         [&] { SolutionSpace<T>(A, B, {.damps = {1}, .limits_cost = am_last}); });
    }
  }
}
