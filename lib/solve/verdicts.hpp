// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "base/numbers.hpp"
#include "gridlops/solver.hpp"
#include "solve/column_state.hpp"

namespace gridlops {

/// The square of this is as far above the smallest normal number as 1 is above ε.
inline constexpr double smallest_safe_norm = 0x1p-485;

/// The tests that say when a method ends with a column, from what is known about the column.
class StoppingTests {
 public:
  virtual ~StoppingTests() = default;

  virtual bool meets_tolerance(const ColumnState& column) const {
    return column.tested_norm <= column.tolerance * column.reference;
  }
  /// Whether norms at the start are so small that their squares, or those of the norms to come, may be out of
  /// the range of double precision.
  virtual bool starts_too_small(const ColumnState& column) const {
    return column.reference < smallest_safe_norm || column.residual_norm < smallest_safe_norm;
  }
  /// Whether the column is as accurate as rounding lets this method get.
  virtual bool at_rounding_level(const ColumnState& column) const = 0;
  /// Whether the tested norm normally falls so fast that rounding must be the cause if it does not for long.
  virtual bool rounding_ends_descent() const { return true; }
  virtual bool beyond_condition_limit(const ColumnState&) const { return false; }
};

/// Decides about the columns of a batch, by tests after each iteration and by a verdict at the end.
class Verdicts {
 public:
  /// tolerance: of columns that have none of their own. numbers: of the columns in B.
  Verdicts(const StoppingTests& tests, const SolveOptions& options, double tolerance,
           const std::vector<Index>& numbers);

  ColumnState& operator[](Index number) { return columns_[at(number)]; }
  const ColumnState& operator[](Index number) const { return columns_[at(number)]; }
  std::vector<ColumnState>& all() { return columns_; }
  const std::vector<ColumnState>& all() const { return columns_; }

  /// Returns γ/δ, the step of conjugate gradients; 0 for a column that has none, which gets a reason.
  double step(ColumnState& column, double gamma, double delta, bool fits_type) const;
  /// Gives a column that ends after this iteration a reason.
  void test(ColumnState& column) const;
  /// Whether a column goes back to the best iterate: if it is corrupted, or stagnated. At the rounding level
  /// it does not: the last iterate is as good as any, and if the level is one of ‖r‖, an earlier iterate with
  /// a smaller gradient may be far worse.
  bool goes_back_to_best(const ColumnState& column) const;
  /// Gives the final verdict, now that the tested norm is known from its definition. True if the column goes
  /// on: it claimed to have converged, has not, and has come closer since it was last restarted; or the guard
  /// has found it corrupted, for the first time in a row.
  bool verify(ColumnState& column, double tested, bool can_restart, bool stop_asked) const;
  /// Applies the limit of iterations where a saved run goes on; it may be another one now.
  void renew_limit(ColumnState& column) const;

 private:
  const StoppingTests& tests_;
  const SolveOptions& options_;
  std::vector<ColumnState> columns_;
};

}  // namespace gridlops
