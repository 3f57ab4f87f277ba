// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/base/export.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops {

/// The result of solve_or_factor(): the same on all members of the grid, and empty on idle ranks.
struct SolvedOrFactored {
  SolveReport report{};    ///< of the solver that found X
  bool by_factor = false;  ///< X and the report are those of direct()
  bool at_limit = false;   ///< since a column had reached the iteration limit; else it was time
  // Of the solver that began.
  double seconds = 0;    ///< on the slowest rank
  Index iterations = 0;  ///< of all batches together
};

/// Solves least-squares problems by `first`, cgls or block_cgls, unless that takes as long as a factor would:
/// when another iteration would exceed these seconds, over all batches and on the slowest rank, or when a
/// column has reached the iteration limit, direct() solves instead (collective over the grid; idle ranks
/// return at once). With the seconds that direct() takes, which direct_seconds() predicts, this takes at most
/// twice as long as the faster of the two, whatever A is, where direct() solves: with fewer rows than columns
/// that takes block or stationary_a, and A in memory, if singular values are small (factor.hpp).
///
///   const double seconds = direct_seconds(iteration, nrhs, false, grid->shape(), machine);
///   const SolvedOrFactored solved = solve_or_factor(Solver::cgls, *A, B, X, seconds, {.damp = damp});
///
/// X is what `first` finds, or what direct() finds from the same guess, for all columns. Only the choice
/// depends on time. With a guess this takes memory for one more X. Observers are told of the start of both
/// solves, and of the end of the first only if it reached the iteration limit. Ranks compare their clocks a
/// few times, less often the longer the rest is.
///
/// Throws UsageError, on all ranks before any communication, if `first` is another solver, direct() does not
/// take an option that is given, or A is not in host memory; for checkpoints, since one belongs to one
/// solver; and unless seconds ≥ 0. Otherwise as solve() and factor().
/// Reasons: docs/decisions/0070-auto.md.
template <Scalar T>
GRIDLOPS_EXPORT SolvedOrFactored solve_or_factor(Solver first, const LinearOperator<T>& A,
                                                 const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                                 double seconds, const SolveOptions& options = {});

}  // namespace gridlops
