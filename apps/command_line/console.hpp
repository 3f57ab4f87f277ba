// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gridlops/base/types.hpp"

namespace gridlops::program {

/// Writes to standard output at once. output_is_lost() tells of failures.
void print(std::string_view text);
/// Whether any printed text was lost, to a full disk or to a reader that has gone.
bool output_is_lost();

/// "gridlops: warning: …" and "gridlops: error: …" on standard error.
void warn(std::string_view text);
void complain(std::string_view text);
/// Warns of the columns, or shots, whose weights are all 0, if there are any. solution: what is 0 there.
void warn_of_no_data(const char* column, const std::vector<Index>& numbers, const char* solution);

/// "1.5 MiB", "3 min 20 s".
std::string bytes_text(Index bytes);
std::string duration_text(double seconds);

/// The versions of this program, of MPI and of BLAS, one per line. MPI need not be running.
std::string version_text();
/// "Open MPI v4.1.4": the start of the MPI library's own description. MPI need not be running.
std::string mpi_library_text();

/// JSON as text, on lines indented by this many spaces, or on one line. Bytes that are not UTF-8, which file
/// names may have, become U+FFFD: a report must not fail because of a name.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gridlops::program
