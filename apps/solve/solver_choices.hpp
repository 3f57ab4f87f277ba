// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include "gridlops/solve/plan.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops::program {

// Choices that a solve leaves open, and requests that exclude each other. `solve` and `plan` both use these
// functions.

/// How a solver should work on a matrix, as far as the user has said.
struct AskedChoices {
  Solver solver = Solver::cgls;
  std::string one_pass = "off";  ///< or "on", or "auto"
  Algorithm algorithm = Algorithm::automatic;
  std::optional<Storage> storage{};  ///< none: chosen
  Index panel = 0, batch = 0;
  bool scaled = false;  ///< by the norms of A's columns
  bool on_host = true;
};

/// Throws UsageError if these exclude each other.
void require_compatible(const AskedChoices& asked);

/// Says in words why the solver refuses matrices of this shape; empty if it does not.
std::string shape_refusal(Solver solver, Index rows, Index cols);

/// Whether CGLS reads A once per iteration.
bool reads_once(const AskedChoices& asked, const ProductShape& shape, GridShape grid);

/// The algorithm if there is no choice: the requested one, or the one that block-cgls and one pass need; else
/// `automatic`.
Algorithm algorithm_for(const AskedChoices& asked, bool one_pass);

/// The model's figures for an iteration with all columns of the first batch.
PlannedIteration planned_iteration(const AskedChoices& asked, const ProductShape& shape, Algorithm algorithm,
                                   bool one_pass, GridShape grid);

/// How a rank stores its block of A.
Storage storage_for(const AskedChoices& asked, const PlannedIteration& iteration, GridShape grid);

}  // namespace gridlops::program
