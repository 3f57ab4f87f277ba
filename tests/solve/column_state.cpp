// SPDX-License-Identifier: BSD-3-Clause
#include <limits>

#include "solve/column_state.hpp"
#include "support/catch.hpp"

using namespace gridlops;

namespace {

/// Takes one more iteration, with this norm; true if x is to be kept.
bool advance(ColumnState& state, double norm) {
  ++state.iterations;
  state.tested_norm = norm;
  state.note_descent();
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
  state.begin_descent();
  CHECK(state.snapshot_norm == 0.125);
  CHECK(state.lowest_at == state.iterations);
}

TEST_CASE(
    "A norm has stopped falling after 500 iterations without a tenth less, or after as many as it fell") {
  ColumnState state;
  state.tested_norm = 1;
  state.begin_descent();
  for (int k = 0; k < 500; ++k) advance(state, 0.95);
  CHECK_FALSE(state.stopped_falling());
  advance(state, 0.91);
  CHECK(state.stopped_falling());
  advance(state, 0.89);
  CHECK_FALSE(state.stopped_falling());

  SECTION("A tenth less at any time counts, slow as it may be") {
    double norm = 0.89;
    for (int k = 0; k < 20000; ++k) {
      advance(state, norm);
      norm *= 0.9997;
      CHECK_FALSE(state.stopped_falling());
    }
  }
  SECTION("What fell for 2000 iterations has 2000 more") {
    while (state.iterations < 2000) advance(state, 0.89);
    advance(state, 0.5);
    const Index fell = state.iterations;
    while (state.iterations < 2 * fell) advance(state, 0.5);
    CHECK_FALSE(state.stopped_falling());
    advance(state, 0.5);
    CHECK(state.stopped_falling());
  }
}
