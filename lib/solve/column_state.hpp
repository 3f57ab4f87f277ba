// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "gridlops/solver.hpp"
#include "solve/state_archive.hpp"

namespace gridlops {

/// What is known about one right-hand side while it is solved for.
struct ColumnState {
  double damp = 0, tolerance = 0;    ///< given, so that they are not saved
  std::optional<StopReason> reason;  ///< empty while the column takes part
  Index iterations = 0;
  double tested_norm = 0;    ///< of what the tolerance is for: the gradient, for CG the residual
  double residual_norm = 0;  ///< as the recurrence has it
  double first_residual_norm = 0;
  double x_norm = 0;
  double largest_x_norm = 0;  ///< since the start, or since the column began anew
  double reference = 0;       ///< what the tolerance is relative to
  double data_norm = 0;       ///< ‖b‖, for methods whose tests need it
  double objective = 0;       ///< what is minimised, for methods with a penalty
  double condition = 0;       ///< of A as far as it is known; 0 for methods that do not estimate it
  double operator_norm = 0;   ///< ‖A‖ as far as it is known, from below
  double snapshot_norm = 0;   ///< tested_norm where x was last kept as the best so far
  double lowest_norm = 0;     ///< tested_norm where it last fell by a tenth below all before
  Index lowest_at = 0;        ///< the iteration of that
  double verified_norm = 0;   ///< tested_norm from its definition at the last restart; 0: there was none
  Index failed_checks = 0;    ///< of the guard, one after the other

  // These are computed from their definitions when all columns have ended.
  double final_residual_norm = 0;  ///< ‖b − Ax‖
  double final_normal_norm = 0;    ///< ‖Aᴴ(b−Ax) − D²x‖

  /// tested_norm over its reference, and 0 if that is 0.
  double relative_norm() const;
  bool finite() const;

  void visit(StateArchive& archive);

  /// Forgets how tested_norm fell: at the start, and after a restart.
  void begin_descent();
  /// Takes note of new norms.
  void note_descent();
  /// Whether x is so much better than what was kept that it should be kept, and takes note of that.
  bool is_to_be_kept();
  /// Whether tested_norm has not fallen for so long that rounding, and not the spectrum, must be the cause:
  /// for more than 500 iterations, and for longer than it fell.
  bool stopped_falling() const { return iterations - lowest_at > (lowest_at > 500 ? lowest_at : Index{500}); }
};

}  // namespace gridlops
