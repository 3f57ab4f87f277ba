// SPDX-License-Identifier: BSD-3-Clause
#include "solve/run/guard_checks.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/trace.hpp"
#include "solve/column_blocks.hpp"

namespace gridlops {

template <Scalar T>
void GuardChecks<T>::check_residuals(ColumnRun<T>& run, bool at_end) {
  const TraceRegion region("guard");
  ColumnScalars gap = batch_.solve.method.residual_gap(run);
  if (!at_end) gap = max(gap, batch_.solve.method.direction_gap(run));
  batch_.solve.log.count_guard_products(batch_.block.count());
  std::vector<char> fails(at(batch_.block.count()), 0);
  for (Index k = 0; k < batch_.block.count(); ++k) {
    const std::optional<StopReason>& reason = batch_.column(k).reason;
    if (at_end ? reason == StopReason::non_finite || batch_.verdicts.goes_back_to_best(batch_.column(k))
               : reason.has_value())
      continue;
    const double limit =
        batch_.solve.guard.largest_gap(batch_.column(k), batch_.solve.method.traits().follows_residual);
    if (gap[k] <= limit) {
      batch_.column(k).failed_checks = 0;
    } else {
      raise_alarm(k, std::isfinite(gap[k]) ? GuardAlarm::Kind::gap : GuardAlarm::Kind::non_finite, gap[k],
                  limit);
      fails[at(k)] = 1;
    }
  }
  if (at_end) copy_columns(fails, batch_.solve.state.best_x(), batch_.solve.state.x());
}

template <Scalar T>
void GuardChecks<T>::check_norms() {
  for (Index k = 0; k < batch_.block.count(); ++k) {
    const ColumnState& state = batch_.column(k);
    if (state.reason == StopReason::corrupted) continue;
    if (state.reason == StopReason::non_finite) {
      if (state.iterations > 0 && state.failed_checks == 0)
        raise_alarm(k, GuardAlarm::Kind::non_finite, std::numeric_limits<double>::quiet_NaN(), 0);
    } else if (const double limit = batch_.solve.guard.largest_norm(state);
               state.tested_operator_norm() > limit) {
      raise_alarm(k, GuardAlarm::Kind::norm, state.tested_operator_norm(), limit);
    }
  }
}

/// The column goes back to the best iterate when it leaves the products.
template <Scalar T>
void GuardChecks<T>::raise_alarm(Index k, GuardAlarm::Kind kind, double found, double limit) {
  ColumnState& state = batch_.column(k);
  const int power = kind == GuardAlarm::Kind::norm ? state.scale.A : state.scale.b;
  batch_.solve.log.raise_alarm({kind, batch_.iteration, batch_.right_hand_side(k), std::ldexp(found, -power),
                                std::ldexp(limit, -power)});
  state.reason = StopReason::corrupted;
  state.operator_norm = std::isfinite(norm_A()[k]) ? norm_A()[k] : 0;
  state.damped_operator_norm = 0;
  ++state.failed_checks;
}

template <Scalar T>
ColumnScalars GuardChecks<T>::norm_A() const {
  ColumnScalars norms(batch_.block.count());
  for (Index k = 0; k < norms.size(); ++k) norms[k] = batch_.solve.guard.norm_A(batch_.column(k));
  return norms;
}

#define GRIDLOPS_INSTANTIATE(T) template class GuardChecks<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
