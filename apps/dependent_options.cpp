// SPDX-License-Identifier: BSD-3-Clause
#include "dependent_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gridlops/error.hpp"
#include "gridlops/solver_table.hpp"

namespace gridlops::program {

CLI::Option* DependentOptions::only(const std::vector<std::string>& values, CLI::Option* option) {
  option->description(fmt::format("{}: {}", fmt::join(values, ", "), option->get_description()));
  entries_.push_back({option, values});
  return option;
}

void DependentOptions::follow_solver_table(Options& options) {
  for (const SolverOption& row : solver_options()) {
    CLI::Option* const option = options.find(std::string("--") + row.name);
    if (option == nullptr || row.solvers == named_solvers()) continue;
    std::vector<std::string> names;
    for (const Solver solver : row.solvers) names.emplace_back(name_of(solver));
    only(names, option);
  }
}

void DependentOptions::check(const std::string& value) const {
  for (const auto& [option, values] : entries_) {
    if (option->count() == 0 || std::find(values.begin(), values.end(), value) != values.end()) continue;
    throw UsageError(fmt::format("{} is an option of {} {}, and means nothing to {}", option->get_name(),
                                 decides_, fmt::join(values, ", "), value));
  }
}

}  // namespace gridlops::program
