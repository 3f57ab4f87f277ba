// SPDX-License-Identifier: BSD-3-Clause
#include "solve/solve_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

#include "command_line/console.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops::program {

namespace {

using Json = nlohmann::ordered_json;

template <class Value>
Json json_of(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return name_of(value);
  } else {
    return value;
  }
}
Json json_of(const PerColumn& value) { return value.is_one() ? Json(value[0]) : Json(value.values()); }
template <class Value>
Json json_of(const std::optional<Value>& value) {
  return value ? json_of(*value) : Json();
}

/// A run before the solve, with `solved` null, or after it.
struct Run {
  explicit Run(const SolveTask& of, const Solved* after = nullptr)
      : task(of), solved(after), arguments(of.arguments), common(of.arguments.options) {}

  const SolveTask& task;
  const Solved* solved;
  const SolveArguments& arguments;
  const SolveOptions& common;

  /// Whether direct took the place of the solver of the task.
  bool is_by_other_solver() const {
    return solved != nullptr && solved->factored && solved->factored->by_factor;
  }
  double tolerance() const {
    return tolerance_of(common, task.shape.type).one_or(default_tolerance(task.shape.type));
  }
  /// atol or btol; if not given, the tolerance of all columns.
  Json tolerance_or(const std::optional<double>& own) const {
    return own || task.tolerances.empty() ? Json(own.value_or(tolerance())) : Json();
  }
  Json damp() const {
    if (task.sweep) return {};
    if (solved != nullptr) return json_of(solved->cost.damp);
    return arguments.damp_relative ? Json() : json_of(common.damp);
  }
  /// For a sweep that chooses.
  Json of_choice(const Json& value) const {
    return arguments.sweep.rule == DampingRule::none ? Json() : value;
  }
  /// A restart may omit the guess, since it continues from the saved x, unless the guess is part of the
  /// system.
  Json initial() const {
    if (task.X0) return "given";
    return arguments.precondition != "none" ? Json("none") : Json();
  }
};

/// The values of options that differ from their fields; null if there is no value to report.
const std::map<std::string_view, Json (*)(const Run&)> special_values{
    {"tolerance",
     [](const Run& run) { return run.task.tolerances.empty() ? Json(run.tolerance()) : Json(); }},
    {"tolerances",
     [](const Run& run) { return run.task.tolerances.empty() ? Json() : Json(run.arguments.tolerances); }},
    {"atol", [](const Run& run) { return run.tolerance_or(run.common.atol); }},
    {"btol", [](const Run& run) { return run.tolerance_or(run.common.btol); }},
    {"damp", [](const Run& run) { return run.damp(); }},
    {"damps",  // in a restart, the library compares them
     [](const Run& run) {
       return run.task.sweep && run.solved != nullptr ? Json(run.arguments.sweep.damps) : Json();
     }},
    {"choose", [](const Run& run) { return run.of_choice(name_of(run.arguments.sweep.rule)); }},
    {"save",
     [](const Run& run) {
       return run.task.sweep.chooses_each ? Json() : run.of_choice(run.arguments.sweep.save);
     }},
    {"lambda",
     [](const Run& run) { return run.arguments.lambda_relative ? Json() : json_of(run.common.lambda); }},
    {"step",  // in a restart, the library compares it
     [](const Run& run) { return run.solved != nullptr ? Json(run.solved->report.step) : Json(); }},
    {"sigma-min",
     [](const Run& run) {
       const std::string& way = run.arguments.sigma_min_way;
       return way.empty() ? json_of(run.arguments.sigma_min) : Json(way);
     }},
    {"one-pass",
     [](const Run& run) -> Json { return run.task.iteration().one_pass && !run.is_by_other_solver(); }},
    // A report has these values elsewhere.
    {"initial", [](const Run& run) { return run.solved == nullptr ? run.initial() : Json(); }},
    {"variances",
     [](const Run& run) {
       return run.solved == nullptr && !run.arguments.variances.empty() ? Json("given") : Json();
     }},
    {"weights",
     [](const Run& run) {
       return run.solved == nullptr && !run.arguments.weights.empty() ? Json("given") : Json();
     }},
    {"misfit",
     [](const Run& run) { return run.arguments.reweighs() ? Json(name_of(run.arguments.misfit)) : Json(); }},
    {"misfit-scale",
     [](const Run& run) {
       const std::optional<double>& scale = run.arguments.misfit_scale;
       return !run.arguments.reweighs() ? Json() : scale ? Json(*scale) : Json("mad");
     }},
    {"algorithm", [](const Run&) { return Json(); }},
    {"storage", [](const Run&) { return Json(); }},
};

Json value_in_report(const SolverOption& option, const Run& run) {
  if (const auto found = special_values.find(option.name); found != special_values.end())
    return found->second(run);
  Json value;
  for_each_option([&](const SolverOption& row, auto field) {
    if (row.title() == std::string_view(option.title())) value = json_of(run.common.*field);
  });
  for_each_program_option([&](const SolverOption& row, auto value_of) {
    if (row.name == std::string_view(option.name)) value = json_of(std::invoke(value_of, run.arguments));
  });
  return value;
}

/// The solver, and those of its options that a checkpoint fixes, with their names there. A space fixes none.
std::vector<std::pair<std::string, Json>> fixed_values(const SolveTask& task) {
  if (task.sweep.in_space) return {};
  const Run run(task);
  const Solver solver = task.arguments.solver;
  std::vector<std::pair<std::string, Json>> fixed{{"--solver", name_of(solver)}};
  for (const SolverOption& option : options_of_solve())
    if (option.name != nullptr && option.at_restart == AtRestart::fixed && option.is_taken_by(solver))
      fixed.emplace_back(std::string("--") + option.name, value_in_report(option, run));
  return fixed;
}

std::string text_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  return value.is_null() ? "none" : value.is_string() ? value.get<std::string>() : json_text(value);
}

}  // namespace

std::string change_text(const SolveTask& task, const SolvedOrFactored& solved) {
  return fmt::format("after {} iterations in {:.2g} s direct took the place of {}: {}", solved.iterations,
                     solved.seconds, name_of(task.arguments.solver),
                     solved.at_limit ? "a column had reached the limit of iterations"
                                     : "one more would exceed what a factor was to take");
}

Json used_options(const SolveTask& task, const Solved& solved) {
  const Run run(task, &solved);
  Json options;
  if (task.arguments.chooses_solver) {
    options["solver"] = "auto";
    options["why"] = task.why_solver;
    if (solved.factored && solved.factored->by_factor)
      options["changed"] = change_text(task, *solved.factored);
  }
  for (const SolverOption& option : options_of_solve()) {
    if (option.name == nullptr || !option.is_taken_by(task.arguments.solver)) continue;
    const Json value = value_in_report(option, run);
    std::string name = option.name;
    std::replace(name.begin(), name.end(), '-', '_');
    if (!value.is_null()) options[name] = value;
  }
  return options;
}

CheckpointFacts fixed_options(const SolveTask& task) {
  CheckpointFacts facts;
  for (const auto& [option, value] : fixed_values(task)) facts[option] = text_of(value);
  return facts;
}

bool continues_history(const SolveTask& task) {
  return task.saved.empty() || saved_fact(task.saved, history_fact) == "whole";
}

void require_same_options(const SolveTask& task) {
  std::string differences;
  for (const auto& [option, value] : fixed_values(task)) {
    const auto saved = task.saved.find(option);
    const bool is_left_out = value.is_null();
    if (is_left_out || saved == task.saved.end() || saved->second == text_of(value)) continue;
    differences += fmt::format("{}{} is {} here, and was {}", differences.empty() ? "" : "; ", option,
                               text_of(value), saved->second);
  }
  if (differences.empty()) return;
  throw InputError(fmt::format(
      "{} holds a checkpoint of a run with other options: {}. The iterations so far rest on the old values: "
      "restart with those, or begin anew without --restart",
      task.arguments.options.checkpoint.restart, differences));
}

}  // namespace gridlops::program
