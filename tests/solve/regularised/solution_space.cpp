// SPDX-License-Identifier: BSD-3-Clause
// One space has the solutions of all right-hand sides and dampings: those of the filter factors of Tikhonov
// regularisation.
#include "gridlops/solve/solution_space.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include "io/npy_files.hpp"
#include "support/disagreements.hpp"
#include "support/grids.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

struct Shape {
  Index m, n;
};

/// Right-hand sides: a random one, half of it, one of another size, zeros, and random ones of other sizes.
template <Scalar T>
Element<T> right_hand_sides() {
  const Element<T> random = random_elements<T>(11);
  return [=](Index i, Index j) {
    if (j == 3) return T(0);
    const Real<T> size = j == 2 ? Real<T>(1e-3) : j > 3 ? Real<T>(100) : Real<T>(1);
    return j == 1 ? Real<T>(0.5) * random(i, 0) : size * random(i, j);
  };
}

/// The x that minimises ‖A x − b‖² + D²‖x‖², with ‖x‖ and ‖b − Ax‖. With D = 0 it is the shortest.
template <Scalar T>
struct Filtered {
  std::vector<Accumulator<T>> x;
  double x_norm = 0, residual_norm = 0;

  Filtered(const KnownSpectrum<T>& A, const std::vector<double>& values, const Element<T>& b, Index column,
           double damp)
      : x(static_cast<std::size_t>(A.cols())) {
    double squares = 0, outside = 0, rest = 0;
    for (Index i = 0; i < A.rows(); ++i) outside += std::norm(Accumulator<T>(b(i, column)));
    for (Index k = 0; k < static_cast<Index>(values.size()); ++k) {
      const double value = values[static_cast<std::size_t>(k)];
      Accumulator<T> dot = 0;
      for (Index i = 0; i < A.rows(); ++i)
        dot += conjugate(Accumulator<T>(A.left(i, k))) * Accumulator<T>(b(i, column));
      outside -= std::norm(dot);
      if (value == 0) {
        rest += std::norm(dot);
        continue;
      }
      const double filter = value * value / (value * value + damp * damp);
      rest += std::norm((1 - filter) * dot);
      squares += std::norm(filter / value * dot);
      for (Index j = 0; j < A.cols(); ++j)
        x[static_cast<std::size_t>(j)] += filter / value * dot * Accumulator<T>(A.right(j, k));
    }
    x_norm = std::sqrt(squares);
    residual_norm = std::sqrt(rest + std::max(outside, 0.0));
  }
};

template <Scalar T>
DistMatrix<T> filled(const Space& space, Index columns, const Element<T>& element) {
  DistMatrix<T> B(space.grid, space.layout(columns));
  B.fill(element);
  return B;
}

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

TEMPLATE_TEST_CASE("A space comes back from its files on any grid", "", float, double, std::complex<float>,
                   std::complex<double>) {
  using T = TestType;
  const Index m = 45, n = 40, columns = 6;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 30));
  const double tolerance = sizeof(Real<T>) == 4 ? 1e-4 : 1e-9;
  const ScratchFolder folder;
  const std::vector<GridPtr> grids = compact_grids();
  const auto directory_of = [&](std::size_t k) { return folder.file("space-" + std::to_string(k)); };
  const auto bits_of = [](const std::vector<DampingCurve>& curves) {
    std::vector<double> numbers;
    for (const DampingCurve& curve : curves)
      for (const CurvePoint& point : curve.points)
        numbers.insert(numbers.end(), {point.damp, point.residual_norm, point.x_norm});
    return numbers;
  };
  std::vector<std::vector<double>> curves(grids.size());
  for (std::size_t k = 0; k < grids.size(); ++k) {
    const OperatorPtr<T> A = dense_operator<T>(grids[k], Algorithm::stationary_a, matrix);
    const SolutionSpace<T> space(A, filled(A->range(), columns, right_hand_sides<T>()),
                                 {.damps = {1, 0.03, 0.1}, .tolerance = tolerance, .has_probe = true});
    space.save(directory_of(k));
    curves[k] = bits_of(space.curves(DampingRule::gcv));
  }
  for (std::size_t k = 0; k < grids.size(); ++k) {
    for (const GridPtr& grid : grids) {
      CAPTURE(k, describe(*grids[k]), describe(*grid));
      const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
      world().barrier();
      const SolutionSpace<T> space(A, directory_of(k));
      if (!grid->is_member()) {
        CHECK(space.curves().empty());
        continue;
      }
      CHECK(space.end() == SpaceEnd::converged);
      if (grids[k]->is_member()) CHECK(bits_of(space.curves(DampingRule::gcv)) == curves[k]);
      const DistMatrix<T> B = filled(A->range(), columns, right_hand_sides<T>());
      DistMatrix<T> X(grid, A->domain().layout(columns));
      const SolveOptions options{.tolerance = tolerance, .damp = 0.1};
      for (const bool knows_data : {true, false}) {
        for (const ColumnReport& column :
             (knows_data ? space.solve(B, X, options) : space.solve_others(B, X, options)).columns) {
          CHECK(column.reason == StopReason::converged);
          CHECK(column.iterations == 0);
        }
        const std::vector<T> whole = everywhere(X);
        for (Index j = 0; j < columns; ++j) {
          const Filtered<T> exact(matrix, geometric(n, 30), right_hand_sides<T>(), j, 0.1);
          double error = 0;
          for (Index i = 0; i < n; ++i)
            error += std::norm(Accumulator<T>(whole[static_cast<std::size_t>(i + j * n)]) -
                               exact.x[static_cast<std::size_t>(i)]);
          CHECK(std::sqrt(error) <= 100 * tolerance * (exact.x_norm + exact.residual_norm));
        }
      }
    }
  }
}

TEST_CASE("A space is neither written over another nor read for another operator") {
  using T = double;
  const Index n = 10;
  const KnownSpectrum<T> matrix(12, n, geometric(n, 10)), other(12, n, geometric(n, 11));
  const ScratchFolder folder;
  for (const GridPtr& grid : compact_grids()) {
    const std::string directory = folder.file(describe(*grid));
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const SolutionSpace<T> space(A, filled(A->range(), 2, random_elements<T>(1)), {.damps = {1}});
    space.save(directory);
    world().barrier();
    if (!grid->is_member()) continue;
    CHECK_THROWS_AS(space.save(directory), OutputError);
    CHECK_THROWS_AS(SolutionSpace<T>(A, folder.file("nowhere")), InputError);
    CHECK_THROWS_AS(SolutionSpace<T>(dense_operator<T>(grid, Algorithm::stationary_a, other), directory),
                    InputError);
    CHECK_THROWS_AS(SolutionSpace<float>(dense_operator<float>(grid, Algorithm::stationary_a,
                                                               KnownSpectrum<float>(12, n, geometric(n, 10))),
                                         directory),
                    InputError);
    CHECK_NOTHROW(SolutionSpace<T>(A, directory));
    if (grid->comm().rank() == 0) {
      std::fstream file(directory + "/generation-1/vectors-0.npy",
                        std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(-8, std::ios::end);
      file.write("damaged!", 8);
    }
    grid->comm().barrier();
    CHECK_THROWS_AS(SolutionSpace<T>(A, directory), InputError);
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
      if (grid->cols() > 1) {
        const OperatorPtr<T> cut = dense_operator<T>(grid, Algorithm::summa, matrix);
        CHECK_THROWS_AS(SolutionSpace<T>(cut, filled(cut->range(), 2, random_elements<T>(1)), {.damps = {1}}),
                        ShapeError);
      }
    }
  }
}
