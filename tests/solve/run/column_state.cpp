// SPDX-License-Identifier: BSD-3-Clause
#include <limits>

#include "solve/run/column_state.hpp"
#include "support/catch.hpp"

using namespace gridlops;

namespace {

/// Takes one more iteration, with this norm; true if x is to be kept.
bool advance(ColumnState& state, double norm) {
  ++state.iterations;
  state.tested_norm = norm;
  return state.is_to_be_kept();
}

}  // namespace

TEST_CASE("The tested norm is relative to its reference, and zero to a zero one") {
  ColumnState state;
  state.tested_norm = 3;
  state.reference = 6;
  CHECK(state.relative_norm() == 0.5);
  state.tested_norm = state.reference = 0;
  CHECK(state.relative_norm() == 0);
}

TEST_CASE("Any number of a column that is not finite is noticed") {
  const double infinity = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(ColumnState{}.finite());
  for (const double bad : {infinity, -infinity, nan}) {
    for (double ColumnState::*member : {&ColumnState::tested_norm, &ColumnState::residual_norm,
                                        &ColumnState::x_norm, &ColumnState::reference}) {
      ColumnState state;
      state.*member = bad;
      CHECK_FALSE(state.finite());
    }
  }
}

TEST_CASE(
    "An iterate is kept for every halving of the norm, and the kept one is the best to a factor of two") {
  ColumnState state;
  state.tested_norm = 8;
  state.begin_descent();
  CHECK(state.snapshot_norm == 8);
  CHECK_FALSE(advance(state, 5));
  CHECK_FALSE(advance(state, 100));
  CHECK(advance(state, 3.9));
  CHECK(state.snapshot_norm == 3.9);
  CHECK_FALSE(advance(state, 2));
  CHECK(advance(state, 0.125));
  CHECK_FALSE(advance(state, 0.125));
  state.tested_norm = 5;
  state.begin_descent();
  CHECK(state.snapshot_norm == 5);
}

TEST_CASE("Norms of a scaled problem are reported in the units that were given") {
  ColumnState state;
  state.scale = {.A = 6, .b = -3, .damp = 3};
  state.operator_norm = 64;
  state.damped_operator_norm = 128;
  state.residual_norm = state.final_residual_norm = 1;
  state.x_norm = 1;
  state.final_normal_norm = 1;
  state.reference = state.tested_norm = 1;
  const ColumnState of_cg = state.in_given_units(ToleranceTest::residual),
                    of_cgls = state.in_given_units(ToleranceTest::gradient);
  CHECK(of_cg.operator_norm == 1);
  CHECK(of_cg.tested_operator_norm() == 2);
  CHECK(of_cg.residual_norm == 8);
  CHECK(of_cg.final_residual_norm == 8);
  CHECK(of_cg.x_norm == 512);               // x̃ = 2^(b − A) x
  CHECK(of_cg.final_normal_norm == 0.125);  // of Aᴴb: 2^(A + b)
  CHECK(of_cg.reference == 8);
  CHECK(of_cg.relative_norm() == 1);
  CHECK(of_cgls.reference == 0.125);
  CHECK(of_cgls.relative_norm() == 1);
}
