// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

namespace gridlops::program {

// A program is a CLI::App of its name, with one level of subcommands.

/// Adds what all subcommands have in common, after their definition.
void complete(CLI::App& app);

/// The help, or the version, if the arguments (without the program's name) ask for one of them.
std::optional<std::string> requested_text(const CLI::App& app, const std::vector<std::string>& arguments);

/// Fills in the options from the arguments and the environment. Throws UsageError unless the texts make sense
/// together, and one subcommand is among them.
void parse(CLI::App& app, const std::vector<std::string>& arguments);

/// The subcommand that was given, or null.
const CLI::App* subcommand_given(const CLI::App& app);

/// One warning for every variable GRIDLOPS_… that neither an option of the program nor the library reads.
/// Names that begin with one of `foreign` belong to other programs and are passed over.
std::vector<std::string> unknown_variables(const CLI::App& app, const std::vector<std::string>& foreign);

}  // namespace gridlops::program
