// SPDX-License-Identifier: BSD-3-Clause
#include "solve/ridge/ridge_choice.hpp"

#include <limits>
#include <vector>

#include "support/catch.hpp"

using namespace gridlops;

TEST_CASE("A ridge takes the first of the best dampings") {
  const std::vector<double> alphas{3, 1, 10};
  // Of each damping the scores of two folds.
  CHECK(choose_alpha(alphas, std::vector<double>{1, 2, 2, 3, 3, 2}, false) == 1);
  CHECK(choose_alpha(alphas, std::vector<double>{0, 0, 0, 0, 0, 0}, false) == 0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(choose_alpha(alphas, std::vector<double>{9, nan, -4, -2, -8, 0}, false) == 1);
  CHECK(!choose_alpha(alphas, std::vector<double>{nan, nan, nan, nan, nan, nan}, true));
  CHECK(!choose_alpha({}, {}, true));
}

TEST_CASE("One standard error is that of the folds of the best damping") {
  const std::vector<double> alphas{1, 100, 10};
  // The scores of the best are 4 and 8: their mean is 6, and its standard error √(8/2) = 2.
  CHECK(choose_alpha(alphas, std::vector<double>{4, 8, 4, 4, 5, 5}, true) == 1);
  CHECK(choose_alpha(alphas, std::vector<double>{4, 8, 3.9, 4, 5, 5}, true) == 2);
  CHECK(choose_alpha(alphas, std::vector<double>{4, 8, 3.9, 4, 3, 4}, true) == 0);
  // A smaller damping is not taken, and one fold has no error.
  CHECK(choose_alpha(alphas, std::vector<double>{5, 6, 4, 8, 5, 5}, true) == 1);
  CHECK(choose_alpha(alphas, std::vector<double>{3, 2, 1}, true) == 0);
}
