// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops {

/// Misfits Σ 2s²ρ(|e|/s) of the residuals e = w∘(b − Ax) of a column, with their weights φ(t) = ρ′(t)/t. Each
/// is |e|² where |e| is far below s, but for l1, which is 2s|e| where |e| is far above 0.1 s.
enum class Misfit {
  l2,      ///< φ = 1
  huber,   ///< φ = 1 up to t = 1.345, and 1.345/t beyond
  l1,      ///< φ = 1/√(t² + δ²) with δ = 0.1
  cauchy,  ///< φ = 1/(1 + (t/2.385)²); not convex
  tukey    ///< φ = (1 − (t/4.685)²)² up to t = 4.685, and 0 beyond; not convex
};
/// "l2", "huber", "l1", "cauchy" or "tukey".
GRIDLOPS_EXPORT const char* name_of(Misfit misfit);
constexpr bool is_convex(Misfit misfit) { return misfit != Misfit::cauchy && misfit != Misfit::tukey; }

/// weights[i] ← φ(t[i]) ≥ 0, for t = |e|/s ≥ 0 on the host.
using WeightFunction = std::function<void(std::span<const double> t, std::span<double> weights)>;
/// The weights of a misfit.
GRIDLOPS_EXPORT WeightFunction weights_of(Misfit misfit);

struct RobustOptions {
  Misfit misfit = Misfit::huber;
  /// Takes the place of the misfit's weights; ranks call it alone, on parts of columns, which may differ in
  /// number. x then ends where the gradient with these weights is 0, whether they belong to a misfit or not.
  WeightFunction weights{};
  /// s > 0. Unset: of each column 1.4826 times the median of |e| where it is not 0, as it is under weights
  /// of 0 and in rows without A and b.
  std::optional<PerColumn> scale{};
};

/// The facts of a column beside its ColumnReport.
struct RobustColumn {
  double scale = 0;    ///< s, with which the verdict was made. 0: the misfit is |e|²: all |e| are rounding
  Index solves = 0;    ///< with other weights each
  Index rejected = 0;  ///< numbers of B with φ < 1/2
  /// ‖x − x*‖ is at most this, but for rounding, where x* minimises the misfit, for l1 with δ = 0. Infinite
  /// if the misfit is not convex, or D is 0.
  double distance = 0;
};

/// The same on all members, and empty on idle ranks.
struct RobustReport {
  SolveReport solve;  ///< of the weighted problem with the final W; iterations are those of all solves
  std::vector<RobustColumn> columns;
};

/// Minimises Σ 2s²ρ(|e|/s) + D²‖x‖² for each column, by least squares with weights that follow x: iteratively
/// reweighted least squares (Holland, Welsch: Commun. Statist. A6, 1977; Huber, Ronchetti: Robust Statistics,
/// 2009, §7.8). Collective over the grid; idle ranks return at once. W lies as B does. On entry it has the
/// weights w of B, as SolverOperands::weights; on return W = w∘√φ(|e|/s), so that x solves the weighted
/// problem.
///
///   auto W = allocate_matrix<double>(B.grid(), B.layout());
///   W.fill([](Index, Index) { return 1.0; });
///   const RobustReport report = robust_solve(Solver::cgls, *A, B, X, W, {.misfit = Misfit::tukey});
///
/// The solver is cgls, or pcgls. It begins with least squares, unless there is a guess, and goes on from the
/// last x. Each solve shortens the gradient to 0.3, so that the tolerance falls with it. A column that is
/// solved leaves the products. A scale that is not given is that of the residuals of Huber's misfit: it is
/// updated after each solve until it changes by at most 1 % near Huber's solution, 30 times at most, and
/// stays. Misfits that are not convex, and weights that are given, begin with Huber's solution to 1 % of the
/// tolerance's reference, and with its scale. So does l1 if its scale is not given.
///
/// Column j has converged when ‖Aᴴ(W²∘(b − Ax)) − D²x‖ ≤ T‖Aᴴ(W²∘b)‖ with the W of x itself, both recomputed
/// from their definitions. This gradient is that of the misfit. Of a convex misfit x is the minimiser, of
/// another a point where the gradient is 0. A scale that is not given is at least what may be rounding, 64 ε
/// times the largest number of w∘B; if all residuals are, it is 0. A column whose weights come to leave
/// nothing of b ends with `breakdown` and x = 0: its scale is too small. `iteration_limit` is also said after
/// 1000 solves.
///
/// Options are those of the solver; max_iterations limits the iterations of all solves of a column. A batch
/// takes memory for five more operands like B. Observers are told of each solve, whose columns are those of a
/// batch that are not solved yet.
///
/// Throws UsageError or ShapeError, on all ranks before any communication, for another solver, a scale that
/// is not positive and finite, weights among the operands, one pass, checkpoints, which belong to one solve,
/// and tests and bounds that know one problem only: error, sigma_min and residual_ratio; else as solve().
/// Reasons: docs/decisions/0071-misfits.md.
template <Scalar T>
GRIDLOPS_EXPORT RobustReport robust_solve(Solver solver, const LinearOperator<T>& A,
                                          const ConstDistMatrix<T>& B, DistMatrix<T>& X, DistMatrix<T>& W,
                                          const RobustOptions& robust = {}, const SolveOptions& options = {},
                                          const SolverOperands<T>& operands = {});

}  // namespace gridlops
