// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/io/array_file.hpp"

namespace gridlops::program {

// Checks of files before anything is computed.

/// The number of rows that an operand must have, and their name in messages ("columns of A"). otherwise: what
/// to try if the operand fits the matrix's other dimension instead.
struct Fit {
  Index rows;
  const char* dimension;
  const char* otherwise;
};
/// Throws InputError if a file has another number of rows, or if the result has too many elements to count.
void check_operand(const std::string& matrix_path, const MatrixHeader& matrix, const std::string& path,
                   const MatrixHeader& header, Fit fit);

/// The type that holds the elements of all these files, and a line for each file whose elements are
/// converted.
struct CommonType {
  ScalarType type;
  std::string promotions;
};
CommonType common_type(const std::vector<std::pair<std::string, MatrixHeader>>& files);

/// The numbers of a file that is a vector of any type, which must be finite and, unless they may be, not
/// negative (collective).
/// one, many: their names, "a damping" and "dampings". Throws InputError on all ranks.
std::vector<double> read_vector(Communicator& world, const std::string& path, const char* one,
                                const char* many, bool may_be_negative = false);

/// A file that an option names. Only text may go to a device or a pipe, because all ranks write into an
/// array's file.
struct NamedFile {
  enum Kind { array, text };

  const char* option;
  std::string path;  ///< empty: not wanted
  Kind kind = array;
};
/// The manifest of a directory of checkpoints.
NamedFile manifest_in(const char* option, const std::string& directory);

/// Makes a folder and its parents if they are missing (collective). Throws OutputError on all ranks.
void make_directory(Communicator& world, const std::string& directory);

/// gridlops::claim_folder() for a folder in which outputs of this kind may have these names (collective).
/// Throws OutputError on all ranks.
void claim_folder(Communicator& world, const std::string& directory, const std::string& kind,
                  const std::set<std::string>& names);

/// Checks that no output, including the file of GRIDLOPS_TRACE, replaces another one or an input, by whatever
/// name or link, and that all outputs can be written (collective). All ranks throw what rank 0 finds:
/// UsageError or OutputError.
void check_outputs(Communicator& world, const std::vector<NamedFile>& inputs, std::vector<NamedFile> outputs);

}  // namespace gridlops::program
