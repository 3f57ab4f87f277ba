// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>

#include "gridlops/npy.hpp"

namespace gridlops {

/// No header that this library reads is longer, in bytes from the start of the file.
inline constexpr Index npy_header_limit = 12 + 65536;

/// The header in the first bytes of a file of file_size bytes: all of them, or at least npy_header_limit.
/// `path` is for the message of the InputError that is thrown if anything is wrong with it. The format is
/// that of numpy.lib.format: magic, version, length, and a Python dictionary.
NpyHeader parse_npy_header(std::span<const char> start_of_file, Index file_size, const std::string& path);

/// The bytes of a file before its first element, of version 1; header.data_offset is not used.
std::string npy_header_text(const NpyHeader& header);

}  // namespace gridlops
