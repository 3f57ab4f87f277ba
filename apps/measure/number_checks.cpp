// SPDX-License-Identifier: BSD-3-Clause
#include "measure/number_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "command_line/console.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops::program {

bool has_column(const SolveReport& report, StopReason reason) {
  return std::any_of(report.columns.begin(), report.columns.end(),
                     [reason](const ColumnReport& column) { return column.reason == reason; });
}

void warn_of_alarms(const SolveReport& report) {
  constexpr std::size_t most = 5;
  for (std::size_t k = 0; k < std::min(most, report.alarms.size()); ++k) {
    const GuardAlarm& alarm = report.alarms[k];
    std::string what;
    if (alarm.kind == GuardAlarm::Kind::gap) {
      what =
          fmt::format("B - A X and the residual of the recurrence are {:.3g} apart; rounding explains {:.3g}",
                      alarm.found, alarm.limit);
    } else if (alarm.kind == GuardAlarm::Kind::norm) {
      what =
          fmt::format("the recurrence met |A| >= {:.3g}, but |A| is below {:.3g}", alarm.found, alarm.limit);
    } else {
      what = "NaN or infinity turned up in the iterations";
    }
    warn(fmt::format(
        "the guard found right-hand side {} wrong after iteration {}: {}; X went back to the last "
        "iterate that was checked",
        alarm.column, alarm.iteration, what));
  }
  if (report.alarms.size() > most)
    warn(fmt::format("the guard raised {} more alarms; --report lists them", report.alarms.size() - most));
}

void require_same_matrix(const std::string& path, const ProcessGrid& grid, const Layout& layout,
                         bool mine_is_same) {
  const std::vector<Index> mine{mine_is_same ? 0 : 1};
  std::vector<Index> changed(static_cast<std::size_t>(grid.comm().size()));
  grid.comm().all_gather(mine, changed);
  std::string where;
  for (int rank = 0; rank < grid.comm().size(); ++rank) {
    if (changed[static_cast<std::size_t>(rank)] == 0) continue;
    const int row = rank / grid.cols(), col = rank % grid.cols();
    const Range rows = layout.row_range(grid, row, col), cols = layout.col_range(grid, row, col);
    where += fmt::format("{}that of rank {}, rows {} to {}, columns {} to {}", where.empty() ? "" : "; ",
                         rank, rows.begin, rows.end() - 1, cols.begin, cols.end() - 1);
  }
  if (where.empty()) return;
  throw Error(
      ExitStatus::check_failed,
      fmt::format("{} has changed in memory during the solve, in these blocks: {}. What was found may "
                  "solve another problem, so it was not written; run again, and test that memory",
                  path, where));
}

}  // namespace gridlops::program
