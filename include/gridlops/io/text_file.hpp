// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include "gridlops/base/export.hpp"

namespace gridlops {

/// Writes a text file that appears complete or not at all. The pieces that next_piece() returns, up to an
/// empty one, go to a temporary file beside it, which is synchronised and then takes the name. If writing
/// fails, nothing is left behind. A link is followed, also to where no file is yet. A file that is replaced
/// passes on its mode, and its owner and group where the user may set them; one that the user may not write
/// is left alone. One rank alone calls it. Throws OutputError.
///
/// What exists and is a device, a pipe or a socket, or where standard output or standard error of this
/// process goes, is written in place, piece by piece: "/dev/stdout", say.
GRIDLOPS_EXPORT void write_text_file(const std::string& path, const std::function<std::string()>& next_piece);

/// The file that writing to a path makes or replaces: the path itself, or where links lead, whether a file is
/// there or not. Throws OutputError if they lead in a circle. One rank alone calls it.
GRIDLOPS_EXPORT std::string written_file(const std::string& path);

/// Throws OutputError unless a regular file of this name can be made or replaced; it tries by making a file
/// beside it. One rank alone calls it.
GRIDLOPS_EXPORT void check_output_file(const std::string& path);

/// The same for write_text_file(), which can write to other things than regular files.
GRIDLOPS_EXPORT void check_text_file(const std::string& path);

}  // namespace gridlops
