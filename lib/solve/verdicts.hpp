// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "base/numbers.hpp"
#include "gridlops/solver.hpp"
#include "solve/column_state.hpp"

namespace gridlops {

/// Its square is as far above the smallest normal number as 1 is above ε.
inline constexpr double smallest_safe_norm = 0x1p-485;

/// When a method is through with a column: functions of what is known about the column.
class StoppingTests {
 public:
  virtual ~StoppingTests() = default;

  virtual bool meets_tolerance(const ColumnState& column, double tolerance) const {
    return column.tested_norm <= tolerance * column.reference;
  }
  /// Whether norms of the start are so small that squares of them, or of what they are to fall to, may have
  /// left the range of double precision.
  virtual bool starts_too_small(const ColumnState& column) const {
    return column.reference < smallest_safe_norm || column.residual_norm < smallest_safe_norm;
  }
  /// Whether the column is as accurate as rounding lets this method get.
  virtual bool at_rounding_level(const ColumnState& column) const = 0;
  /// Whether what is tested falls fast enough that rounding must be the cause if for long it has not.
  virtual bool rounding_ends_descent() const { return true; }
  virtual bool beyond_condition_limit(const ColumnState&) const { return false; }
};

/// What becomes of the columns of a batch: the test after each iteration, and the verdict at the end.
class Verdicts {
 public:
  Verdicts(const StoppingTests& tests, const SolveOptions& options, double tolerance, Index columns)
      : tests_(tests), options_(options), tolerance_(tolerance), columns_(at(columns)) {}

  ColumnState& operator[](Index number) { return columns_[at(number)]; }
  const ColumnState& operator[](Index number) const { return columns_[at(number)]; }
  std::vector<ColumnState>& all() { return columns_; }
  const std::vector<ColumnState>& all() const { return columns_; }
  double tolerance() const { return tolerance_; }

  /// γ/δ, the step of conjugate gradients; 0, and a reason, for a column that has none.
  double step(ColumnState& column, double gamma, double delta, bool fits_type) const;
  /// After an iteration: a reason for a column that ends.
  void test(ColumnState& column) const;
  /// Whether a column that stagnated is to go back to the best iterate: at the rounding level the last one is
  /// as good as any, and where that is one of ‖r‖ an earlier one with less ‖s‖ may be far worse.
  bool goes_back_to_best(const ColumnState& column) const;
  /// The final verdict, now that what is tested is known from its definition. True if the column goes on: it
  /// claimed to have converged, has not, and has come closer since it was last restarted.
  bool verify(ColumnState& column, double tested, bool can_restart, bool stop_asked) const;
  /// Where a saved run goes on: more iterations, or fewer, may be allowed now.
  void renew_limit(ColumnState& column) const;

 private:
  const StoppingTests& tests_;
  const SolveOptions& options_;
  const double tolerance_;
  std::vector<ColumnState> columns_;
};

}  // namespace gridlops
