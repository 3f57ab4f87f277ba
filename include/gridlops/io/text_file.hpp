// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include "gridlops/base/export.hpp"

namespace gridlops {

/// Writes a text file that appears complete or not at all. next_piece() returns the pieces of the text, the
/// last one empty. They go to a temporary file beside the path, which is synchronised and then renamed. If
/// writing fails, nothing is left behind. Links are followed, even to a file that does not exist yet. A file
/// that replaces another keeps its mode, and its owner and group if the user may set them; a file that the
/// user may not write is left alone. Called by one rank alone. Throws OutputError.
///
/// Some targets are written in place, piece by piece: an existing device, pipe or socket, such as
/// "/dev/stdout", and wherever standard output or standard error of this process goes.
GRIDLOPS_EXPORT void write_text_file(const std::string& path, const std::function<std::string()>& next_piece);

/// The file that writing to a path makes or replaces: the path itself, or the end of its links, whether a
/// file is there or not. Throws OutputError if the links form a circle. Called by one rank alone.
GRIDLOPS_EXPORT std::string written_file(const std::string& path);

/// Throws OutputError unless a regular file of this name can be made or replaced. Tries by making a file
/// beside it. Called by one rank alone.
GRIDLOPS_EXPORT void check_output_file(const std::string& path);

/// Makes the same check for write_text_file(), which can also write to other targets than regular files.
GRIDLOPS_EXPORT void check_text_file(const std::string& path);

}  // namespace gridlops
