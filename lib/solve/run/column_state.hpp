// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "gridlops/solve/solver.hpp"
#include "gridlops/solve/weights.hpp"
#include "solve/checkpoint/state_archive.hpp"
#include "solve/run/verdict.hpp"

namespace gridlops {

/// The powers of two by which a column's problem is multiplied: A by 2^A and b by 2^b, so that the norms of
/// both can be squared. x is then multiplied by 2^(b − A).
struct ColumnScale {
  int A = 0;     ///< even, and the same for all columns
  int b = 0;     ///< for this column
  int damp = 0;  ///< D's power: that of A in least squares, half of it if D² is added to A

  int x() const { return b - A; }
  bool is_one() const { return A == 0 && b == 0; }
};

/// The state of one right-hand side while it is being solved. Norms refer to the scaled problem.
struct ColumnState : ColumnNorms {
  double tolerance = 0;  ///< given, so it is not saved; nor are the damping and the weights
  WeightRange weights;
  std::optional<StopReason> reason;  ///< empty while the column takes part
  Index iterations = 0;
  ColumnScale scale;
  double first_residual_norm = 0;
  double largest_x_norm = 0;  ///< since the start, or since the column restarted
  double objective = 0;       ///< the objective, for methods with a penalty
  // The tested_norm, and the norm that least squares minimise, when x was last kept as the best so far.
  double snapshot_norm = 0, snapshot_residual = 0;
  double verified_norm = 0;    ///< tested_norm from its definition when the column last restarted; 0: never
  bool is_stuck = false;       ///< a restart from x has not brought it closer
  bool has_quadrature = true;  ///< false where rounding has made the quadrature meaningless
  Index failed_checks = 0;     ///< consecutive failures found by the guard

  // Computed from their definitions once all columns have ended.
  double final_residual_norm = 0;  ///< ‖b − Ax‖
  double final_normal_norm = 0;    ///< ‖Aᴴ(b−Ax) − D²x‖

  /// tested_norm divided by its reference, or 0 if the reference is 0.
  double relative_norm() const;
  /// Returns this column with the norms of the original problem, for a method with this test. Norms outside
  /// the range of double precision are 0 or infinite.
  ColumnState in_given_units(ToleranceTest test) const;

  void visit(StateArchive& archive);

  /// Leaves the quadrature out: x is not that of the recurrence. begins_anew: a recurrence starts from it.
  void forget_quadrature(bool begins_anew = false);
  /// Takes x as the best so far: at the start, and after the method has restarted.
  void begin_descent();
  /// Whether x is so much better than the kept iterate that it should be kept. Records this decision.
  bool is_to_be_kept();
};

}  // namespace gridlops
