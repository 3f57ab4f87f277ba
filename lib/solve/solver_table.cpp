// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/solver_table.hpp"

#include <algorithm>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/solve/solve_options.hpp"

namespace gridlops {

namespace {

std::vector<SolverOption> all_options() {
  std::vector<SolverOption> options;
  for_each_option([&options](const SolverOption& option, auto) { options.push_back(option); });
  return options;
}

}  // namespace

const char* formula_of(ToleranceTest test) {
  switch (test) {
    case ToleranceTest::gradient:
      return "|A^H (b - A x) - D^2 x| <= T |A^H b|";
    case ToleranceTest::residual:
      return "|b - A x - D^2 x| <= T |b|";
    case ToleranceTest::backward_error:
      return "|r| <= T (|A| |x| + |b|) or |A^H r| <= T |A| |r|";
    case ToleranceTest::projected_gradient:
      return "|what bounds leave of A^H (b - A x) - D^2 x| <= T |A^H b|";
    case ToleranceTest::own:
      break;
  }
  return "a step moves x by at most T |x|";
}

const char* name_of(AtRestart state) { return state == AtRestart::honoured ? "honoured" : "fixed"; }

const char* name_of(Threshold threshold) {
  switch (threshold) {
    case Threshold::soft:
      return "soft";
    case Threshold::hard:
      return "hard";
    case Threshold::half:
      break;
  }
  return "half";
}

const char* name_of(Acceleration acceleration) {
  switch (acceleration) {
    case Acceleration::none:
      return "none";
    case Acceleration::fista:
      return "fista";
    case Acceleration::vandenberghe:
      break;
  }
  return "vandenberghe";
}

std::vector<Solver> solvers_with(Feature features) {
  constexpr Feature operands = Feature::preconditioner | Feature::proximal_operator;
  const bool names_operand = (static_cast<unsigned>(features) & static_cast<unsigned>(operands)) != 0;
  std::vector<Solver> found;
  for (const SolverRow& row : solver_rows)
    if (row.has(features) && (names_operand || !row.needs_operand())) found.push_back(row.solver);
  return found;
}

Solver parse_solver(std::string_view name) {
  std::string names;
  for (const SolverRow& row : solver_rows) {
    if (name == row.name) return row.solver;
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  throw UsageError(message("there is no solver '", name, "'; take one of ", names));
}

std::string names_of(const std::vector<Solver>& solvers) {
  std::string text;
  for (const Solver solver : solvers) text += (text.empty() ? "" : ", ") + std::string(name_of(solver));
  return text;
}

const std::vector<SolverOption>& solver_options() {
  static const std::vector<SolverOption> options = all_options();
  return options;
}

const SolverOption& solver_option(std::string_view name) {
  const std::vector<SolverOption>& options = solver_options();
  const auto found = std::find_if(options.begin(), options.end(), [name](const SolverOption& option) {
    return option.name != nullptr && name == option.name;
  });
  require<UsageError>(found != options.end(), "there is no option of solvers named '", name,
                      "'; solver_options() has their names");
  return *found;
}

double default_tolerance(ScalarType type) {
  return type == ScalarType::f32 || type == ScalarType::c64 ? 1e-4 : 1e-8;
}

}  // namespace gridlops
