// SPDX-License-Identifier: BSD-3-Clause
// Smallest singular values that are known exactly, and what is proven of them.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "solve/methods/factor_problems.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// A matrix with 2^log_rows rows and the singular values 2^(log_rows/2 − steps·j), all of its elements exact:
/// columns of a Hadamard matrix, each multiplied by a power of two, and rows by powers of i.
template <Scalar T>
Element<T> hadamard(int steps, int power = 0) {
  return [=](Index i, Index j) {
    const bool is_negative = std::popcount(static_cast<unsigned>(i & (j + 1))) % 2 == 1;
    const auto size =
        static_cast<Real<T>>(std::ldexp(is_negative ? -1.0 : 1.0, power - steps * static_cast<int>(j)));
    if constexpr (is_complex<T>) {
      if (i % 2 == 1) return T(0, size);
    }
    return T(size);
  };
}
double smallest_of_hadamard(int log_rows, Index cols, int steps, int power = 0) {
  return std::exp2(0.5 * log_rows + power - steps * static_cast<double>(cols - 1));
}

}  // namespace

TEMPLATE_TEST_CASE("What is proven of the smallest singular value is not above it, and little below", "",
                   float, double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  constexpr int log_rows = 6;
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : {Algorithm::stationary_a, Algorithm::block}) {
      for (const Index cols : {1, 2, 9, 60}) {
        for (const int steps : {0, 1, 4}) {
          if (steps * (cols - 1) > 33) continue;  // a condition of 10¹⁰
          for (const int power : {0, is_double<T> ? 400 : 60, is_double<T> ? -400 : -60}) {
            const OperatorPtr<T> A =
                dense_operator(grid, algorithm, Index{1} << log_rows, cols, hadamard<T>(steps, power));
            const double found = proven_sigma_min(*A),
                         exact = smallest_of_hadamard(log_rows, cols, steps, power);
            CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), cols, steps, power, found / exact);
            if (!grid->is_member()) {
              CHECK(found == 0);
              continue;
            }
            CHECK(found <= exact);
            CHECK(found >= 0.9 * exact);
            std::array<double, 2> extremes{found, -found};
            grid->comm().all_reduce(extremes, ReduceOp::max);
            CHECK(extremes[0] == -extremes[1]);  // the same on all members
          }
        }
      }
    }
  }
}

TEST_CASE("Nothing is proven where rounding hides the smallest singular value, or it is 0") {
  for (const auto& grid : compact_grids()) {
    const auto found_of = [&](Index rows, Index cols, const Element<double>& element) {
      return proven_sigma_min(*dense_operator(grid, Algorithm::stationary_a, rows, cols, element));
    };
    CHECK(found_of(64, 0, hadamard<double>(1)) == 0);
    CHECK(found_of(0, 0, hadamard<double>(1)) == 0);
    CHECK(found_of(7, 3, [](Index, Index) { return 0.0; }) == 0);
    CHECK(found_of(7, 3, [](Index i, Index j) { return j == 1 ? 0.0 : static_cast<double>(i + j * j); }) ==
          0);
    // The last column is the sum of the others.
    CHECK(found_of(40, 4, [](Index i, Index j) {
            const auto first = [i](Index k) { return static_cast<double>((i * i + 7 * k * i + k) % 11); };
            return j < 3 ? first(j) : first(0) + first(1) + first(2);
          }) == 0);
    for (const int steps : {15, 17, 20, 26}) {  // conditions from 10¹³ to 10²³
      const double exact = smallest_of_hadamard(6, 4, steps),
                   found = found_of(64, 4, hadamard<double>(steps));
      CAPTURE(steps, found / exact);
      CHECK(found <= exact);
    }
  }
}

TEST_CASE("A smallest singular value is proven of more rows than a rank takes at a time") {
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<float> A =
        dense_operator(grid, Algorithm::stationary_a, Index{1} << 12, 5, hadamard<float>(2));
    const double found = proven_sigma_min(*A), exact = smallest_of_hadamard(12, 5, 2);
    if (!grid->is_member()) continue;
    CAPTURE(found / exact);
    CHECK((found <= exact && found >= 0.99 * exact));
  }
}

TEST_CASE("A proof holds where half of the singular values are the smallest") {
  constexpr Index n = 300;
  for (const double condition : {1e4, 1e8, 1e10, 1e12}) {
    std::vector<double> values(n, 1);
    std::fill(values.begin() + n / 2, values.end(), 1 / condition);
    for (const auto& grid : compact_grids()) {
      const double found = proven_sigma_min(
          *dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<double>(n, n, values)));
      if (!grid->is_member()) continue;
      CAPTURE(condition, found * condition);
      CHECK(found * condition <= 1 + 100 * epsilon_of<double> * condition);
      if (condition < 1e9) CHECK(found * condition >= 0.9);
    }
  }
}

TEST_CASE("A proof of the smallest singular value is refused on all ranks") {
  const auto grid = compact_grids().front();
  const auto wide = dense_operator(grid, Algorithm::stationary_a, 3, 8, hadamard<double>(1));
  CHECK(contains(message_of<UsageError>([&] { proven_sigma_min(*wide); }), "3 x 8"));
  const auto moving = dense_operator(grid, Algorithm::summa, 8, 3, hadamard<double>(1));
  CHECK(contains(message_of<UsageError>([&] { proven_sigma_min(*moving); }), "stationary_a"));
  const auto odd = dense_operator(grid, Algorithm::stationary_a, 8, 3, Element<double>([](Index i, Index j) {
                                    return i == 5 && j == 2 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
                                  }));
  if (grid->is_member()) CHECK(std::isnan(proven_sigma_min(*odd)));
}
