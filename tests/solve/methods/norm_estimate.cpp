// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>

#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

std::vector<double> linear(Index count) {
  std::vector<double> values;
  for (Index k = 0; k < count; ++k) values.push_back(1 - static_cast<double>(k) / static_cast<double>(count));
  return values;
}

/// Checks that the estimate is at most a per cent below the norm, and the same on all members.
template <Scalar T>
void check_estimate(const LinearOperator<T>& A, double norm, int steps = 20) {
  const double estimate = estimate_norm(A, steps);
  const auto& grid = A.domain().grid;
  if (!grid->is_member()) {
    CHECK(estimate == 0);
    return;
  }
  CAPTURE(grid->rows(), grid->cols(), estimate, norm, steps);
  CHECK(estimate <= norm * (1 + std::max(20, steps) * epsilon_of<T>));
  if (steps >= 20) CHECK(estimate >= 0.99 * norm);
  std::vector<double> least{estimate}, most{estimate};
  grid->comm().all_reduce(least, ReduceOp::min);
  grid->comm().all_reduce(most, ReduceOp::max);
  CHECK(least == most);
}

}  // namespace

TEMPLATE_TEST_CASE("The norm is estimated from below, within a per cent", "", float, double,
                   std::complex<float>, std::complex<double>) {
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const auto& values : {geometric(23, 3), geometric(23, 1e6), linear(23)}) {
        const auto tall = dense_operator(grid, algorithm, KnownSpectrum<TestType>(45, 23, values));
        check_estimate(*tall, 1);
        check_estimate(*scale(TestType(1000), adjoint(tall)), 1000);
      }
    }
    // The estimate also takes more steps than the matrix has columns, and a single one.
    const auto small =
        dense_operator(grid, Algorithm::summa, KnownSpectrum<TestType>(9, 4, geometric(4, 10)));
    for (const int steps : {1, 2, 20, 200}) check_estimate(*small, 1, steps);
    const auto flat = dense_operator(grid, Algorithm::summa, KnownSpectrum<TestType>(9, 9, geometric(9, 1)));
    check_estimate(*flat, 1, 200);
  }
}

TEST_CASE("The norm may be one whose square is out of range") {
  for (const auto& grid : compact_grids()) {
    const auto A =
        dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<double>(45, 23, geometric(23, 3)));
    for (const double size : {1e-200, 1e200}) check_estimate(*scale(size, A), size);
  }
}

TEST_CASE("The norm of a large matrix with a dense spectrum is estimated within a per cent") {
  for (const auto& grid : compact_grids()) {
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      const KnownSpectrum<double> matrix(400, 300, linear(300), seed);
      check_estimate(*dense_operator(grid, Algorithm::stationary_a, matrix), 1);
    }
  }
}

TEST_CASE("Matrices without elements have the norm zero") {
  for (const auto& grid : compact_grids()) {
    const Element<double> nothing = [](Index, Index) { return 0.0; };
    CHECK(estimate_norm(*dense_operator<double>(grid, Algorithm::stationary_a, 7, 5, nothing)) == 0);
    for (const Index n : {0, 5})
      CHECK(estimate_norm(*dense_operator<double>(grid, Algorithm::summa, 0, n, nothing)) == 0);
    CHECK(estimate_norm(*dense_operator<double>(grid, Algorithm::block, 5, 0, nothing)) == 0);
  }
}

TEST_CASE("The norm of a matrix of rank one is known after one step") {
  for (const auto& grid : compact_grids()) {
    const Element<double> rank_one = [](Index i, Index j) {
      return static_cast<double>((i + 1) * (j + 1)) / 100;
    };
    double rows = 0, cols = 0;
    for (Index i = 1; i <= 7; ++i) rows += static_cast<double>(i * i);
    for (Index j = 1; j <= 5; ++j) cols += static_cast<double>(j * j);
    check_estimate(*dense_operator<double>(grid, Algorithm::stationary_a, 7, 5, rank_one),
                   std::sqrt(rows * cols) / 100);
  }
}

TEST_CASE("The estimated norm of a matrix that is not finite is not finite") {
  for (const auto& grid : compact_grids()) {
    for (const double spoiler : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      const Element<double> spoiled = [spoiler](Index i, Index j) {
        return i == 3 && j == 2 ? spoiler : counter_random<double>(1, i, j);
      };
      const double norm = estimate_norm(*dense_operator<double>(grid, Algorithm::summa, 7, 5, spoiled));
      if (grid->is_member()) CHECK_FALSE(std::isfinite(norm));
    }
  }
}

TEST_CASE("A norm cannot be estimated without a step") {
  const auto grid = compact_grids().front();
  const Space space{grid, Cut::uncut(5), Axis::uncut};
  CHECK_THROWS_AS(estimate_norm(*identity<double>(space), 0), UsageError);
}
