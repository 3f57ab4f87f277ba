// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include "gridlops/non_finite.hpp"
#include "gridlops/solver.hpp"

namespace gridlops::program {

// What can be wrong with numbers, in words.

bool has_column(const SolveReport& report, StopReason reason);

/// "; A.npy holds nan at row 3, column 5, …"; empty if nothing was found.
std::string non_finite_text(const std::string& path, const std::optional<NonFiniteElement>& found);

/// Warns of what the guard found, in a few lines at most.
void warn_of_alarms(const SolveReport& report);

/// Throws Error, with exit status 1, on all ranks if the block of some rank is not the same as before
/// (collective over the grid). The layout is the matrix's.
void require_same_matrix(const std::string& path, const ProcessGrid& grid, const Layout& layout,
                         bool mine_is_same);

}  // namespace gridlops::program
