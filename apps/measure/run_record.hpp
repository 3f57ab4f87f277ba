// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/io/array_file.hpp"

namespace gridlops::program {

// The facts of a run that a report lists besides its results.

/// A file that a run has read or written.
struct RunFile {
  std::string option, path;
  std::optional<MatrixHeader> header;  ///< if it is a matrix
};

/// Its name, size, shape and, on request, the XXH3 hash (64 bits) of all its bytes, of a directory that of
/// its manifest. Not collective. Throws OutputError if the file cannot be read.
nlohmann::ordered_json json_of(const RunFile& file, bool hashed);

/// The command line, variables GRIDLOPS_…, the date and the machine (collective over world; rank 0 has it).
nlohmann::ordered_json record_of_run(Communicator& world);

}  // namespace gridlops::program
