// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>
#include <vector>

#include "solve/run/verdict.hpp"
#include "solve/run/verdicts.hpp"
#include "support/catch.hpp"

using namespace gridlops;

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Of a problem with ‖A‖ = ‖b‖ = 1 and an x that solves nothing.
ColumnNorms unsolved() {
  return {.tested_norm = 0.1,
          .reference = 1,
          .residual_norm = 0.5,
          .data_norm = 1,
          .x_norm = 1,
          .operator_norm = 1};
}

VerdictLimits limits(ToleranceTest test) {
  return {.test = test, .tolerance = 1e-8, .atol = 1e-8, .btol = 1e-8, .epsilon = epsilon};
}

constexpr ToleranceTest least_squares[] = {ToleranceTest::gradient, ToleranceTest::backward_error};

}  // namespace

TEST_CASE("What meets the tolerance has converged, and nothing else") {
  ColumnNorms norms = unsolved();
  for (const ToleranceTest test : {ToleranceTest::gradient, ToleranceTest::residual, ToleranceTest::own}) {
    norms.tested_norm = 1e-8;
    CHECK(judge(norms, limits(test), {epsilon}) == StopReason::converged);
    norms.tested_norm = 1.01e-8;
    CHECK(judge(norms, limits(test), {epsilon}) == std::nullopt);
  }
  // A reference of 0 is met by 0 alone.
  norms.reference = 0;
  CHECK(judge(norms, limits(ToleranceTest::gradient), {epsilon}) == std::nullopt);
  norms.tested_norm = 0;
  CHECK(judge(norms, limits(ToleranceTest::gradient), {epsilon}) == StopReason::converged);
}

TEST_CASE("An error that is certainly small enough has converged, whatever the tolerance") {
  for (const ToleranceTest test : least_squares) {
    ColumnNorms norms = unsolved();
    norms.damp = 0.5;  // ‖g‖/μ = 0.1/0.25
    VerdictLimits wanted = limits(test);
    wanted.known = {.sigma_min = 0, .frobenius_norm = 1};
    CHECK(judge(norms, wanted, {epsilon}) == std::nullopt);
    for (const double error : {0.39, 0.41}) {
      wanted.error = error;
      CHECK(judge(norms, wanted, {epsilon}).has_value() == (error > 0.4));
    }
    wanted.error = 0.11;
    wanted.known.sigma_min = std::sqrt(0.75);  // μ = 1
    CHECK(judge(norms, wanted, {epsilon}) == StopReason::converged);
    wanted.epsilon = 0.02;  // hides 0.01·(0.5 + 2·0.25 + 1 + 1)
    CHECK(judge(norms, wanted, {epsilon}) == std::nullopt);
    // No gradient is small enough where the bound is not, but a tolerance that is asked for is tested, too.
    norms.tested_norm = 0;
    wanted.error = 0.029;
    wanted.tolerance = wanted.atol = wanted.btol = 0;
    CHECK(judge(norms, wanted, {epsilon}) != StopReason::converged);
    wanted.error = 0.031;
    CHECK(judge(norms, wanted, {epsilon}) == StopReason::converged);
    wanted.error = 0.029;
    wanted.tolerance = wanted.atol = 1e-3;
    CHECK(judge(norms, wanted, {epsilon}) == StopReason::converged);
  }
}

TEST_CASE("What a recomputed gradient differs by from that of the recurrence bounds errors in full") {
  const SolveOptions options{.max_iterations = 10, .tolerance = 0.0, .sigma_min = 0.5};
  const Verdicts verdicts({.epsilon = epsilon}, options, {0});
  ColumnState column;
  static_cast<ColumnNorms&>(column) = unsolved();
  column.reason = StopReason::iteration_limit;
  column.quadrature = 0.25;
  const auto after = [&](const RecomputedNorm& tested) {
    CHECK_FALSE(verdicts.verify(column, tested, false));
    return column.quadrature;
  };
  column.tested_norm = 0.1;
  CHECK(after({0.1}) == 0.25);
  CHECK(after({0.2}) == Approx(0.5625));  // half of it has 0.5 of ‖g‖/μ at most, and the other half 1
  CHECK(after({0.2}) == Approx(0.5625));
  CHECK(column.tested_norm == 0.2);
  column.quadrature = 0.25;
  CHECK(after({0.16}) == Approx(0.765625));  // 1.25 of it has 0.5 of ‖g‖/μ at most, and 0.25 of it 1
  CHECK(after({0.08}) == 1);
  // Gradients of the same norm may differ all the same: by a tenth of it, or by Aᴴe with √μ‖e‖ of a tenth.
  for (const RecomputedNorm& drifted :
       {RecomputedNorm{0.5, 0.05, 0}, RecomputedNorm{0.5, 0, 0.1}, RecomputedNorm{0.5, 0.025, 0.05}}) {
    column.quadrature = 0.25;
    column.tested_norm = 0.5;
    CHECK(after(drifted) == Approx(0.36));
  }
}

TEST_CASE("Rounding of a step that is as long as it can be leaves a quadrature of 1") {
  const SolveOptions options{.max_iterations = 10, .tolerance = 0.0};
  const Verdicts verdicts({.epsilon = epsilon}, options, {0});
  for (const double rounding : {0.0, epsilon, -epsilon}) {
    ColumnState column;
    column.damp = 1;
    verdicts.follow_quadrature(column, 1 + rounding, epsilon * epsilon);
    CHECK(column.quadrature == 1);
    column = ColumnState();
    column.damp = 1;
    verdicts.follow_quadrature(column, 1 + rounding, epsilon);
    CHECK(column.quadrature > 0.85);  // 1 + rounding could be 1 − 9ε as well
  }
}

TEST_CASE("A backward error is one of the damped system, relative to A and x or to b") {
  const VerdictLimits of_lsqr = limits(ToleranceTest::backward_error);
  ColumnNorms norms = unsolved();
  norms.tested_norm = 0.5e-8;  // ‖Aᴴr‖ ≤ atol‖A‖‖r‖
  CHECK(judge(norms, of_lsqr, {epsilon}) == StopReason::converged);
  norms.tested_norm = 0.51e-8;
  CHECK(judge(norms, of_lsqr, {epsilon}) == std::nullopt);
  norms.damp = 0.5;  // makes the residual √½
  CHECK(judge(norms, of_lsqr, {epsilon}) == StopReason::converged);
  norms.tested_norm = 0.72e-8;
  CHECK(judge(norms, of_lsqr, {epsilon}) == std::nullopt);

  norms = unsolved();
  norms.residual_norm = 2e-8;  // ‖r‖ ≤ btol‖b‖ + atol‖A‖‖x‖
  CHECK(judge(norms, of_lsqr, {epsilon}) == StopReason::converged);
  VerdictLimits of_correction = of_lsqr;
  of_correction.x_is_correction = true;
  CHECK(judge(norms, of_correction, {epsilon}) == std::nullopt);
  norms.residual_norm = 2.1e-8;
  CHECK(judge(norms, of_lsqr, {epsilon}) == std::nullopt);
  norms.residual_norm = 1e-8;
  norms.damp = 1;  // a residual that is zero does not end what the damping makes
  CHECK(judge(norms, of_lsqr, {epsilon}) == std::nullopt);
}

TEST_CASE("A test that refers to the damped system leaves the bounds of rounding those of A") {
  ColumnNorms norms = unsolved();
  norms.damped_operator_norm = 1e3;
  CHECK(norms.tested_operator_norm() == 1e3);
  norms.tested_norm = 0.5e-5;  // ‖Aᴴr‖ ≤ atol‖A‖‖r‖
  CHECK(judge(norms, limits(ToleranceTest::backward_error), {epsilon}) == StopReason::converged);
  VerdictLimits strict = limits(ToleranceTest::backward_error);
  strict.atol = strict.btol = 0;
  norms.tested_norm = 9 * epsilon * norms.residual_norm;
  CHECK(judge(norms, strict, {epsilon}) == StopReason::stagnated);
  CHECK(is_exhausted(norms, strict));
  norms.tested_norm = 11 * epsilon * norms.residual_norm;
  CHECK(judge(norms, strict, {epsilon}) == std::nullopt);
  CHECK_FALSE(is_exhausted(norms, strict));
  norms.residual_norm = 1e-4;
  norms.tested_norm = 21 * epsilon;  // what rounding of Ax and b leaves in the gradient
  CHECK(judge(norms, strict, {epsilon, epsilon}) == std::nullopt);
  norms.residual_norm = 11 * epsilon;  // what rounding of Ax leaves in r
  norms.tested_norm = 1e-4;
  CHECK(judge(norms, strict, {epsilon}) == std::nullopt);
}

TEST_CASE("A gradient at the rounding level of A and r has stagnated") {
  for (const ToleranceTest test : least_squares) {
    VerdictLimits strict = limits(test);
    strict.tolerance = strict.atol = strict.btol = 0;
    ColumnNorms norms = unsolved();
    norms.tested_norm = 9 * epsilon * norms.residual_norm;
    CHECK(judge(norms, strict, {epsilon}) == StopReason::stagnated);
    norms.tested_norm = 11 * epsilon * norms.residual_norm;
    CHECK(judge(norms, strict, {epsilon}) == std::nullopt);
    CHECK(judge(norms, strict, {2 * epsilon}) == StopReason::stagnated);
    norms.damp = 0.5;
    CHECK(judge(norms, strict, {epsilon}) == StopReason::stagnated);
  }
}

TEST_CASE("An x that has exploded is no solution, whatever bound holds its norm") {
  for (const ToleranceTest test : least_squares) {
    VerdictLimits strict = limits(test);
    strict.tolerance = strict.atol = strict.btol = 0;
    ColumnNorms norms = unsolved();
    norms.residual_norm = 2;  // x = 0 is better
    norms.tested_norm = epsilon;
    CHECK(judge(norms, strict, {epsilon}) == std::nullopt);
    norms = unsolved();
    norms.damp = 1e-3;
    norms.x_norm = 1e10;
    norms.tested_norm = epsilon * norms.x_norm * norms.damp * norms.damp;
    CHECK(judge(norms, strict, {epsilon}) == std::nullopt);
  }
  for (const ToleranceTest test :
       {ToleranceTest::gradient, ToleranceTest::backward_error, ToleranceTest::residual}) {
    VerdictLimits strict = limits(test);
    strict.tolerance = strict.atol = strict.btol = 0;
    ColumnNorms norms = unsolved();
    norms.x_norm = 1e29;
    CHECK(judge(norms, strict, {epsilon}) == std::nullopt);
    norms.residual_norm = norms.tested_norm = 1e13;
    CHECK(judge(norms, strict, {epsilon}) == std::nullopt);
  }
}

TEST_CASE("Equations that are solved to the rounding of A have stagnated") {
  for (const ToleranceTest test :
       {ToleranceTest::gradient, ToleranceTest::backward_error, ToleranceTest::residual}) {
    VerdictLimits strict = limits(test);
    strict.tolerance = strict.atol = strict.btol = 0;
    ColumnNorms norms = unsolved();
    norms.x_norm = 1e6;
    norms.residual_norm = norms.tested_norm = 9e6 * epsilon;
    CHECK(judge(norms, strict, {epsilon}) == StopReason::stagnated);
    norms.residual_norm = norms.tested_norm = 11e6 * epsilon;
    CHECK(judge(norms, strict, {epsilon}) == std::nullopt);
    // Half of the digits of b are explained at least.
    norms.x_norm = 1e9;
    norms.residual_norm = norms.tested_norm = 9e8 * epsilon;
    CHECK(judge(norms, strict, {epsilon}) == std::nullopt);
  }
}

TEST_CASE("A gradient that is computed anew is not known better than to the rounding of Ax and b") {
  for (const ToleranceTest test : least_squares) {
    VerdictLimits strict = limits(test);
    strict.tolerance = strict.atol = strict.btol = 0;
    ColumnNorms norms = unsolved();
    norms.residual_norm = 1e-4;  // far above ε‖A‖‖x‖, far below ‖b‖
    norms.tested_norm = 19 * epsilon;
    CHECK(judge(norms, strict, {epsilon}) == std::nullopt);
    CHECK(judge(norms, strict, {epsilon, epsilon}) == StopReason::stagnated);
    norms.tested_norm = 21 * epsilon;
    CHECK(judge(norms, strict, {epsilon, epsilon}) == std::nullopt);
    norms.x_norm = 1e12;  // has exploded: the gradient has lost half of its digits only
    norms.tested_norm = 1e-4;
    CHECK(judge(norms, strict, {epsilon, epsilon}) == std::nullopt);
  }
}

TEST_CASE("A recurrence is exhausted at its rounding level, whether x is a solution or not") {
  for (const ToleranceTest test : least_squares) {
    VerdictLimits strict = limits(test);
    strict.tolerance = strict.atol = strict.btol = 0;
    ColumnNorms norms = unsolved();
    norms.residual_norm = 1e5;
    norms.tested_norm = 9e5 * epsilon;
    CHECK(is_exhausted(norms, strict));
    CHECK(judge(norms, strict, {epsilon}) == std::nullopt);
    norms.tested_norm = 11e5 * epsilon;
    CHECK_FALSE(is_exhausted(norms, strict));
  }
  VerdictLimits of_cg = limits(ToleranceTest::residual);
  ColumnNorms norms = unsolved();
  norms.x_norm = 1e16;
  norms.tested_norm = 2;
  CHECK(is_exhausted(norms, of_cg));
  norms.x_norm = 1e6;
  CHECK_FALSE(is_exhausted(norms, of_cg));
  norms.tested_norm = 0;
  CHECK_FALSE(is_exhausted(norms, limits(ToleranceTest::own)));
}

TEST_CASE("The first guess of least squares has not converged for being far from zero") {
  ColumnNorms norms = unsolved();
  norms.x_norm = norms.residual_norm = 1e12;
  norms.tested_norm = 1e12;
  for (const ToleranceTest test : least_squares) CHECK(judge(norms, limits(test), {epsilon}) == std::nullopt);
}

TEST_CASE("A test of a method's own knows its rounding level by itself") {
  ColumnNorms norms = unsolved();
  norms.tested_norm = 1e-7;
  norms.rounding_norm = 1e-7;
  CHECK(judge(norms, limits(ToleranceTest::own), {epsilon}) == StopReason::stagnated);
  CHECK(judge(norms, limits(ToleranceTest::gradient), {epsilon}) == std::nullopt);
  VerdictLimits absolute = limits(ToleranceTest::own);
  absolute.absolute_tolerance = 1e-6;
  CHECK(judge(norms, absolute, {epsilon}) == StopReason::converged);
}

TEST_CASE("A norm that is not a number ends a column") {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    for (double ColumnNorms::*member : {&ColumnNorms::tested_norm, &ColumnNorms::residual_norm,
                                        &ColumnNorms::x_norm, &ColumnNorms::reference}) {
      ColumnNorms norms = unsolved();
      norms.*member = bad;
      for (const ToleranceTest test : {ToleranceTest::gradient, ToleranceTest::residual,
                                       ToleranceTest::backward_error, ToleranceTest::own})
        CHECK(judge(norms, limits(test), {epsilon}) == StopReason::non_finite);
    }
}
