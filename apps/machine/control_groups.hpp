// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <string>

#include "gridlops/base/types.hpp"

namespace gridlops::program {

/// The number behind a name at the beginning of a line of a file; negative if there is none.
Index number_behind(const std::string& name, const std::string& file);

constexpr Index no_limit = std::numeric_limits<Index>::max();

/// The memory that the control groups of this process, of version 1 or 2, and those around them leave;
/// no_limit if they set none. What files have in a cache goes when memory is short. root: the folder that has
/// the system's /proc and /sys.
Index left_by_control_groups(const std::string& root = "");

}  // namespace gridlops::program
