// SPDX-License-Identifier: BSD-3-Clause
#include "solver_choice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gridlops/error.hpp"
#include "text_checks.hpp"

namespace gridlops::program {

namespace {

using Words = std::vector<std::string>;

/// An option that not every solver has a use for.
struct Belonging {
  const char* option;
  Words solvers;
};

const std::vector<Belonging>& belongings() {
  static const Words damping{"cgls", "lsqr", "lsmr", "block-cgls", "cg"}, bidiagonalising{"lsqr", "lsmr"},
      sparse{"ista", "fista"};
  static const std::vector<Belonging> table{
      {"--damp", damping},
      {"--damp-relative", damping},
      {"--atol", bidiagonalising},
      {"--btol", bidiagonalising},
      {"--conlim", bidiagonalising},
      {"--lambda", sparse},
      {"--step", sparse},
      {"--threshold", sparse},
      {"--backtracking", sparse},
      {"--monotone", {"fista"}},
      {"--variances", {"lsqr"}},
      {"--precondition", {"cgls", "lsqr", "lsmr", "block-cgls"}},
      {"--one-pass", {"cgls"}},
  };
  return table;
}

bool contains(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool given(const CLI::App& solve, const char* option, const char* value) {
  const CLI::Option* const found = solve.get_option(option);
  return found->count() > 0 && found->results().back() == value;
}

}  // namespace

const Words& solver_names() {
  static const Words names{"cgls", "lsqr", "lsmr", "block-cgls", "cg", "ista", "fista"};
  return names;
}

void check_solver_options(const CLI::App& solve, const std::string& solver) {
  for (const auto& [option, solvers] : belongings()) {
    if (solve.get_option(option)->count() > 0 && !contains(solvers, solver)) {
      throw UsageError(fmt::format("{} is an option of --solver {}, and means nothing to {}", option,
                                   joined(solvers, ", "), solver));
    }
  }
  if (solve.get_option("--variances")->count() > 0 && solve.get_option("--precondition")->count() > 0) {
    throw UsageError(
        "--variances and --precondition exclude each other: with scaled columns the estimates are "
        "those of the scaled X");
  }
  if (given(solve, "--one-pass", "on") && given(solve, "--precondition", "column-norms")) {
    throw UsageError(
        "--one-pass on and --precondition column-norms exclude each other: with scaled columns the operator "
        "is a "
        "product, which has no normal product of its own");
  }
  if ((solver == "ista" || solver == "fista") && solve.get_option("--lambda")->count() == 0) {
    throw UsageError(
        fmt::format("--solver {} needs --lambda, the weight of the penalty that makes X sparse; "
                    "0 would be least squares, which lsqr solves in far fewer iterations",
                    solver));
  }
}

}  // namespace gridlops::program
