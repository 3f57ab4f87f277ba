// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gridlops/export.hpp"
#include "gridlops/solver.hpp"

namespace gridlops {

/// What a restart does with an option that has another value than in the run that wrote the checkpoint.
enum class AtRestart {
  honoured,  ///< the new value counts from there on
  fixed      ///< the recurrence rests on the old value, so another one is refused
};
/// "honoured" or "fixed".
GRIDLOPS_EXPORT const char* name_of(AtRestart state);

/// An option, as `gridlops solve` names it, and what solvers and restarts do with it. Solvers that do not
/// take it refuse it.
struct SolverOption {
  const char* name;             ///< without the dashes
  std::vector<Solver> solvers;  ///< that take it
  AtRestart at_restart = AtRestart::honoured;

  GRIDLOPS_EXPORT bool is_taken_by(Solver solver) const;
};

/// Returns the solvers that are called by their names: all but pcg, which is cg() with a preconditioner.
GRIDLOPS_EXPORT const std::vector<Solver>& named_solvers();
/// Returns the one table of options. The solvers, the program with its plans, reports and help, restarts, and
/// the table in docs/solvers.md follow it.
GRIDLOPS_EXPORT const std::vector<SolverOption>& solver_options();
/// Returns the option of this name. Throws UsageError if there is none.
GRIDLOPS_EXPORT const SolverOption& solver_option(std::string_view name);
/// Returns "lsqr, lsmr".
GRIDLOPS_EXPORT std::string names_of(const std::vector<Solver>& solvers);

}  // namespace gridlops
