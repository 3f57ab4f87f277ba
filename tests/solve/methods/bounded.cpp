// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>

#include "gridlops/solve/error_bound.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "io/npy_files.hpp"
#include "support/solution_checks.hpp"

// Truth is a diagonal A, for which every element has a formula, or the conditions of Karush, Kuhn and Tucker,
// from their definition.

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Bounds of all kinds: none, one, both, equal ones.
double lower_of(Index i, Index j) {
  const Index kind = (3 * i + 5 * j) % 7;
  return kind < 2 ? -infinity : kind == 2 ? 0.25 : -0.125 * static_cast<double>(kind);
}
double upper_of(Index i, Index j) {
  const Index kind = (3 * i + 5 * j) % 7;
  return kind == 1 || kind == 4 ? infinity : 0.25;
}

template <Scalar T>
Element<T> as_element(double (*bound)(Index, Index)) {
  return [bound](Index i, Index j) { return static_cast<T>(bound(i, j)); };
}

template <Scalar T>
struct Bounded {
  DistMatrix<T> B, X, lower, upper;

  Bounded(const LinearOperator<T>& A, Index nrhs, const Element<T>& b)
      : B(filled(A.range().grid, A.range().layout(nrhs), b)),
        X(filled(A.range().grid, A.domain().layout(nrhs), [](Index, Index) { return quiet_nan<T>(); })),
        lower(filled(A.range().grid, A.domain().layout(nrhs), as_element<T>(lower_of))),
        upper(filled(A.range().grid, A.domain().layout(nrhs), as_element<T>(upper_of))) {}

  SolveReport solve(const LinearOperator<T>& A, const SolveOptions& options) {
    return bounded<T>(A, B, X, options, {.lower = &lower, .upper = &upper});
  }
};

/// The diagonal of A.
double diagonal(Index i) { return static_cast<double>(1 + i % 4); }

template <Scalar T>
T of_diagonal(Index i, Index j) {
  return i == j ? static_cast<T>(diagonal(i)) : T(0);
}

double clip(double x, double lower, double upper) { return std::min(std::max(x, lower), upper); }

}  // namespace

TEMPLATE_TEST_CASE("With a diagonal A, bounded least squares clip each element", "", float, double) {
  using T = TestType;
  constexpr Index n = 17, nrhs = 5;
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const double damp : {0.0, 2.0}) {
        const OperatorPtr<T> A = dense_operator<T>(grid, algorithm, n, n, of_diagonal<T>);
        const Element<T> b = random_elements<T>(3);
        Bounded<T> problem(*A, nrhs, b);
        const SolveReport report = problem.solve(*A, {.damp = damp, .sigma_min = 1});
        const std::vector<double> bounds = error_bounds<T>(
            report, problem.B, problem.X, {.damp = damp, .sigma_min = 1, .frobenius_norm = 12});
        const std::vector<T> X = everywhere<T>(problem.X);
        if (!grid->is_member()) continue;
        CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), damp);
        for (Index j = 0; j < nrhs; ++j) {
          double error = 0, size = 0;
          for (Index i = 0; i < n; ++i) {
            const double a = diagonal(i), free = a * static_cast<double>(b(i, j)) / (a * a + damp * damp),
                         x = static_cast<double>(X[static_cast<std::size_t>(j * n + i)]),
                         truth = clip(free, lower_of(i, j), upper_of(i, j));
            error = std::hypot(error, x - truth);
            size = std::hypot(size, truth);
            CHECK((x >= lower_of(i, j) && x <= upper_of(i, j)));
          }
          const ColumnReport& column = report.columns[static_cast<std::size_t>(j)];
          CHECK(column.reason == StopReason::converged);
          CHECK(error <= bounds[static_cast<std::size_t>(j)]);
          CHECK(bounds[static_cast<std::size_t>(j)] <=
                100 * tolerance_of({}, scalar_type_of<T>).one_or(0) * size);
        }
      }
    }
  }
}

TEST_CASE("Bounds of errors hold after every iteration") {
  constexpr Index n = 17, nrhs = 5;
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<double> A =
        dense_operator<double>(grid, Algorithm::stationary_a, n, n, of_diagonal<double>);
    const Element<double> b = random_elements<double>(3);
    for (const auto& [damp, sigma] : {std::pair{0.0, 1.0}, {1.0, 0.0}, {0.5, 0.5}}) {
      Bounded<double> problem(*A, nrhs, b);
      for (Index iterations = 0; iterations < 8; ++iterations) {
        const SolveReport report = problem.solve(
            *A, {.max_iterations = iterations, .tolerance = 0.0, .damp = damp, .sigma_min = sigma});
        const ErrorBoundOptions known{.damp = damp, .sigma_min = sigma, .frobenius_norm = 12};
        const std::vector<double> bounds = error_bounds<double>(report, problem.B, problem.X, known),
                                  of_another_sigma = error_bounds<double>(
                                      report, problem.B, problem.X,
                                      {.damp = damp, .sigma_min = 0.9, .frobenius_norm = 12});
        const std::vector<double> X = everywhere<double>(problem.X);
        if (!grid->is_member()) continue;
        CAPTURE(grid->rows(), grid->cols(), damp, sigma, iterations);
        for (Index j = 0; j < nrhs; ++j) {
          double error = 0;
          for (Index i = 0; i < n; ++i) {
            const double a = diagonal(i);
            error = std::hypot(error,
                               X[static_cast<std::size_t>(j * n + i)] -
                                   clip(a * b(i, j) / (a * a + damp * damp), lower_of(i, j), upper_of(i, j)));
          }
          CHECK(error <= bounds[static_cast<std::size_t>(j)]);
          CHECK(error <= of_another_sigma[static_cast<std::size_t>(j)]);
          CHECK(std::isfinite(bounds[static_cast<std::size_t>(j)]));
        }
      }
    }
  }
}

namespace {

/// Checks feasibility, and that no number of the gradient that may move x is left but for the tolerance.
template <Scalar T>
void check_kkt(const std::vector<T>& A, Index m, Index n, const Element<T>& b, Index j, const T* x,
               double damp, double tolerance) {
  std::vector<double> r(static_cast<std::size_t>(m));
  const auto at_ = [](Index k) { return static_cast<std::size_t>(k); };
  for (Index i = 0; i < m; ++i) {
    r[at_(i)] = static_cast<double>(b(i, j));
    for (Index k = 0; k < n; ++k)
      r[at_(i)] -= static_cast<double>(A[at_(i + k * m)]) * static_cast<double>(x[k]);
  }
  double tested = 0, reference = 0, of_nearest = 0;
  for (Index k = 0; k < n; ++k) {
    double s = -damp * damp * static_cast<double>(x[k]), of_data = 0;
    for (Index i = 0; i < m; ++i) {
      s += static_cast<double>(A[at_(i + k * m)]) * r[at_(i)];
      of_data += static_cast<double>(A[at_(i + k * m)]) * static_cast<double>(b(i, j));
    }
    const auto l = static_cast<double>(static_cast<T>(lower_of(k, j))),
               u = static_cast<double>(static_cast<T>(upper_of(k, j))), at_x = static_cast<double>(x[k]);
    CHECK((at_x >= l && at_x <= u));
    const bool is_held = (at_x == l && s <= 0) || (at_x == u && s >= 0);
    if (!is_held) tested = std::hypot(tested, s);
    reference = std::hypot(reference, of_data);
    of_nearest = std::hypot(of_nearest, clip(0, l, u));
  }
  // The other reference, of the point nearest to 0, is at most this much longer.
  double norm_A = 0;
  for (const T a : A) norm_A = std::hypot(norm_A, static_cast<double>(a));
  CHECK(tested <= 1.01 * tolerance * (reference + (norm_A * norm_A + damp * damp) * of_nearest));
}

}  // namespace

TEMPLATE_TEST_CASE("Solutions with bounds meet the conditions of Karush, Kuhn and Tucker", "", float,
                   double) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const auto& [m, n] : {std::pair<Index, Index>{31, 13}, {13, 31}, {3, 2}, {1, 5}}) {
        for (const double damp : {0.0, 0.3}) {
          const Element<T> a = random_elements<T>(1), b = random_elements<T>(2);
          const OperatorPtr<T> A = dense_operator<T>(grid, algorithm, m, n, a);
          Bounded<T> problem(*A, 6, b);
          const bool guess = damp > 0;
          if (guess) problem.X.fill(random_elements<T>(9));
          SolveOptions options{.max_iterations = 1000, .damp = damp, .initial_guess = guess, .batch = 4};
          const SolveReport report = problem.solve(*A, options);
          const std::vector<T> X = everywhere<T>(problem.X);
          if (!grid->is_member()) continue;
          CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), m, n, damp);
          std::vector<T> whole;
          for (Index k = 0; k < n; ++k)
            for (Index i = 0; i < m; ++i) whole.push_back(a(i, k));
          for (Index j = 0; j < 6; ++j) {
            CHECK(is_solved(report.columns[static_cast<std::size_t>(j)].reason));
            check_kkt<T>(whole, m, n, b, j, X.data() + j * n, damp,
                         tolerance_of({}, scalar_type_of<T>).one_or(0));
          }
        }
      }
    }
  }
}

TEST_CASE("x that is all bounds, zero right-hand sides and no columns need no iteration") {
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<double> A =
        dense_operator<double>(grid, Algorithm::stationary_a, 7, 5, random_elements<double>(1));
    Bounded<double> fixed(*A, 3, random_elements<double>(2));
    fixed.lower.fill([](Index i, Index j) { return static_cast<double>(i - j); });
    fixed.upper.fill([](Index i, Index j) { return static_cast<double>(i - j); });
    const SolveReport of_fixed = fixed.solve(*A, {});
    const std::vector<double> X = everywhere<double>(fixed.X);
    Bounded<double> zero(*A, 3, [](Index, Index) { return 0.0; });
    const SolveReport of_zero =
        bounded<double>(*A, zero.B, zero.X, {.nonnegative = true}, {.upper = &zero.upper});
    Bounded<double> none(*A, 0, random_elements<double>(2));
    CHECK(none.solve(*A, {}).columns.empty());
    if (!grid->is_member()) continue;
    for (std::size_t k = 0; k < X.size(); ++k)
      CHECK(X[k] == static_cast<double>(static_cast<Index>(k) % 5 - static_cast<Index>(k) / 5));
    for (const SolveReport& report : {of_fixed, of_zero})
      for (const ColumnReport& column : report.columns)
        CHECK((column.reason == StopReason::converged && column.iterations == 0));
    for (const double x : everywhere<double>(zero.X)) CHECK(x == 0);
  }
}

TEST_CASE("Bounds without a number between them are refused on all ranks, with their place") {
  using Complex = std::complex<double>;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<double> A =
        dense_operator<double>(grid, Algorithm::summa, 7, 5, random_elements<double>(1));
    if (!grid->is_member()) continue;
    for (const auto& [low, high, bounds] : {std::tuple{2.0, 1.0, "2 and 1"},
                                            {nan, 1.0, "nan and 1"},
                                            {0.0, nan, "0 and nan"},
                                            {infinity, infinity, "inf and inf"},
                                            {-infinity, -infinity, "-inf and -inf"}}) {
      Bounded<double> problem(*A, 3, random_elements<double>(2));
      problem.lower.fill([bad = low](Index i, Index j) { return i >= 3 && j == 2 ? bad : -1; });
      problem.upper.fill([bad = high](Index i, Index j) { return i >= 3 && j == 2 ? bad : 1; });
      const std::string text = message_of<UsageError>([&] { problem.solve(*A, {}); });
      CAPTURE(text);
      CHECK((contains(text, "element 3 of column 2") && contains(text, bounds)));
    }
    Bounded<double> problem(*A, 3, random_elements<double>(2));
    CHECK(
        contains(message_of<UsageError>([&] { problem.solve(*A, {.nonnegative = true}); }), "leave one out"));
    DistMatrix<double> other(grid, A->domain().layout(2));
    CHECK_THROWS_AS(bounded<double>(*A, problem.B, problem.X, {}, {.lower = &other}), ShapeError);
    const auto by_cgls = [&](const SolveOptions& options, const SolverOperands<double>& operands) {
      return message_of<UsageError>(
          [&] { solve<double>(Solver::cgls, *A, problem.B, problem.X, options, operands); });
    };
    CHECK(contains(by_cgls({}, {.upper = &problem.upper}), "bounded"));
    CHECK(contains(by_cgls({.nonnegative = true}, {}), "bounded"));
    const auto C = dense_operator<Complex>(grid, Algorithm::summa, 7, 5, random_elements<Complex>(1));
    const auto data = filled(grid, C->range().layout(1), random_elements<Complex>(2));
    DistMatrix<Complex> X(grid, C->domain().layout(1));
    CHECK(contains(message_of<UsageError>([&] { bounded<Complex>(*C, data, X, {.nonnegative = true}, {}); }),
                   "complex"));
  }
}

namespace {

/// A problem whose gradient is that of its bounds alone: b = 0, D = 0.1, t ≤ x₁ ≤ 2t and −t ≤ x₂ ≤ 2t.
template <Scalar T>
struct OfBoundsAlone {
  OperatorPtr<T> A;
  Bounded<T> problem;
  T t;

  OfBoundsAlone(const GridPtr& grid, T unit)
      : A(dense_operator<T>(grid, Algorithm::stationary_a, 2, 2,
                            [](Index i, Index j) { return i <= j ? T(1) : T(0); })),
        problem(*A, 1, [](Index, Index) { return T(0); }),
        t(unit) {
    problem.lower.fill([unit](Index i, Index) { return i == 0 ? unit : -unit; });
    problem.upper.fill([unit](Index, Index) { return 2 * unit; });
  }

  SolveReport solve(bool from_guess = false) {
    return problem.solve(*A, {.damp = 0.1, .initial_guess = from_guess});
  }
  /// Collective over the grid; t times this.
  double error() const {
    const std::vector<T> X = everywhere<T>(problem.X);
    if (X.empty()) return 0;
    const double x2 = -1 / 2.01;  // where (t + x₂)² + x₂² + 0.01 x₂² is least
    return std::hypot(static_cast<double>(X[0] / t) - 1, static_cast<double>(X[1] / t) - x2);
  }
};

}  // namespace

TEMPLATE_TEST_CASE("Bounds whose squares would leave the range are refused on all ranks", "", float, double) {
  using T = TestType;
  constexpr bool is_single = sizeof(T) == 4;
  for (const auto& grid : compact_grids()) {
    for (const int power : {0, 80, -80, is_single ? 98 : 448, is_single ? -98 : -448}) {
      OfBoundsAlone<T> one(grid, std::ldexp(T(1), power));
      const SolveReport report = one.solve();
      const std::vector<double> bounds =
          error_bounds<T>(report, one.problem.B, one.problem.X, {.damp = 0.1, .frobenius_norm = 1.75});
      const double error = one.error();
      if (!grid->is_member()) continue;
      CAPTURE(grid->rows(), grid->cols(), power, error);
      CHECK(report.columns[0].reason == StopReason::converged);
      const double bound = std::ldexp(bounds[0], -power);
      CHECK((error <= bound && bound < 0.02));
    }
    if (!grid->is_member()) continue;
    for (const int power : {is_single ? 110 : 531, is_single ? -110 : -531, is_single ? -120 : -548}) {
      OfBoundsAlone<T> one(grid, std::ldexp(T(1), power));
      const std::string text = message_of<UsageError>([&] { one.solve(); });
      CAPTURE(power, text);
      CHECK((contains(text, "bounded") && contains(text, "nearest to 0") && !contains(text, "penalty")));
    }
  }
}

TEMPLATE_TEST_CASE("Bounded least squares scale exactly, or are refused", "", float, double) {
  using T = TestType;
  constexpr bool is_single = sizeof(T) == 4;
  constexpr Index m = 9, n = 5;
  const Element<T> a = random_elements<T>(1), b = random_elements<T>(2);
  for (const auto& grid : compact_grids()) {
    const auto solved = [&](int of_A, int of_B) {
      const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n,
                                                 [&](Index i, Index j) { return std::ldexp(a(i, j), of_A); });
      Bounded<T> problem(*A, 2, [&](Index i, Index j) { return std::ldexp(b(i, j), of_B); });
      const SolveReport report = bounded<T>(*A, problem.B, problem.X, {.nonnegative = true}, {});
      for (const ColumnReport& column : report.columns) CHECK(is_solved(column.reason));
      std::vector<T> X = everywhere<T>(problem.X);
      for (T& x : X) x = std::ldexp(x, of_A - of_B);
      return X;
    };
    const std::vector<T> X = solved(0, 0);
    const std::vector<std::pair<int, int>> fit =
        is_single ? std::vector<std::pair<int, int>>{{-20, -40}, {20, 40}, {-40, 20}, {30, -10}}
                  : std::vector<std::pair<int, int>>{{-60, -270}, {60, 270}, {-200, 100}, {200, -20}};
    for (const auto& [of_A, of_B] : fit) {
      const std::vector<T> other = solved(of_A, of_B);
      CAPTURE(of_A, of_B);
      for (std::size_t k = 0; k < X.size(); ++k) CHECK(other[k] == Approx(X[k]).margin(1e-4));
    }
    if (!grid->is_member()) continue;
    const std::vector<std::pair<int, int>> leave =
        is_single ? std::vector<std::pair<int, int>>{{-40, -50}, {40, 60}, {-43, 70}}
                  : std::vector<std::pair<int, int>>{{-230, -100}, {230, 200}, {-230, 300}};
    for (const auto& [of_A, of_B] : leave) {
      const std::string text =
          message_of<UsageError>([&, p = of_A, q = of_B] { static_cast<void>(solved(p, q)); });
      CAPTURE(of_A, of_B, text);
      CHECK((contains(text, "with bounds does not scale") && !contains(text, "penalty")));
    }
  }
}

TEMPLATE_TEST_CASE("Bounds that are hardly apart, or hardly above 0, stop nothing", "", float, double) {
  using T = TestType;
  constexpr Index m = 20, n = 6;
  constexpr T smallest = std::numeric_limits<T>::min();
  const Element<T> a = random_elements<T>(1);
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n, a);
    std::vector<T> expected;
    for (const T width : {T(0), smallest / 64, 8 * smallest}) {
      for (const T low : {T(0), smallest / 16}) {
        Bounded<T> problem(*A, 1, [&](Index i, Index) {
          T sum = 0;
          for (Index k = 0; k < n; ++k) sum += 5 * a(i, k);
          return sum;
        });
        problem.lower.fill([low](Index, Index) { return low; });
        problem.upper.fill(
            [&](Index i, Index) { return i == 2 ? low + width : std::numeric_limits<T>::infinity(); });
        const SolveReport report = problem.solve(*A, {});
        const std::vector<T> X = everywhere<T>(problem.X);
        if (!grid->is_member()) continue;
        CAPTURE(grid->rows(), grid->cols(), width, low);
        CHECK(is_solved(report.columns[0].reason));
        CHECK(X[2] == low + width);
        if (expected.empty()) expected = X;
        for (std::size_t k = 0; k < X.size(); ++k) CHECK(X[k] == Approx(expected[k]).margin(1e-2));
      }
    }
    // All of x is below the normal numbers.
    Bounded<T> tiny(*A, 1, random_elements<T>(2));
    tiny.lower.fill([](Index, Index) { return smallest / 64; });
    tiny.upper.fill([](Index, Index) { return smallest / 32; });
    const SolveReport report = tiny.solve(*A, {});
    const std::vector<T> X = everywhere<T>(tiny.X);
    if (!grid->is_member()) continue;
    CHECK(is_solved(report.columns[0].reason));
    for (const T x : X) CHECK((x == smallest / 64 || x == smallest / 32));
  }
}

TEST_CASE("A guess counts where b = 0 and the box excludes 0, unless it is far off") {
  for (const auto& grid : compact_grids()) {
    OfBoundsAlone<double> one(grid, 1);
    const SolveReport first = one.solve(), again = one.solve(true);
    one.problem.upper.fill([](Index, Index) { return infinity; });
    one.problem.X.fill([](Index, Index) { return 1e20; });
    const SolveReport from_afar = one.solve(true);
    const double error = one.error();
    if (!grid->is_member()) continue;
    CHECK((first.columns[0].iterations > 0 && again.columns[0].iterations == 0));
    CHECK((from_afar.columns[0].reason == StopReason::converged && error < 1e-6));
  }
}

TEST_CASE("A restart refuses mirrored bounds") {
  const ScratchFolder folder;
  const auto grids = compact_grids();
  for (std::size_t k = 0; k < grids.size(); ++k) {
    const GridPtr& grid = grids[k];
    const std::string directory = folder.file("bounded-" + std::to_string(k));
    const OperatorPtr<double> A =
        dense_operator<double>(grid, Algorithm::stationary_a, 20, 6, random_elements<double>(1));
    Bounded<double> problem(*A, 2, random_elements<double>(2));
    const auto solve_between = [&](double low, double high, const CheckpointOptions& checkpoint) {
      problem.lower.fill([low](Index, Index) { return low; });
      problem.upper.fill([high](Index, Index) { return high; });
      return problem.solve(*A, {.max_iterations = 2, .tolerance = 0.0, .checkpoint = checkpoint});
    };
    solve_between(-0.01, 0.03, {.directory = directory, .every_iterations = 1});
    solve_between(-0.01, 0.03, {.restart = directory});
    if (!grid->is_member()) continue;
    CHECK(contains(message_of<InputError>([&] { solve_between(-0.03, 0.01, {.restart = directory}); }),
                   "other bounds"));
  }
}
