// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>

#include "gridlops/io/npy.hpp"
#include "io/file.hpp"

namespace gridlops {

/// The length of the longest header that this library reads, in bytes from the start of the file.
inline constexpr Index npy_header_limit = 12 + 65536;

/// Reads the header from the first bytes of a file of file_size bytes: all of them, or at least
/// npy_header_limit. The format is that of numpy.lib.format: magic, version, length, and a Python dictionary.
/// Throws InputError, with `path`, if anything is wrong with it.
NpyArrayHeader parse_npy_array_header(std::span<const char> start_of_file, Index file_size,
                                      const std::string& path);
/// The same for one or two dimensions.
NpyHeader parse_npy_header(std::span<const char> start_of_file, Index file_size, const std::string& path);

/// The header of a file, in version 1 of the format. Does not use header.data_offset.
std::string npy_header_text(const NpyArrayHeader& header);
std::string npy_header_text(const NpyHeader& header);

/// write_npy() into a file with this access (collective over the grid of X).
template <Scalar T>
void write_npy(const std::string& path, const ConstDistMatrix<T>& X, int dimensions, Access access);

}  // namespace gridlops
