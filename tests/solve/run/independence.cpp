// SPDX-License-Identifier: BSD-3-Clause
// The result of one column does not depend on the others that are solved with it.
#include <algorithm>
#include <numeric>
#include <optional>

#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index nrhs = 64;

struct Case {
  double condition = 3;
  double damp = 0;
  bool deflation = true;  ///< other columns leave early
  bool column_stable = false;
  Index batch = 0;
  // Where CGLS takes nearly as many iterations as A has columns, or more, rounding decides: with κ = 30
  // that takes a larger matrix to avoid.
  Index m = condition <= 3 ? 75 : 200, n = condition <= 3 ? 50 : 150;
  Storage storage = Storage::columns;
};

/// Right-hand sides that take as many iterations as n and κ ask for. With `deflation`, every other one takes
/// one, three or none.
template <Scalar T>
Element<T> right_hand_sides(const KnownSpectrum<T>& A, bool deflation) {
  return [&A, deflation](Index i, Index j) {
    if (!deflation || j % 2 == 0) return counter_random<T>(5, i, j);
    if (j % 8 == 7) return T(0);
    if (j % 4 == 1) return A.left(i, j % A.cols());
    return A.left(i, j % A.cols()) + A.left(i, (j + 5) % A.cols()) + A.left(i, (j + 9) % A.cols());
  };
}

template <Scalar T>
SolveOptions options_for(const Case& chosen) {
  SolveOptions options;
  options.max_iterations = 400;
  options.damp = chosen.damp;
  options.column_stable = chosen.column_stable;
  options.batch = chosen.batch;
  return options;
}

template <Scalar T>
void check_like_alone(const Solution<T>& together, Index j, const Solution<T>& alone, const Case& chosen) {
  const ColumnReport &among = together.verdict(j), &single = alone.verdict(0);
  CAPTURE(j, chosen.condition, chosen.damp, chosen.deflation, chosen.column_stable, chosen.batch);
  CHECK(std::string(name_of(among.reason)) == name_of(single.reason));
  const std::vector<T> x = together.column(j), x_alone = alone.column(0);
  if (chosen.column_stable) {
    CHECK(among.iterations == single.iterations);
    CHECK(among.residual_norm == single.residual_norm);
    CHECK(among.normal_residual_norm == single.normal_residual_norm);
    CHECK(x == x_alone);
  } else if (chosen.condition <= 3) {
    CHECK(among.iterations == single.iterations);
    CHECK(relative_difference(x, x_alone) <= (sizeof(Real<T>) == 8 ? 1e-12 : 1e-4));
  } else {
    const double share = sizeof(Real<T>) == 8 ? 0.05 : 0.1;
    const double allowed = std::max(2.0, share * static_cast<double>(single.iterations));
    CHECK(std::abs(static_cast<double>(among.iterations - single.iterations)) <= allowed);
    CHECK(relative_difference(x, x_alone) <= 10 * chosen.condition * (sizeof(Real<T>) == 8 ? 1e-8 : 1e-4));
  }
}

template <Scalar T>
void compare_with_alone(const GridPtr& grid, Algorithm algorithm, const Case& chosen,
                        const std::vector<Index>& sampled) {
  CAPTURE(grid->rows(), grid->cols(), name_of(algorithm));
  const KnownSpectrum<T> matrix(chosen.m, chosen.n, geometric(chosen.n, chosen.condition));
  MatrixMultOptions mult_options;
  mult_options.column_stable = chosen.column_stable;
  mult_options.storage = chosen.storage;
  const OperatorPtr<T> A = dense_operator(grid, algorithm, matrix, mult_options);
  const Element<T> b = right_hand_sides(matrix, chosen.deflation);
  const SolveOptions options = options_for<T>(chosen);
  const Solution<T> together = solve<T>(cgls, *A, nrhs, b, options);
  if (!grid->is_member()) {
    CHECK(together.report.columns.empty());
    CHECK(together.report.history.empty());
    return;
  }
  check_report(WholeSystem<T>(cgls, chosen.m, chosen.n, Element<T>(matrix), b, options), together,
               grid->comm());
  for (const Index j : sampled)
    check_like_alone(together, j, solve_alone<T>(cgls, *A, j, b, options), chosen);
}

const std::vector<Index>& a_few_columns() {
  static const std::vector<Index> columns{0, 1, 3, 7, 34, 62, 63};
  return columns;
}

}  // namespace

TEST_CASE("A column of many is solved as if it were alone") {
  const auto grids = compact_grids();
  for (const auto& grid : grids) {
    for (const Algorithm algorithm : all_algorithms) {
      compare_with_alone<double>(grid, algorithm, {3, 0, true}, {0, 3, 63});
      compare_with_alone<double>(grid, algorithm, {3, 0.1, true, true}, {1, 62});
    }
  }
  compare_with_alone<double>(grids.back(), Algorithm::stationary_a, {30, 0, false}, {0, 63});
  Case packed{.condition = 30, .column_stable = true};
  packed.storage = Storage::packed;
  compare_with_alone<std::complex<double>>(grids.back(), Algorithm::stationary_a, packed, {1, 62});
  compare_with_alone<double>(grids.back(), Algorithm::summa, {30, 0.1, true}, {3, 62});
  compare_with_alone<double>(grids.back(), Algorithm::block, {30, 0, true, true}, {1, 62});
}

TEMPLATE_TEST_CASE("A column of many is solved as if it were alone, whatever its type", "", float,
                   std::complex<float>, std::complex<double>) {
  const auto grid = compact_grids().back();
  compare_with_alone<TestType>(grid, Algorithm::stationary_a, {3, 0.1, true}, a_few_columns());
  compare_with_alone<TestType>(grid, Algorithm::summa, {30, 0.1, true, true}, {0, 1, 62});
}

TEMPLATE_TEST_CASE("Every column of many is solved as if it were alone", "[.full]", float, double,
                   std::complex<float>, std::complex<double>) {
  std::vector<Index> all(nrhs);
  std::iota(all.begin(), all.end(), Index{0});
  for (const auto& grid : compact_grids())
    for (const Algorithm algorithm : all_algorithms)
      for (const double condition : {3.0, 30.0})
        for (const double damp : {0.0, 0.1})
          for (const bool deflation : {false, true})
            for (const bool stable : {false, true})
              compare_with_alone<TestType>(
                  grid, algorithm, {condition, damp, deflation, stable},
                  algorithm == Algorithm::stationary_a && condition < 10 ? all : a_few_columns());
}

namespace {

constexpr Index m = 45, n = 23;

/// An uneven partition of the columns along an axis that this grid cuts.
Partition uneven(int parts) {
  std::vector<Index> sizes;
  for (int part = 0; part < parts; ++part) sizes.push_back(part == 1 ? 1 : 5 - part);
  return Partition::with_sizes(sizes);
}

template <Scalar T>
void check_batches(const GridPtr& grid, Algorithm algorithm, bool initial_guess) {
  const KnownSpectrum<T> matrix(m, n, geometric(n, 3));
  MatrixMultOptions mult_options;
  mult_options.column_stable = true;
  const OperatorPtr<T> A = dense_operator(grid, algorithm, matrix, mult_options);
  const Element<T> b = right_hand_sides(matrix, true);
  const Element<T> guess = initial_guess ? random_elements<T>(3) : Element<T>{};
  const Partition columns = uneven(grid->parts(A->domain().columns));
  const Solution<T> at_once = solve<T>(cgls, *A, columns, b, options_for<T>({3, 0.1, true, true}), guess);
  for (const Index batch : {1, 3, 1000}) {
    CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), batch);
    const SolveOptions options = options_for<T>({3, 0.1, true, true, batch});
    const Solution<T> batched = solve<T>(cgls, *A, columns, b, options, guess);
    if (!grid->is_member()) continue;
    check_report(WholeSystem<T>(cgls, m, n, Element<T>(matrix), b, options, guess), batched, grid->comm());
    CHECK(batched.X == at_once.X);
    for (Index j = 0; j < columns.total(); ++j) {
      CHECK(batched.verdict(j).iterations == at_once.verdict(j).iterations);
      CHECK(batched.verdict(j).residual_norm == at_once.verdict(j).residual_norm);
    }
  }
}

}  // namespace

TEST_CASE("Batches give the same columns as all at once") {
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : {Algorithm::block, Algorithm::summa, Algorithm::stationary_a})
      check_batches<double>(grid, algorithm, false);
    check_batches<std::complex<float>>(grid, Algorithm::summa, true);
  }
}

namespace {

/// Solves for sound columns with a spoiled one among them, and without it.
template <Scalar T>
void check_spoiled(const GridPtr& grid, Algorithm algorithm, Index where, T spoiler, bool in_guess) {
  const Index columns = 11;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 3));
  MatrixMultOptions mult_options;
  mult_options.column_stable = true;
  const OperatorPtr<T> A = dense_operator(grid, algorithm, matrix, mult_options);
  const Element<T> sound = right_hand_sides(matrix, true), sound_guess = random_elements<T>(3);
  const auto spoil = [=](const Element<T>& whole, bool really) -> Element<T> {
    return [=](Index i, Index j) { return really && j == where && i == 4 ? spoiler : whole(i, j); };
  };
  const Element<T> b = spoil(sound, !in_guess);
  const Element<T> guess = in_guess ? spoil(sound_guess, true) : Element<T>{};
  const SolveOptions options = options_for<T>({3, 0.1, true, true});
  const Solution<T> with = solve<T>(cgls, *A, columns, b, options, guess);
  const Solution<T> without =
      solve<T>(cgls, *A, columns, sound, options, in_guess ? sound_guess : Element<T>{});
  if (!grid->is_member()) return;
  check_report(WholeSystem<T>(cgls, m, n, Element<T>(matrix), b, options, guess), with, grid->comm());
  for (Index j = 0; j < columns; ++j) {
    CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), where, j, in_guess);
    CHECK((with.verdict(j).reason == StopReason::non_finite) == (j == where));
    if (j == where) {
      CHECK(with.verdict(j).iterations == 0);
      continue;
    }
    CHECK(with.verdict(j).iterations == without.verdict(j).iterations);
    CHECK(with.verdict(j).normal_residual_norm == without.verdict(j).normal_residual_norm);
    CHECK(with.column(j) == without.column(j));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("A column with a number that is not finite is lost alone", "", double,
                   std::complex<float>) {
  const TestType nan(std::numeric_limits<Real<TestType>>::quiet_NaN());
  const TestType infinity(std::numeric_limits<Real<TestType>>::infinity());
  const bool real = !is_complex<TestType>;
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : {real ? Algorithm::summa : Algorithm::block,
                                      real ? Algorithm::stationary_a : Algorithm::stationary_b}) {
      check_spoiled<TestType>(grid, algorithm, 0, nan, false);
      check_spoiled<TestType>(grid, algorithm, 5, -infinity, false);
      check_spoiled<TestType>(grid, algorithm, 10, nan, true);
    }
  }
}

TEST_CASE("With a matrix that has a number that is not finite all columns are lost, and the solvers end") {
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const double spoiler :
           {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), spoiler);
        const Element<double> spoiled = [spoiler](Index i, Index j) {
          return i == 7 && j == 3 ? spoiler : counter_random<double>(1, i, j);
        };
        const OperatorPtr<double> A = dense_operator<double>(grid, algorithm, m, n, spoiled);
        const Element<double> b = [](Index i, Index j) {
          return j == 2 ? 0 : counter_random<double>(2, i, j);
        };
        for (const Element<double>& guess : {Element<double>{}, random_elements<double>(3)}) {
          const Solution<double> solution = solve<double>(cgls, *A, 5, b, {}, guess);
          if (!grid->is_member()) continue;
          for (const ColumnReport& column : solution.report.columns)
            CHECK(std::string(name_of(column.reason)) == "non_finite");
          for (const double x : solution.X) CHECK(std::isnan(x));
          check_same_everywhere(solution.report, grid->comm());
        }
      }
    }
  }
}

namespace {

/// The last 5 rows of A are exactly zero.
constexpr Index filled_rows = 40;

/// Columns that need care, each for a reason of its own.
template <Scalar T>
struct SpecialColumns {
  KnownSpectrum<T> matrix{filled_rows, n, geometric(n, 3)};

  T A(Index i, Index j) const { return i < filled_rows ? matrix(i, j) : T(0); }
  T b(Index i, Index j) const {
    const T ordinary = i < filled_rows ? counter_random<T>(5, i, 0) : T(1);
    switch (j) {
      case 1:
        return i < filled_rows ? T(0) : counter_random<T>(6, i, 0);  // exactly orthogonal to the range
      case 2:
        return i < filled_rows ? matrix.left(i, n + 3) : T(0);  // to rounding
      case 3:
      case 4:
        return T(0);
      case 5:
        return solved(i);
      case 8:
        return static_cast<Real<T>>(1e-12) * ordinary;
      case 9:
        return static_cast<Real<T>>(sizeof(Real<T>) == 8 ? 1e100 : 1e20) * ordinary;
      default:
        return ordinary;
    }
  }
  T guess(Index i, Index j) const {
    if (j == 3) return T(0);
    return counter_random<T>(7, i, j == 7 ? 6 : j);
  }
  /// A times the initial guess of column 5, to rounding.
  T solved(Index i) const {
    Accumulator<T> sum(0);
    for (Index k = 0; k < n; ++k) sum += Accumulator<T>(A(i, k)) * Accumulator<T>(guess(k, 5));
    return static_cast<T>(sum);
  }
  static constexpr Index count = 10;
};

template <Scalar T>
void check_special_columns(const GridPtr& grid, Algorithm algorithm, bool initial_guess) {
  const SpecialColumns<T> special;
  const Element<T> b = [&](Index i, Index j) { return special.b(i, j); };
  const Element<T> elements = [&](Index i, Index j) { return special.A(i, j); };
  const Element<T> guess =
      initial_guess ? [&](Index i, Index j) { return special.guess(i, j); } : Element<T>{};
  MatrixMultOptions mult_options;
  mult_options.column_stable = true;
  const OperatorPtr<T> A = dense_operator<T>(grid, algorithm, m, n, elements, mult_options);
  const Case chosen{3, 0, true, true};
  const SolveOptions options = options_for<T>(chosen);
  const Solution<T> together = solve<T>(cgls, *A, special.count, b, options, guess);
  if (!grid->is_member()) return;
  check_report(WholeSystem<T>(cgls, m, n, elements, b, options, guess), together, grid->comm());
  CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), initial_guess);
  for (Index j = 0; j < special.count; ++j)
    check_like_alone(together, j, solve_alone<T>(cgls, *A, j, b, options, guess), chosen);
  const auto ended = [&](Index j) { return together.verdict(j).reason; };
  for (const Index j : {0, 1, 3, 4, 5, 6, 7, 8, 9}) {
    CAPTURE(j, together.verdict(j).tested_norm);
    CHECK(ended(j) == StopReason::converged);
  }
  CHECK((ended(2) == StopReason::converged || ended(2) == StopReason::stagnated));
  CHECK(together.verdict(3).iterations == 0);
  CHECK(norm_of(together.column(3)) == 0);
  if (initial_guess) {
    CHECK(together.verdict(5).iterations == 0);
  } else {
    for (const Index j : {1, 4}) CHECK(together.verdict(j).iterations == 0);
    for (const Index j : {6, 7, 8, 9})
      CHECK(std::abs(together.verdict(j).iterations - together.verdict(0).iterations) <= 1);
  }
  CHECK(together.column(6) == together.column(7));
}

}  // namespace

TEMPLATE_TEST_CASE("Columns that need care end as they would alone", "", float, double,
                   std::complex<double>) {
  const Algorithm algorithm = sizeof(TestType) == 4   ? Algorithm::block
                              : sizeof(TestType) == 8 ? Algorithm::summa
                                                      : Algorithm::stationary_a;
  for (const auto& grid : compact_grids())
    for (const bool initial_guess : {false, true})
      check_special_columns<TestType>(grid, algorithm, initial_guess);
}
