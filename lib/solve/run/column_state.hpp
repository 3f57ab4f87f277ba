// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "gridlops/solve/solver.hpp"
#include "solve/checkpoint/state_archive.hpp"
#include "solve/run/verdict.hpp"

namespace gridlops {

/// The powers of two that a column's problem is multiplied by: A by 2^A and b by 2^b, so that the norms of
/// both can be squared. Then x is multiplied by 2^(b − A).
struct ColumnScale {
  int A = 0;     ///< even, and the same for all columns
  int b = 0;     ///< of this column
  int damp = 0;  ///< D's power: that of A in least squares, half of it where D² is added to A

  int x() const { return b - A; }
  bool is_one() const { return A == 0 && b == 0; }
};

/// What is known about one right-hand side while it is solved for. Norms are those of the scaled problem.
struct ColumnState : ColumnNorms {
  double tolerance = 0;              ///< given, so that it is not saved, like the damping
  std::optional<StopReason> reason;  ///< empty while the column takes part
  Index iterations = 0;
  ColumnScale scale;
  double first_residual_norm = 0;
  double largest_x_norm = 0;  ///< since the start, or since the column began anew
  double objective = 0;       ///< what is minimised, for methods with a penalty
  // Where x was last kept as the best so far: tested_norm, and the norm that least squares minimise.
  double snapshot_norm = 0, snapshot_residual = 0;
  double verified_norm = 0;  ///< tested_norm from its definition where the column last began anew; 0: nowhere
  bool is_stuck = false;     ///< beginning anew from x has not brought it closer
  Index failed_checks = 0;   ///< of the guard, one after the other

  // These are computed from their definitions when all columns have ended.
  double final_residual_norm = 0;  ///< ‖b − Ax‖
  double final_normal_norm = 0;    ///< ‖Aᴴ(b−Ax) − D²x‖

  /// tested_norm over its reference, and 0 if that is 0.
  double relative_norm() const;
  /// The same column with the norms of the problem as it was given, for a method with this test. A norm that
  /// is out of the range of double precision is 0 or infinite.
  ColumnState in_given_units(ToleranceTest test) const;

  void visit(StateArchive& archive);

  /// Takes x for the best so far: at the start, and after the method began anew.
  void begin_descent();
  /// Whether x is so much better than what was kept that it should be kept. Takes note of that.
  bool is_to_be_kept();
};

}  // namespace gridlops
