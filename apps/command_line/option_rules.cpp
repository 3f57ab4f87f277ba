// SPDX-License-Identifier: BSD-3-Clause
#include "command_line/option_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gridlops/base/error.hpp"
#include "gridlops/solve/solver_table.hpp"

namespace gridlops::program {

Rule exclude(const Asked& one, const Asked& other, const std::string& why) {
  return {one.is_so && other.is_so, fmt::format("{} and {} exclude each other{}{}", one.option, other.option,
                                                why.empty() ? "" : ": ", why)};
}

void check_rules(const std::vector<Rule>& rules) {
  for (const Rule& rule : rules)
    if (rule.is_broken) throw UsageError(rule.text);
}

void DependentOptions::only(const std::vector<std::string>& values, CLI::Option* option) {
  option->description(fmt::format("{}: {}", fmt::join(values, ", "), option->get_description()));
  entries_.emplace_back(option, values);
}

void DependentOptions::follow_table(Options& options, const std::vector<SolverOption>& table) {
  for (const SolverOption& row : table) {
    if (row.name == nullptr || row.feature == Feature::none) continue;
    CLI::Option* const option = options.find(std::string("--") + row.name);
    if (option == nullptr) continue;
    std::vector<std::string> names;
    for (const Solver solver : named_solvers())
      if (row.is_taken_by(solver)) names.emplace_back(name_of(solver));
    only(names, option);
  }
}

std::vector<Rule> DependentOptions::rules(const std::string& value) const {
  std::vector<Rule> rules;
  for (const auto& [option, values] : entries_)
    rules.push_back({option->count() > 0 && std::find(values.begin(), values.end(), value) == values.end(),
                     fmt::format("{} is an option of {} {}, and means nothing to {}", option->get_name(),
                                 decides_, fmt::join(values, ", "), value)});
  return rules;
}

std::vector<Rule> rules_of(const IterationRequest& asked) {
  const bool is_other = !may_be(asked.algorithm, Algorithm::stationary_a);
  const bool one_pass = asked.one_pass.value_or(false);
  // Of a storage that was asked for, or else of one that has one pass.
  const StorageRow& storage = row_of(asked.storage.value_or(Storage::packed));
  const auto stationary = [&](const Asked& what) {
    return Rule{what.is_so && is_other,
                fmt::format("{} works with --algorithm stationary-a only, not with {}", what.option,
                            name_of(asked.algorithm))};
  };
  return {stationary({"--storage disk", asked.place == MatrixPlace::disk}),
          stationary({"--one-pass", one_pass}),
          stationary({fmt::format("--solver {}", name_of(asked.solver)),
                      row_of(asked.solver).has(Feature::shared_space)}),
          exclude({"--one-pass on", one_pass},
                  {fmt::format("--storage {}", storage.name), asked.on_host && !storage.reads_once},
                  "one pass reads A packed; leave --storage out")};
}

std::string shape_refusal(Solver solver, Index rows, Index cols) {
  if (row_of(solver).problem != ProblemKind::hermitian || rows == cols) return {};
  return fmt::format("{} x {}, but --solver {} needs a square matrix; cgls takes any", rows, cols,
                     name_of(solver));
}

}  // namespace gridlops::program
