// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>
#include <vector>

namespace gridlops::program {

/// What --solver takes.
const std::vector<std::string>& solver_names();

/// Throws UsageError if solve was given an option that this solver has no use for, or not one that it needs.
void check_solver_options(const CLI::App& solve, const std::string& solver);

}  // namespace gridlops::program
