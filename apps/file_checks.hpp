// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "gridlops/communicator.hpp"
#include "gridlops/npy.hpp"

namespace gridlops::program {

// What can be known of files before anything is computed.

/// Throws InputError if the elements of a file are of another type than the matrix's, or if it has not as
/// many rows as the dimension (in words: "columns of A") that it must fit, or if the result has too many
/// elements to be counted.
struct Fit {
  Index rows;
  const char* dimension;
};
void check_operand(const std::string& matrix_path, const NpyHeader& matrix, const std::string& path,
                   const NpyHeader& header, Fit fit);

/// A file that an option names. Only a text may go to a device or a pipe, because all ranks write into an
/// array's file.
struct NamedFile {
  enum Kind { array, text };

  const char* option;
  std::string path;  ///< empty: not asked for
  Kind kind = array;
};
/// The manifest of a directory of checkpoints.
NamedFile manifest_in(const char* option, const std::string& directory);

/// Makes a folder, and those above it, if it is not there (collective). Throws OutputError on all ranks.
void make_directory(Communicator& world, const std::string& directory);

/// Checks that no output, of which the file of GRIDLOPS_TRACE is one, replaces another one or an input, by
/// whatever name or link, and that all outputs can be written (collective). Throws on all ranks what rank 0
/// finds: UsageError, or OutputError.
void check_outputs(Communicator& world, const std::vector<NamedFile>& inputs, std::vector<NamedFile> outputs);

}  // namespace gridlops::program
