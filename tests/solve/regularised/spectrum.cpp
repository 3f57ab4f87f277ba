// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "gridlops/ops/operator_algebra.hpp"
#include "support/catch.hpp"
#include "support/disagreements.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index n = 31;

std::vector<double> between(double low, double high) {
  std::vector<double> values;
  for (Index k = 0; k < n; ++k)
    values.push_back(low + (high - low) * static_cast<double>(k) / static_cast<double>(n - 1));
  return values;
}

void check_same_on_members(const ProcessGrid& grid, const std::vector<double>& values) {
  std::vector<double> least = values, most = values;
  grid.comm().all_reduce(least, ReduceOp::min);
  grid.comm().all_reduce(most, ReduceOp::max);
  CHECK(least == most);
}

}  // namespace

TEMPLATE_TEST_CASE("Power iteration finds the eigenvalue of largest modulus and its vector", "", float,
                   double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const double dominant : {4.0, -4.0}) {
        std::vector<double> values = between(-1, 2);
        values[5] = dominant;
        const auto A = square_operator(grid, algorithm, KnownSpectrum<T>::hermitian(values));
        const auto found = power_iteration(*A, 200, sizeof(Real<T>) == 8 ? 1e-12 : 1e-5);
        if (!grid->is_member()) {
          CHECK(found.eigenvalue == Accumulator<T>(0));
          continue;
        }
        CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), found.eigenvalue, found.iterations);
        check_same_on_members(*grid, {std::abs(found.eigenvalue), static_cast<double>(found.iterations)});
        CHECK(found.converged);
        CHECK(found.iterations < 60);
        CHECK(std::abs(found.eigenvalue - Accumulator<T>(dominant)) <= (sizeof(Real<T>) == 8 ? 1e-10 : 1e-4));
        CHECK(column_norms(found.vector)[0] == Approx(1).epsilon(1e-5));
        DistMatrix<T> defect = found.vector.clone();
        A->apply(T(1), found.vector, T(static_cast<Real<T>>(-dominant)), defect);
        CHECK(column_norms(defect)[0] <= (sizeof(Real<T>) == 8 ? 1e-5 : 1e-2));
      }
    }
  }
}

TEST_CASE("Power iteration handles complex eigenvalues, ties, nothing, and a limit") {
  using Complex = std::complex<double>;
  for (const auto& grid : compact_grids()) {
    const Space space{grid, Cut::balanced(Axis::all, n, *grid), Axis::uncut};
    const auto diagonal_of = [&](const Element<Complex>& entry) {
      DistMatrix<Complex> d(grid, {space.rows, Cut::uncut(1)});
      d.fill(entry);
      return diagonal(std::move(d));
    };
    const Complex largest(1, -2);
    const auto turning = diagonal_of([=](Index i, Index) { return i == 7 ? largest : Complex(1, 0.1); });
    const auto tied = diagonal_of([=](Index i, Index) { return i % 2 == 0 ? Complex(1) : Complex(-1); });
    const auto found = power_iteration(*turning, 300, 1e-10), not_found = power_iteration(*tied, 50, 1e-10),
               limited = power_iteration(*turning, 2, 1e-10),
               nothing = power_iteration(*zero<Complex>(space, space));
    if (!grid->is_member()) continue;
    CHECK(std::abs(found.eigenvalue - largest) <= 1e-8);
    CHECK(found.converged);
    CHECK_FALSE(not_found.converged);
    CHECK_FALSE(limited.converged);
    CHECK(limited.iterations == 2);
    CHECK(nothing.converged);
    CHECK(nothing.eigenvalue == Complex(0));
  }
}

TEMPLATE_TEST_CASE("Power iteration claims no eigenvalue that it has not found", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  constexpr bool is_double = sizeof(Real<T>) == 8;
  for (const auto& grid : compact_grids()) {
    const auto made = [&](const Element<T>& element) {
      return dense_operator<T>(grid, Algorithm::summa, n, n, element);
    };
    // λ and −λ; a skew-symmetric matrix, whose eigenvalues are pairs ±iμ; a rotation.
    const auto opposite = square_operator(grid, Algorithm::summa, KnownSpectrum<T>::hermitian([] {
                                            std::vector<double> values = between(-0.5, 0.5);
                                            values[3] = 2;
                                            values[9] = -2;
                                            return values;
                                          }()));
    const auto skew = made([](Index i, Index j) {
      return static_cast<T>(i + 1 == j ? 1 : i == j + 1 ? -1 : 0);
    });
    const auto rotation = made([](Index i, Index j) {
      const Index partner = i % 2 == 0 ? i + 1 : i - 1;
      return static_cast<T>(i >= 30 || j != partner ? 0 : i % 2 == 0 ? 2 : -2);
    });
    for (const auto& op : {opposite, skew, rotation}) {
      const auto found = power_iteration(*op, 60, is_double ? 1e-8 : 1e-4);
      if (!grid->is_member()) continue;
      CHECK_FALSE(found.converged);
      CHECK(found.iterations == 60);
      CHECK(found.residual > 0.01);
    }
    // Of every size, what it calls converged is an eigenpair, and the residual is the true one.
    for (const double size : {1.0, is_double ? 1e-200 : 1e-30, is_double ? 1e200 : 1e30}) {
      std::vector<double> values = between(-1, 2);
      values[5] = -4;
      for (double& value : values) value *= size;
      const auto A = square_operator(grid, Algorithm::stationary_a, KnownSpectrum<T>::hermitian(values));
      const auto found = power_iteration(*A, 200, is_double ? 1e-10 : 1e-4);
      if (!grid->is_member()) continue;
      CAPTURE(size, found.eigenvalue, found.residual);
      CHECK(found.converged);
      CHECK(std::abs(found.eigenvalue + Accumulator<T>(4 * size)) <= (is_double ? 1e-12 : 1e-4) * size);
      CHECK(found.residual <= 4.1 * (is_double ? 1e-10 : 1e-4) * size);
      DistMatrix<T> defect = found.vector.clone();
      A->apply(static_cast<T>(static_cast<Real<T>>(1 / size)), found.vector,
               static_cast<T>(-found.eigenvalue / size), defect);
      CHECK(column_norms(defect)[0] ==
            Approx(found.residual / size).epsilon(is_double ? 1e-3 : 0.1).margin(is_double ? 1e-14 : 1e-5));
    }
  }
}

TEMPLATE_TEST_CASE("Lanczos finds both ends of the spectrum", "", float, double, std::complex<float>,
                   std::complex<double>) {
  using T = TestType;
  const double exact = sizeof(Real<T>) == 8 ? 1e-12 : 1e-5;
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const auto& [low, high] : {std::pair{-3.0, 2.0}, std::pair{0.5, 4.0}, std::pair{-4.0, -1.0}}) {
        const double expected_low = low, expected_high = high;
        const auto A = square_operator(grid, algorithm, KnownSpectrum<T>::hermitian(between(low, high)));
        // As many steps as the dimension tell all, and more change nothing.
        for (const int steps : {static_cast<int>(n), 100}) {
          const SpectrumExtremes found = lanczos_extremes(*A, steps);
          if (!grid->is_member()) continue;
          CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), steps);
          check_same_on_members(*grid, {found.smallest, found.largest});
          CHECK(std::abs(found.smallest - expected_low) <= 10 * exact);
          CHECK(std::abs(found.largest - expected_high) <= 10 * exact);
        }
        const SpectrumExtremes inside = lanczos_extremes(*A, 6, 5);
        if (!grid->is_member()) continue;
        CHECK(inside.smallest >= expected_low - exact);
        CHECK(inside.largest <= expected_high + exact);
        CHECK(inside.largest - inside.smallest > 0.7 * (expected_high - expected_low));
      }
    }
  }
}

TEMPLATE_TEST_CASE("Norms and ends of the spectrum are found at any scale", "", float, double,
                   std::complex<double>) {
  using T = TestType;
  const auto grid = compact_grids().back();
  const KnownSpectrum<T> matrix = KnownSpectrum<T>::hermitian(between(-3, 2));
  const double exact = sizeof(Real<T>) == 8 ? 1e-11 : 1e-4;
  const std::vector<int> powers =
      sizeof(Real<T>) == 8 ? std::vector{-1000, -700, -520, 520, 700, 1010} : std::vector{-100, -70, 70, 110};
  for (const int power : powers) {
    const auto A = dense_operator<T>(grid, Algorithm::summa, n, n, [&](Index i, Index j) {
      return matrix(i, j) * static_cast<Real<T>>(std::ldexp(1.0, power));
    });
    const SpectrumExtremes found = lanczos_extremes(*A, n);
    const double norm = estimate_norm(*A, n);
    if (!grid->is_member()) continue;
    CAPTURE(power, found.smallest, found.largest, norm);
    CHECK(std::abs(std::ldexp(found.smallest, -power) + 3) <= exact);
    CHECK(std::abs(std::ldexp(found.largest, -power) - 2) <= exact);
    CHECK(std::abs(std::ldexp(norm, -power) - 3) <= exact);
  }
}

TEST_CASE("Lanczos ends in an invariant subspace, and with what is not finite") {
  for (const auto& grid : compact_grids()) {
    const Space space{grid, Cut::balanced(Axis::grid_rows, n, *grid), Axis::grid_cols};
    const SpectrumExtremes one = lanczos_extremes(*scale(-2.0, identity<double>(space)), 20);
    const SpectrumExtremes none = lanczos_extremes(*zero<double>(space, space), 20);
    std::vector<double> two = between(1, 1);
    two[3] = 5;
    const SpectrumExtremes both =
        lanczos_extremes(*square_operator(grid, Algorithm::summa, KnownSpectrum<double>::hermitian(two)), 20);
    std::vector<double> spoiled = two;
    spoiled[4] = std::nan("");
    const SpectrumExtremes lost = lanczos_extremes(
        *square_operator(grid, Algorithm::summa, KnownSpectrum<double>::hermitian(spoiled)), 20);
    const SpectrumExtremes empty = lanczos_extremes(
        *identity<double>({grid, Cut::balanced(Axis::grid_rows, 0, *grid), Axis::grid_cols}));
    if (!grid->is_member()) continue;
    CHECK(one.smallest == Approx(-2));
    CHECK(one.largest == Approx(-2));
    CHECK(none.smallest == 0);
    CHECK(none.largest == 0);
    CHECK(both.smallest == Approx(1));
    CHECK(both.largest == Approx(5));
    CHECK(std::isnan(lost.largest));
    CHECK(empty.largest == 0);
  }
}

TEMPLATE_LIST_TEST_CASE("A sketch finds what the smallest singular value is not below", "", Scalars) {
  using T = TestType;
  double on_one_rank = 0;
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const double condition : {1.0, 30.0}) {
        const KnownSpectrum<T> matrix(45, 9, geometric(9, condition));
        const OperatorPtr<T> A = dense_operator(grid, algorithm, matrix);
        const double found = probable_sigma_min(*A), scaled = probable_sigma_min(*scale(T(1024), A));
        if (!grid->is_member()) {
          CHECK(found == 0);
          continue;
        }
        CAPTURE(describe(*grid), found, condition);
        CHECK(found <= 1 / condition);
        CHECK(found >= 0.1 / condition);
        CHECK(scaled == Approx(1024 * found).epsilon(100 * epsilon_of<T>));
        check_same_on_members(*grid, {found});
        if (condition == 1.0) continue;
        if (on_one_rank == 0) on_one_rank = found;
        CHECK(found == Approx(on_one_rank).epsilon(100 * epsilon_of<T>));
        // The share of chance is known for every probability (Laurent and Massart).
        const auto of_chance = [](double failure) {
          const double x = -std::log(failure), s = 36;
          return std::sqrt(s + 2 * std::sqrt(s * x) + 2 * x);
        };
        CHECK(probable_sigma_min(*A, 0.25) * of_chance(0.25) == Approx(found * of_chance(1e-9)));
      }
    }
  }
}

TEST_CASE("What a sketch finds is not above the smallest singular value, whatever the seed") {
  const auto grid = compact_grids().front();
  const auto column = dense_operator(grid, Algorithm::summa, KnownSpectrum<double>(50, 1, {3}));
  if (!grid->is_member()) return;
  int above_half = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const double found = probable_sigma_min(*column, 1e-9, seed);
    CHECK(found <= 3);
    if (probable_sigma_min(*column, 0.9, seed) > 1.5) ++above_half;
  }
  CHECK(above_half > 50);
}

TEMPLATE_LIST_TEST_CASE("A sketch has random numbers of its own", "", Scalars) {
  using T = TestType;
  const auto grid = compact_grids().front();
  for (const std::uint64_t seed : {1u, 8u}) {
    const auto element = random_elements<T>(seed);
    const double found =
        probable_sigma_min(*dense_operator(grid, Algorithm::summa, 1000, 10, element), sketch_failure, seed);
    double shortest = std::numeric_limits<double>::infinity();  // no singular value is above all columns
    for (Index j = 0; j < 10; ++j) {
      double sum = 0;
      for (Index i = 0; i < 1000; ++i) sum += std::norm(static_cast<Accumulator<T>>(element(i, j)));
      shortest = std::min(shortest, std::sqrt(sum));
    }
    CHECK(found <= shortest);
  }
}

TEMPLATE_LIST_TEST_CASE("A singular value that rounding hides, or that is none, is not found", "", Scalars) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    std::vector<double> values{1, 1, 1, 0.1 * epsilon_of<T>}, lost = values;
    lost[1] = std::numeric_limits<double>::quiet_NaN();
    const double hidden =
        probable_sigma_min(*dense_operator(grid, Algorithm::summa, KnownSpectrum<T>(40, 4, values)));
    const double none =
        probable_sigma_min(*dense_operator(grid, Algorithm::summa, KnownSpectrum<T>(40, 4, lost)));
    const double empty =
        probable_sigma_min(*dense_operator(grid, Algorithm::summa, 40, 0, random_elements<T>(1)));
    CHECK((hidden == 0 && empty == 0));
    if (grid->is_member()) CHECK(std::isnan(none));
  }
}

TEST_CASE("A sketch is refused to a matrix that is not tall, on all ranks") {
  const auto grid = compact_grids().front();
  const auto low = dense_operator(grid, Algorithm::summa, KnownSpectrum<double>(35, 9, geometric(9, 2)));
  const auto tall = dense_operator(grid, Algorithm::summa, KnownSpectrum<double>(36, 9, geometric(9, 2)));
  const std::string refusal = message_of<UsageError>([&] { probable_sigma_min(*low); });
  CHECK((contains(refusal, "35 x 9") && contains(refusal, "36 rows")));
  for (const double failure : {0.0, 1.0, -1.0})
    CHECK_THROWS_AS(probable_sigma_min(*tall, failure), UsageError);
  CHECK_NOTHROW(probable_sigma_min(*tall));
  if (!grid->is_member() || grid->comm().size() == 1) return;
  const bool am_odd = grid->comm().rank() == grid->comm().size() - 1;
  check_disagreement(grid->comm(), {"the probability of failure"},
                     [&] { probable_sigma_min(*tall, am_odd ? 0.5 : 0.25); });
}

TEST_CASE("Eigenvalues are refused to what has none, on all ranks") {
  const auto grid = compact_grids().front();
  const auto wide = dense_operator(grid, Algorithm::summa, KnownSpectrum<double>(7, 9, geometric(7, 2)));
  const Space space{grid, Cut::uncut(5), Axis::uncut};
  CHECK_THROWS_AS(power_iteration(*wide), ShapeError);
  CHECK_THROWS_AS(lanczos_extremes(*wide), ShapeError);
  CHECK_THROWS_AS(power_iteration(*identity<double>(space), 0), UsageError);
  CHECK_THROWS_AS(power_iteration(*identity<double>(space), 5, -1), UsageError);
  CHECK_THROWS_AS(lanczos_extremes(*identity<double>(space), 0), UsageError);
}
