// SPDX-License-Identifier: BSD-3-Clause
#include "command_line/dependent_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "gridlops/base/error.hpp"
#include "gridlops/solve/solver_table.hpp"

namespace gridlops::program {

namespace {

/// Adds an option of the library's table whose field has this type.
void add(Options& options, const std::string& name, const SolverOption& row, Index& value) {
  options.whole(name.c_str(), value, row.placeholder, 0, row.help);
}
void add(Options& options, const std::string& name, const SolverOption& row, bool& value) {
  options.flag(name.c_str(), value, row.help);
}
void add(Options& options, const std::string& name, const SolverOption& row, Threshold& value) {
  options.choice(name.c_str(), value, names_of({Threshold::soft, Threshold::hard, Threshold::half}),
                 row.help);
}
template <class Number>
void add(Options& options, const std::string& name, const SolverOption& row, Number& value) {
  options.number(name.c_str(), value, row.placeholder, 0, row.help);
}

}  // namespace

void define_table_options(Options& options, const char* group, SolveOptions& values) {
  for_each_option([&](const SolverOption& row, auto field) {
    using Field = std::remove_cvref_t<decltype(values.*field)>;
    constexpr bool has_syntax =
        !std::is_same_v<Field, std::vector<double>> && !std::is_same_v<Field, Acceleration>;
    if constexpr (has_syntax) {
      if (row.name == nullptr || std::string_view(row.group) != group) return;
      const std::string name = std::string("--") + row.name;
      if (options.find(name) == nullptr) add(options, name, row, values.*field);
    }
  });
}

CLI::Option* DependentOptions::only(const std::vector<std::string>& values, CLI::Option* option) {
  option->description(fmt::format("{}: {}", fmt::join(values, ", "), option->get_description()));
  entries_.push_back({option, values});
  return option;
}

void DependentOptions::follow_solver_table(Options& options) {
  for (const SolverOption& row : solver_options()) {
    if (row.name == nullptr || row.feature == Feature::none) continue;
    CLI::Option* const option = options.find(std::string("--") + row.name);
    if (option == nullptr) continue;
    std::vector<std::string> names;
    for (const Solver solver : named_solvers())
      if (row.is_taken_by(solver)) names.emplace_back(name_of(solver));
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

void require_compatible(const IterationRequest& asked) {
  const bool one_pass = asked.one_pass.value_or(false), on_disk = asked.place == MatrixPlace::disk;
  const bool block = asked.solver == Solver::block_cgls;
  if ((one_pass || on_disk || block) && asked.algorithm != Algorithm::automatic &&
      asked.algorithm != Algorithm::stationary_a) {
    throw UsageError(fmt::format("{} works with --algorithm stationary-a only, not with {}",
                                 one_pass  ? "--one-pass"
                                 : on_disk ? "--storage disk"
                                           : "--solver block-cgls",
                                 name_of(asked.algorithm)));
  }
  if (one_pass && asked.on_host && asked.storage == Storage::columns) {
    throw UsageError(
        "--one-pass on and --storage columns exclude each other: one pass reads A packed; leave --storage "
        "out");
  }
}

std::string shape_refusal(Solver solver, Index rows, Index cols) {
  if (row_of(solver).problem != ProblemKind::hermitian || rows == cols) return {};
  return fmt::format("{} x {}, but --solver {} needs a square matrix; cgls takes any", rows, cols,
                     name_of(solver));
}

}  // namespace gridlops::program
