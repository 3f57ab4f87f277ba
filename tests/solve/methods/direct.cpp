// SPDX-License-Identifier: BSD-3-Clause
// Least squares by a factor.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/solve/factor.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"
#include "solve/factor/whole_rows.hpp"
#include "solve/methods/factor_problems.hpp"
#include "streamed/scratch_disk.hpp"
#include "support/lapack.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

TEMPLATE_TEST_CASE(
    "The direct solver finds the solution in one iteration, on all grids and by all algorithms", "", float,
    double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  const Element<T> b = random_elements<T>(4);
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const auto& [m, n] : factor_shapes) {
        const std::vector<double> values = geometric(std::min(m, n), 30);
        const KnownSpectrum<T> matrix(m, n, values);
        const OperatorPtr<T> A = dense_operator(grid, algorithm, matrix);
        for (const double damp : {0.0, 0.3}) {
          CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), m, n, damp);
          SolveOptions options;
          options.damp = damp;
          const Solution<T> solution = solve<T>(direct, *A, 5, b, options);
          if (!grid->is_member()) continue;
          check_report(WholeSystem<T>(direct, m, n, Element<T>(matrix), b, options), solution, grid->comm());
          CHECK(solution.report.solver == "direct");
          for (Index j = 0; j < 5; ++j) {
            CHECK(is_solved(solution.verdict(j).reason));
            // In single precision a factor leaves more to correct.
            CHECK(solution.verdict(j).iterations <= (is_double<T> ? 1 : 2));
            CHECK(relative_difference(solution.column(j), matrix.least_squares_solution(b, j, damp)) <=
                  (is_double<T> ? 1e-11 : 1e-3));
          }
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("A column that its factor solves takes three products", "", double, std::complex<float>) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<T> A =
        dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<T>(45, 23, geometric(23, 30)));
    const auto R = factor(*A);
    if (!grid->is_member()) continue;
    CHECK(A->activity().forward_columns == 0);  // it was made from rows
    DistMatrix<T> B(grid, A->range().layout(7)), X(grid, A->domain().layout(7));
    B.fill(random_elements<T>(4));
    for (Index time = 1; time <= 2; ++time) {
      const SolveReport report = solve(Solver::direct, *A, B, X, {}, {.factor = R.get()});
      CHECK(report.columns[6].reason == StopReason::converged);
      CHECK(A->activity().forward_columns == 7 * time);
      CHECK(A->activity().adjoint_columns == 2 * 7 * time);
    }
  }
}

TEMPLATE_TEST_CASE("A guess changes what the direct solver finds only in the kernel of A", "", double,
                   std::complex<double>) {
  using T = TestType;
  const Element<T> b = random_elements<T>(4), guess = random_elements<T>(9);
  for (const auto& grid : compact_grids()) {
    for (const auto& [m, n] : {std::pair<Index, Index>{45, 23}, {23, 45}}) {
      const std::vector<double> values = geometric(23, 30);
      const KnownSpectrum<T> matrix(m, n, values);
      const OperatorPtr<T> A = dense_operator(grid, Algorithm::stationary_a, matrix);
      for (const double damp : {0.0, 0.3}) {
        CAPTURE(grid->rows(), grid->cols(), m, n, damp);
        SolveOptions options;
        options.damp = damp;
        const Solution<T> solution = solve<T>(direct, *A, 3, b, options, guess);
        if (!grid->is_member()) continue;
        for (Index j = 0; j < 3; ++j) {
          CHECK(is_solved(solution.verdict(j).reason));
          std::vector<T> expected = matrix.least_squares_solution(b, j, damp);
          // Without damping, the part of the guess that is in the kernel stays.
          for (Index k = m; damp == 0 && k < n; ++k) {
            T along = 0;
            for (Index i = 0; i < n; ++i) along += conjugate(matrix.right(i, k)) * guess(i, j);
            for (Index i = 0; i < n; ++i) expected[static_cast<std::size_t>(i)] += along * matrix.right(i, k);
          }
          CHECK(relative_difference(solution.column(j), expected) <= 1e-10);
        }
      }
    }
  }
}

TEST_CASE("A column that only singular values which count as 0 keep from its solution has stagnated") {
  constexpr double epsilon = std::numeric_limits<double>::epsilon();
  constexpr Index least = 120, most = 123;
  std::vector<double> values = geometric(least, 30);
  const double largest = *std::max_element(values.begin(), values.end());
  for (const auto& grid : compact_grids()) {
    for (const auto& [m, n] : {std::pair<Index, Index>{most, least}, {least, most}}) {
      CAPTURE(grid->rows(), grid->cols(), m, n);
      // Half of what counts as 0. That of data is more than rounding of sums.
      values.back() = (m < n ? 5 : 0.5) * least * epsilon * largest;
      const OperatorPtr<double> A =
          dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<double>(m, n, values));
      const auto R = factor(*A);
      if (!grid->is_member()) continue;
      CHECK(R->facts().rank == least - 1);
      CHECK(R->facts().truncated > 0);
      CHECK(R->facts().truncated < 10 * least * epsilon * largest);
      DistMatrix<double> B(grid, A->range().layout(4)), X(grid, A->domain().layout(4));
      B.fill(random_elements<double>(4));
      const SolveReport report = solve(Solver::direct, *A, B, X, {.tolerance = 0.0}, {.factor = R.get()});
      for (const ColumnReport& column : report.columns) {
        CHECK(column.reason == StopReason::stagnated);
        CHECK(column.iterations <= 2);
      }
    }
  }
}

TEMPLATE_TEST_CASE("A column that needs a singular value which AAᴴ hides is not solved", "", float, double) {
  using T = TestType;
  const double hidden = is_double<T> ? 1e-8 : 3e-4;
  const std::vector<T> expected{T(1), to_scalar<T>(1 / hidden), T(0)};
  const auto matrix = [=](Index i, Index j) { return i != j ? T(0) : to_scalar<T>(i == 0 ? 1 : hidden); };
  for (const auto& grid : compact_grids()) {
    std::vector<OperatorPtr<T>> with_columns, without;
    for (const Algorithm algorithm : all_algorithms) {
      const bool never_moves = algorithm == Algorithm::stationary_a || algorithm == Algorithm::block;
      (never_moves ? with_columns : without).push_back(dense_operator<T>(grid, algorithm, 2, 3, matrix));
    }
    DistMatrix<T> A(grid, matrix_layout(Algorithm::stationary_a, *grid, 2, 3));
    A.fill(matrix);
    without.push_back(stream_matrix(std::move(A), {.scratch = disk}));
    // Dampings of their own take a spectral factor.
    for (const PerColumn& damp : {PerColumn(0), PerColumn(std::vector<double>{0, 0.5})}) {
      SolveOptions options;
      options.tolerance = is_double<T> ? 1e-14 : 1e-6;
      options.damp = damp;
      const auto solve_with = [&](const OperatorPtr<T>& op) {
        return solve<T>(
            direct, *op, 2, [](Index, Index) { return T(1); }, options);
      };
      for (std::size_t k = 0; k < with_columns.size(); ++k) {
        CAPTURE(grid->rows(), grid->cols(), k, damp.is_one());
        const Solution<T> solution = solve_with(with_columns[k]);
        if (!grid->is_member()) continue;
        CHECK(is_solved(solution.verdict(0).reason));
        CHECK(relative_difference(solution.column(0), expected) <= 1e-6);
      }
      for (std::size_t k = 0; k < without.size(); ++k) {
        CAPTURE(grid->rows(), grid->cols(), k, damp.is_one());
        const Solution<T> solution = solve_with(without[k]);
        if (!grid->is_member()) continue;
        CHECK(!is_solved(solution.verdict(0).reason));
        CHECK(is_solved(solution.verdict(1).reason) == !damp.is_one());
      }
    }
  }
}

TEMPLATE_TEST_CASE("Each row of a matrix, or of its adjoint, comes whole to one rank, once", "", double,
                   std::complex<float>) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    for (const Algorithm algorithm : {Algorithm::block, Algorithm::stationary_a}) {
      for (const auto& [m, n] :
           {std::pair<Index, Index>{0, 3}, {3, 0}, {1, 1}, {2, 5}, {5, 2}, {2200, 3}, {3, 2200}}) {
        CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), m, n);
        const Element<T> element = random_elements<T>(1);
        const OperatorPtr<T> A = dense_operator<T>(grid, algorithm, m, n, element);
        for (const Op op : {Op::none, Op::adjoint}) {
          CAPTURE(op == Op::none);
          const Index height = op == Op::none ? m : n, width = op == Op::none ? n : m;
          std::vector<double> times(static_cast<std::size_t>(height), 0);
          bool has_elements = true;
          FailureScope failures;
          visit_whole_rows<T>(
              *matrix_in_blocks(*A), op, *grid, failures,
              [&](Range rows, MatrixView<const T> elements) {
                for (Index i = 0; i < rows.size; ++i) {
                  const Index row = rows.begin + i;
                  times[static_cast<std::size_t>(row)] += 1;
                  for (Index j = 0; j < width; ++j)
                    has_elements =
                        has_elements &&
                        elements(i, j) == (op == Op::none ? element(row, j) : conjugate(element(j, row)));
                }
              },
              [] {});
          CHECK(has_elements);
          failures.reduce(grid->comm(), times);
          if (width > 0) CHECK(times == std::vector<double>(static_cast<std::size_t>(height), 1));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("A factor is the inverse of the normal matrix, whichever way the matrix is stored", "",
                   float, double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  const std::vector<double> values = geometric(70, 10);
  const std::vector<GridPtr> grids = compact_grids();
  for (const auto& [m, n] : {std::pair<Index, Index>{150, 70}, {70, 150}}) {
    const KnownSpectrum<T> matrix(m, n, values);
    for (const auto& grid : grids) {
      const auto on = [&](Algorithm algorithm) {
        DistMatrix<T> A(grid, matrix_layout(algorithm, *grid, matrix.rows(), matrix.cols()));
        A.fill(Element<T>(matrix));
        return A;
      };
      std::vector<OperatorPtr<T>> stored;
      for (const Algorithm algorithm : all_algorithms)
        stored.push_back(matrix_mult(algorithm, on(algorithm)));
      for (const Algorithm algorithm : {Algorithm::block, Algorithm::stationary_a})
        for (const Storage storage : {Storage::packed, Storage::planes})
          if (storage == Storage::packed || is_double<T>)
            stored.push_back(matrix_mult(algorithm, on(algorithm), {.storage = storage}));
      stored.push_back(stream_matrix(on(Algorithm::stationary_a), {.scratch = disk}));
      stored.push_back(
          compress(on(Algorithm::stationary_a), {.tolerance = is_double<T> ? 1e-12 : 1e-6, .tile = 20}));
      for (const double damp : {0.0, 0.2}) {
        for (std::size_t k = 0; k < stored.size(); ++k) {
          CAPTURE(grid->rows(), grid->cols(), m, n, k, damp);
          const OperatorPtr<T>& A = stored[k];
          const OperatorPtr<T> normal = m < n ? product(A, adjoint(A)) : product(adjoint(A), A);
          const Space& space = normal->domain();
          const auto M = factor(*A, damp);
          if (!grid->is_member()) continue;
          CHECK(M->facts().shift == 0);
          CHECK(M->facts().condition >= 1);
          CHECK(M->facts().of_data == (m < n));
          DistMatrix<T> X(grid, space.layout(5)), Y(grid, space.layout(5)), N(grid, space.layout(5));
          X.fill(random_elements<T>(3));
          Y.fill(random_elements<T>(5));
          const std::vector<T> before = everywhere(Y);
          normal->apply(T(1), X, T(0), N);
          N += damp * damp * X;
          M->apply(T(2), N, T(3), Y);  // 2 X + 3 Y
          std::vector<T> expected = everywhere(X);
          for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] = T(2) * expected[i] + T(3) * before[i];
          CHECK(relative_difference(everywhere(Y), expected) <= (is_double<T> ? 1e-9 : 1e-3));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("The direct solver finds the shortest solution where A has a kernel in all directions", "",
                   double, std::complex<double>) {
  using T = TestType;
  const Element<T> b = random_elements<T>(4);
  std::vector<double> values = geometric(20, 30);
  values.resize(23, 0);
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : {Algorithm::block, Algorithm::stationary_a}) {
      for (const auto& [m, n] : {std::pair<Index, Index>{45, 23}, {23, 45}}) {
        CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), m, n);
        const KnownSpectrum<T> matrix(m, n, values);
        const OperatorPtr<T> A = dense_operator(grid, algorithm, matrix);
        const auto R = factor(*A);
        const Solution<T> solution = solve<T>(direct, *A, 3, b);
        if (!grid->is_member()) continue;
        CHECK(R->facts().by_qr);
        CHECK(R->facts().rank == 20);
        CHECK(R->facts().shift == 0);
        CHECK(R->facts().condition == Approx(30));
        for (Index j = 0; j < 3; ++j) {
          CHECK(is_solved(solution.verdict(j).reason));
          CHECK(relative_difference(solution.column(j), matrix.least_squares_solution(b, j, 0)) <= 1e-11);
        }
      }
    }
  }
}

TEST_CASE("Without rows to read, of columns that depend on each other no pivot that is rounding counts") {
  // A = v dᵀ, whose first column is much the shorter one: the shortest solution of A x = v is d/‖d‖².
  using T = std::complex<double>;
  const T short_part = T(3, 1) * std::ldexp(1.0, -20), long_part(1, 2);
  const double squares = std::norm(short_part) + std::norm(long_part);
  for (const auto& grid : compact_grids())
    for (std::uint64_t seed = 1; seed <= 16; ++seed) {
      const Element<T> v = [seed](Index i, Index) {
        return std::round(4 * counter_random<double>(seed, i, 0)) +
               T(0, std::round(4 * counter_random<double>(seed, i, 1)));
      };
      const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::summa, 4, 2, [&](Index i, Index j) {
        return v(i, 0) * (j == 0 ? short_part : long_part);
      });
      const Solution<T> solution = solve<T>(direct, *A, 1, v);
      if (!grid->is_member()) continue;
      CAPTURE(describe(*grid), seed);
      CHECK(is_solved(solution.verdict(0).reason));
      const std::vector<T> shortest{std::conj(short_part) / squares, std::conj(long_part) / squares};
      if (v(0, 0) != T(0)) CHECK(relative_difference(solution.column(0), shortest) <= 1e-6);
    }
}

TEST_CASE("Of fewer rows than columns, of which one is another's copy, no pivot that is rounding counts") {
  const Element<double> b = random_elements<double>(4);
  for (const auto& grid : compact_grids()) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      CAPTURE(grid->rows(), grid->cols(), seed);
      std::vector<double> values = geometric(22, 30);
      values.push_back(0);
      const KnownSpectrum<double> matrix(23, 45, values, seed);
      const OperatorPtr<double> A = dense_operator(grid, Algorithm::stationary_a, matrix);
      const auto R = factor(*A);
      const Solution<double> solution = solve<double>(direct, *A, 2, b);
      if (!grid->is_member()) continue;
      CHECK(R->facts().rank == 22);
      for (Index j = 0; j < 2; ++j) {
        CHECK(is_solved(solution.verdict(j).reason));
        CHECK(relative_difference(solution.column(j), matrix.least_squares_solution(b, j, 0)) <= 1e-11);
      }
    }
  }
}

TEST_CASE("A tall matrix in single precision loses no singular value to the number of its rows") {
  constexpr Index m = 60000, n = 5;
  const KnownSpectrum<float> matrix(m, n, geometric(n, 300));
  const Element<float> b = random_elements<float>(4);
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<float> A = dense_operator(grid, Algorithm::stationary_a, matrix);
    const auto R = factor(*A);
    const Solution<float> solution = solve<float>(direct, *A, 2, b);
    if (!grid->is_member()) continue;
    CHECK(R->facts().rank == n);
    for (Index j = 0; j < 2; ++j) CHECK(is_solved(solution.verdict(j).reason));
  }
}

TEMPLATE_TEST_CASE("An ill-conditioned matrix has a factor by QR, and a solution as accurate as LAPACK's", "",
                   double, std::complex<double>) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : {Algorithm::block, Algorithm::stationary_a}) {
      for (const double condition : {1e8, 1e10, 1e12}) {
        for (const auto& [m, n] : {std::pair<Index, Index>{45, 23}, {23, 45}}) {
          CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), condition, m, n);
          const std::vector<double> values = geometric(23, condition);
          const KnownSpectrum<T> matrix(m, n, values);
          // Data of an x that is a sum of right singular vectors, so that it is the shortest solution.
          std::vector<std::vector<T>> exact(3);
          for (Index j = 0; j < 3; ++j) {
            std::vector<Accumulator<T>> sum(at(n));
            for (Index k = 0; k < 23; ++k)
              for (Index i = 0; i < n; ++i)
                sum[at(i)] += Accumulator<T>(counter_random<T>(3, k, j) * matrix.right(i, k));
            exact[at(j)].assign(sum.begin(), sum.end());
          }
          const Element<T> b = [&, n = n](Index i, Index j) {
            Extended<T> sum = 0;
            for (Index k = 0; k < n; ++k) sum += extended(matrix(i, k)) * extended(exact[at(j)][at(k)]);
            return rounded<T>(sum);
          };
          const OperatorPtr<T> A = dense_operator(grid, algorithm, matrix);
          const auto R = factor(*A);
          SolveOptions options;
          options.tolerance = 1e-15;
          const Solution<T> solution = solve<T>(direct, *A, 3, b, options);
          if (!grid->is_member()) continue;
          CHECK(R->facts().by_qr);
          CHECK(R->facts().rank == 23);
          double error = 0, of_lapack = 0;  // the largest: some columns are lucky
          for (Index j = 0; j < 3; ++j) {
            CHECK(is_solved(solution.verdict(j).reason));
            CHECK(solution.verdict(j).iterations <= 10);
            of_lapack = std::max(
                of_lapack,
                relative_difference(lapack_solution<T>(m, n, Element<T>(matrix), b, j, 0), exact[at(j)]));
            error = std::max(error, relative_difference(solution.column(j), exact[at(j)]));
          }
          CHECK(error <= 45 * condition * epsilon_of<T>);  // QR of 45 rows
          if (condition <= 1e10) CHECK(error <= 300 * of_lapack);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("Iterations go on where no rows are to be had, and one does not suffice", "", double,
                   std::complex<double>) {
  using T = TestType;
  const Element<T> b = random_elements<T>(4);
  for (const auto& grid : compact_grids()) {
    for (const double condition : {1e6, 1e8}) {
      CAPTURE(grid->rows(), grid->cols(), condition);
      const KnownSpectrum<T> matrix(45, 23, geometric(23, condition));
      const OperatorPtr<T> A = dense_operator(grid, Algorithm::summa, matrix);
      const Solution<T> solution = solve<T>(direct, *A, 3, b);
      if (!grid->is_member()) continue;
      check_report(WholeSystem<T>(direct, 45, 23, Element<T>(matrix), b, {}), solution, grid->comm());
      for (Index j = 0; j < 3; ++j) {
        CHECK(is_solved(solution.verdict(j).reason));
        CHECK(solution.verdict(j).iterations <= 60);
      }
    }
  }
}

TEMPLATE_TEST_CASE("A factor may be of a matrix as large or small as its type allows", "", float, double,
                   std::complex<double>) {
  using T = TestType;
  const double far = is_double<T> ? 0x1p500 : 0x1p60;
  const std::vector<double> values = geometric(23, 30);
  const Element<T> b = random_elements<T>(4);
  for (const auto& grid : compact_grids()) {
    for (const double scale : {far, 1 / far}) {
      for (const auto& [m, n] : {std::pair<Index, Index>{45, 23}, {23, 45}}) {
        CAPTURE(grid->rows(), grid->cols(), scale, m, n);
        const KnownSpectrum<T> matrix(m, n, values);
        const auto scaled = [&](Index i, Index j) { return T(static_cast<Real<T>>(scale)) * matrix(i, j); };
        const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n, scaled);
        SolveOptions options;
        options.damp = 0.25 * scale;
        const Solution<T> solution = solve<T>(direct, *A, 2, b, options);
        if (!grid->is_member()) continue;
        std::vector<T> x = solution.column(1);
        for (T& element : x) element *= T(static_cast<Real<T>>(scale));
        CHECK(solution.verdict(1).reason == StopReason::converged);
        CHECK(relative_difference(x, matrix.least_squares_solution(b, 1, 0.25)) <=
              (is_double<T> ? 1e-11 : 1e-3));
      }
    }
  }
}

TEST_CASE("A matrix of zeros has a factor of rank 0, whose inverse is 0, unless it is damped") {
  for (const auto& grid : compact_grids()) {
    for (const auto& [m, n] : {std::pair<Index, Index>{9, 5}, {5, 9}}) {
      const OperatorPtr<double> A =
          dense_operator<double>(grid, Algorithm::stationary_a, m, n, [](Index, Index) { return 0.0; });
      const auto M = factor(*A), damped = factor(*A, 2);
      if (!grid->is_member()) continue;
      CHECK(M->facts().rank == 0);
      CHECK(damped->facts().rank == 5);
      DistMatrix<double> X(grid, M->domain().layout(3)), Y(grid, M->domain().layout(3));
      X.fill(random_elements<double>(3));
      M->apply(1, X, 0, Y);
      for (const double y : everywhere(Y)) CHECK(y == 0);
      damped->apply(4, X, 0, Y);
      CHECK(relative_difference(everywhere(Y), everywhere(X)) <= 1e-15);
    }
  }
}

TEST_CASE("Matrices without rows, columns or right-hand sides have solutions by a factor, too") {
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const auto& [m, n, r] : {std::array<Index, 3>{0, 3, 2}, {3, 0, 2}, {0, 0, 2}, {5, 3, 0}}) {
        CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), m, n, r);
        const OperatorPtr<double> A =
            dense_operator<double>(grid, algorithm, m, n, random_elements<double>(1));
        const Solution<double> solution = solve<double>(direct, *A, r, random_elements<double>(4));
        if (!grid->is_member()) continue;
        for (Index j = 0; j < r; ++j) CHECK(solution.verdict(j).reason == StopReason::converged);
        for (const double x : solution.X) CHECK(x == 0);
      }
    }
  }
}

TEST_CASE("What cannot have a factor, or does not fit one, is refused on all ranks") {
  for (const auto& grid : compact_grids()) {
    const auto with = [&](double special) {
      return dense_operator<double>(grid, Algorithm::stationary_a, 9, 5, [=](Index i, Index j) {
        return i == 7 && j == 2 ? special : 1.0 + static_cast<double>(i * j);
      });
    };
    const OperatorPtr<double> A = with(3);
    const auto message_from = [&]<class Error>(auto&& call) {
      return grid->is_member() ? message_of<Error>(call) : std::string();
    };
    for (const double special : {HUGE_VAL, std::nan("")}) {
      const std::string message =
          message_from.template operator()<InputError>([&] { factor(*with(special)); });
      if (grid->is_member()) CHECK(contains(message, "not finite"));
    }
    CHECK_THROWS_AS(factor(*A, -1), UsageError);
    CHECK_THROWS_AS(factor(*A, std::nan("")), UsageError);
    const auto R = factor(*A, 0.5);
    const OperatorPtr<double> other =
        dense_operator<double>(grid, Algorithm::stationary_a, 9, 4, random_elements<double>(1));
    if (!grid->is_member()) continue;
    const auto solve_with = [&](const LinearOperator<double>& op, double damp) {
      DistMatrix<double> B(grid, op.range().layout(2)), X(grid, op.domain().layout(2));
      SolveOptions options;
      options.damp = damp;
      solve(Solver::direct, op, B, X, options, {.factor = R.get()});
    };
    CHECK_NOTHROW(solve_with(*A, 0.5));
    CHECK_THROWS_AS(solve_with(*A, 0.25), UsageError);
    CHECK_THROWS_AS(solve_with(*other, 0.5), ShapeError);
    DistMatrix<double> B(grid, A->range().layout(2)), X(grid, A->domain().layout(2));
    CHECK_THROWS_AS(solve(Solver::cgls, *A, B, X, {}, {.factor = R.get()}), UsageError);
  }
}

TEST_CASE("In single precision a wide matrix keeps the directions that its elements determine") {
  const Element<float> b = random_elements<float>(4);
  for (const auto& grid : compact_grids()) {
    const KnownSpectrum<float> matrix(150, 200, geometric(150, 1e4));
    const OperatorPtr<float> A = dense_operator(grid, Algorithm::stationary_a, matrix);
    SolveOptions options;
    options.damp = 1e-4;
    const Solution<float> solution = solve<float>(direct, *A, 2, b, options);
    if (!grid->is_member()) continue;
    for (Index j = 0; j < 2; ++j) {
      CAPTURE(solution.verdict(j).iterations);
      CHECK(is_solved(solution.verdict(j).reason));
      CHECK(relative_difference(solution.column(j), matrix.least_squares_solution(b, j, 1e-4)) <= 1e-2);
    }
  }
}
