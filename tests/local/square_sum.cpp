// SPDX-License-Identifier: BSD-3-Clause
#include "base/square_sum.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "gridlops/base/random.hpp"
#include "support/catch.hpp"

using namespace gridlops;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The norm in long double, whose exponents have room for all squares.
template <class R>
double expected_norm(const std::vector<R>& numbers) {
  long double sum = 0;
  for (const R number : numbers) sum += static_cast<long double>(number) * static_cast<long double>(number);
  return static_cast<double>(std::sqrt(sum));
}

template <class R>
double found_norm(const std::vector<R>& numbers) {
  SquareSum sum;
  sum.add(numbers.data(), std::ssize(numbers));
  return sum.root();
}

}  // namespace

TEST_CASE("Norms are right whatever the size of their numbers", "[square_sum]") {
  CHECK(SquareSum().root() == 0);
  for (const int power : {-1074, -1060, -700, -540, -512, -480, -241, 0, 239, 479, 481, 512, 600, 1015}) {
    for (const int spread : {0, 40, 600}) {
      for (const Index count : {1, 7, 8, 100}) {
        std::vector<double> numbers;
        for (Index i = 0; i < count; ++i)
          numbers.push_back(std::ldexp(counter_uniform(1, i, 0), i % 2 == 0 ? power : power - spread));
        CAPTURE(power, spread, count);
        // Rounding of a sum of this many terms; denormal numbers have an absolute precision.
        const double expected = expected_norm(numbers),
                     allowed = static_cast<double>(count) * 2.3e-16 * expected + 0x1p-1074;
        CHECK(std::abs(found_norm(numbers) - expected) <= allowed);
        CHECK(std::abs(norm_of(numbers) - expected) <= allowed);
        SquareSum first, second;
        first.add(numbers.data(), count / 2);
        second.add(numbers.data() + count / 2, count - count / 2);
        first.add(second);
        CHECK(std::abs(first.root() - expected) <= allowed);
      }
    }
  }
  CHECK(found_norm(std::vector<float>{3e38F, -2e38F}) == Approx(std::hypot(3e38, 2e38)).epsilon(1e-7));
  CHECK(found_norm(std::vector<float>{3e-45F, 0}) == static_cast<double>(3e-45F));
}

TEST_CASE("Norms of what is not finite, or too large, are not finite", "[square_sum]") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), most = std::numeric_limits<double>::max();
  CHECK(found_norm<double>({1, infinity, 1e-300}) == infinity);
  CHECK(found_norm<double>({most, most}) == infinity);
  CHECK(found_norm<double>({most}) == Approx(most));
  for (const double other : {0.0, 1e-300, 1.0, 1e300, infinity})
    CHECK(std::isnan(found_norm<double>({other, nan, other})));
}
