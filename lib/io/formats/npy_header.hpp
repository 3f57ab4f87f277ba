// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>

#include "gridlops/io/array_file.hpp"
#include "io/files/file.hpp"

namespace gridlops {

/// The length of the longest header that this library reads, in bytes from the start of the file.
inline constexpr Index npy_header_limit = 12 + 65536;

/// Reads the header from the first bytes of a file of file_size bytes: all of them, or at least
/// npy_header_limit. The format is that of numpy.lib.format: magic, version, length, and a Python dictionary.
/// Throws InputError, with `path`, if anything is wrong with it.
ArrayHeader parse_npy_array_header(std::span<const char> start_of_file, Index file_size,
                                   const std::string& path);
/// Parses the header of a matrix, of one or two dimensions.
MatrixHeader parse_npy_header(std::span<const char> start_of_file, Index file_size, const std::string& path);

/// The header of a file, in version 1 of the format. Does not use header.data_offset.
std::string npy_header_text(const ArrayHeader& header);
std::string npy_header_text(const MatrixHeader& header);

}  // namespace gridlops
