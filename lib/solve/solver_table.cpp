// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solver_table.hpp"

#include <algorithm>

#include "base/message.hpp"
#include "gridlops/error.hpp"
#include "solve/option_checks.hpp"

namespace gridlops {

namespace {

using enum AtRestart;
using Solvers = std::vector<Solver>;

const Solvers all{Solver::cgls, Solver::lsqr, Solver::lsmr, Solver::block_cgls,
                  Solver::cg,   Solver::ista, Solver::fista};
const Solvers damped{Solver::cgls, Solver::lsqr, Solver::lsmr, Solver::block_cgls, Solver::cg};
const Solvers swept{Solver::cgls, Solver::lsqr, Solver::lsmr, Solver::cg};
const Solvers least_squares{Solver::cgls, Solver::lsqr, Solver::lsmr, Solver::block_cgls};
const Solvers bidiagonal{Solver::lsqr, Solver::lsmr};
const Solvers sparse{Solver::ista, Solver::fista};

// Limits are honoured at a restart, since a column that goes on is tested by them. What the recurrence has in
// its vectors and scalars is fixed. tests/rules/solver_options.py reads these rows.
const std::vector<SolverOption> rows{
    {"iterations", all, honoured},
    {"tolerance", all, honoured},
    {"tolerances", all, honoured},
    {"atol", bidiagonal, honoured},
    {"btol", bidiagonal, honoured},
    {"conlim", bidiagonal, honoured},
    {"damp", damped, fixed},
    {"damp-relative", damped, fixed},
    {"damps", swept, fixed},
    {"choose", swept, honoured},
    {"noise", swept, honoured},
    {"save", swept, honoured},
    {"lambda", sparse, fixed},
    {"lambda-relative", sparse, fixed},
    {"threshold", sparse, fixed},
    {"step", sparse, fixed},
    {"backtracking", sparse, fixed},
    {"monotone", {Solver::fista}, fixed},
    {"initial", all, fixed},
    {"precondition", least_squares, fixed},
    {"one-pass", {Solver::cgls}, fixed},
    {"variances", {Solver::lsqr}, fixed},
    {"batch", all, fixed},
    {"column-stable", all, honoured},
    {"algorithm", all, honoured},
    {"panel", all, honoured},
    {"storage", all, honoured},
    {"guard", all, honoured},
    {"verify-matrix", all, honoured},
};

/// The solver whose method has this name. Methods without one are variants of another solver, or take none of
/// the options that only some solvers take.
bool is_named(Solver solver, std::string_view method) {
  return method == name_of(solver) || (solver == Solver::cgls && method == "one-pass-cgls");
}

}  // namespace

const char* name_of(AtRestart state) { return state == honoured ? "honoured" : "fixed"; }

bool SolverOption::is_taken_by(Solver solver) const {
  if (solver == Solver::pcg) solver = Solver::cg;
  return std::find(solvers.begin(), solvers.end(), solver) != solvers.end();
}

const std::vector<Solver>& named_solvers() { return all; }

const std::vector<SolverOption>& solver_options() { return rows; }

const SolverOption& solver_option(std::string_view name) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [name](const SolverOption& option) { return name == option.name; });
  require<UsageError>(found != rows.end(), "there is no option of solvers named '", name,
                      "'; solver_options() has their names");
  return *found;
}

std::string names_of(const std::vector<Solver>& solvers) {
  std::string text;
  for (const Solver solver : solvers) text += (text.empty() ? "" : ", ") + std::string(name_of(solver));
  return text;
}

void require_taken(const char* method, const SolveOptions& options) {
  const std::pair<const char*, bool> given[] = {{"atol", options.atol.has_value()},
                                                {"btol", options.btol.has_value()},
                                                {"conlim", options.condition_limit != 0},
                                                {"one-pass", options.one_pass}};
  for (const auto& [name, is_given] : given) {
    const SolverOption& option = solver_option(name);
    const bool taken = std::any_of(option.solvers.begin(), option.solvers.end(),
                                   [method](Solver solver) { return is_named(solver, method); });
    require<UsageError>(!is_given || taken, name, " is an option of ", names_of(option.solvers),
                        ", and means nothing to ", method, "; leave it out, or take another solver");
  }
}

}  // namespace gridlops
