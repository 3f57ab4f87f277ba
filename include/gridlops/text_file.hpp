// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include "gridlops/export.hpp"

namespace gridlops {

/// Writes a text file that appears complete or not at all. The pieces that next_piece() returns, up to an
/// empty one, go to a temporary file beside it, which is synchronised and then takes the name. If writing
/// fails, nothing is left behind. A link is followed. One rank alone calls it. Throws OutputError.
GRIDLOPS_EXPORT void write_text_file(const std::string& path, const std::function<std::string()>& next_piece);

/// Throws OutputError unless a file of this name can be made or replaced; it tries by making a file beside
/// it. One rank alone calls it.
GRIDLOPS_EXPORT void check_output_file(const std::string& path);

}  // namespace gridlops
