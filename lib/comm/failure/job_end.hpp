// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gridlops/base/error.hpp"

namespace gridlops {

bool mpi_is_running();

/// Sets the rank that this process's lines name: the rank in its session, or else in MPI_COMM_WORLD.
void name_rank(std::optional<int> rank);
/// "gridlops: rank 1 on HOST: TEXT" and the end of the line.
std::string line_of_rank(const std::string& text);
/// Writes to stderr, in a single call if the system allows it, so that the ranks' lines stay whole. Signal
/// handlers may call it.
void write_line(std::string_view line) noexcept;
/// Writes a line of this rank.
void report(const std::string& text);
/// Writes "gridlops: warning: TEXT", of what all ranks know. Call it on one.
void warn(const std::string& text);

/// Ends all processes of the job with this status. Any one of them may call it.
[[noreturn]] void end_job(ExitStatus status) noexcept;

}  // namespace gridlops
