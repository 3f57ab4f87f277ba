// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include "gridlops/solve/plan.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops::program {

// What a solve leaves open, and what cannot be asked for together. `solve` and `plan` go through these.

/// How a solver is to work on a matrix, as far as that was asked for.
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

/// Says in words what the solver has against matrices of this shape; empty if nothing.
std::string shape_refusal(Solver solver, Index rows, Index cols);

/// Whether CGLS reads A once in an iteration.
bool reads_once(const AskedChoices& asked, const ProductShape& shape, GridShape grid);

/// The algorithm that leaves no choice: that which was asked for, or the one that block-cgls and one pass
/// need; else `automatic`.
Algorithm algorithm_for(const AskedChoices& asked, bool one_pass);

/// An iteration with all columns of the first batch, as the model has it.
PlannedIteration planned_iteration(const AskedChoices& asked, const ProductShape& shape, Algorithm algorithm,
                                   bool one_pass, GridShape grid);

/// How a rank stores its block of A.
Storage storage_for(const AskedChoices& asked, const PlannedIteration& iteration, GridShape grid);

}  // namespace gridlops::program
