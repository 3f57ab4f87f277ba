// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/solve/damping_curve.hpp"
#include "gridlops/solve/error_bound.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops {

template <Scalar T>
class GrowingSpace;

struct SpaceOptions {
  std::vector<double> damps;          ///< D ≥ 0, for which every right-hand side is to be solved
  std::optional<double> tolerance{};  ///< T, as of cgls(); if unset, what cgls() takes
  Index max_dimension = 0;            ///< the most vectors that solutions are made of; 0: the columns of A
  bool has_probe = false;             ///< for DampingRule::gcv: solves for gcv_probe(), too
  /// Ends the space before it takes more multiplications than cgls() of all pairs of a right-hand side and D
  /// would. Its iterations are counted in the small problem after each step that they do not pay for. They
  /// are those with A while they are fewer than the steps, and an estimate from then on. It counts
  /// multiplications and not seconds, so that bits depend on no clock. A restart counts anew.
  bool limits_cost = false;
  /// For that: the multiplications of a product of A with one column. 0: rows × columns of A.
  double product_cost = 0;
  /// Called on every rank before each step. If it returns true on any, the space ends with what it has; if it
  /// throws on one rank, all throw. Empty: none.
  std::function<bool()> stops{};
  /// The directory for the space, which is saved at its end, and while it grows by a number of steps, by
  /// seconds, or on request, which then throws Suspended on all ranks. It goes on from a space that was saved
  /// for the same A and B, on any grid, to other damps, tolerance and max_dimension.
  CheckpointOptions checkpoint{};
};

/// Why a space has its dimension.
enum class SpaceEnd {
  converged,        ///< it has the solutions, to the tolerance or to rounding
  complete,         ///< A and Aᴴ lead no further: it has the solutions
  dimension_limit,  ///< SpaceOptions::max_dimension
  cost_limit,       ///< SpaceOptions::limits_cost
  user_stop,        ///< SpaceOptions::stops asked for it, or it was saved before its end
  non_finite        ///< numbers left the range of their type, or A or B has NaN or infinity
};
/// "converged", "complete", …
GRIDLOPS_EXPORT const char* name_of(SpaceEnd end);

/// One space that has the solutions of all right-hand sides for all dampings. A sweep of d dampings over r
/// right-hand sides costs products with one block of r columns per step, where d·r columns would each have a
/// Krylov space of their own.
///
/// Block bidiagonalisation from B (Golub, Luk, Overton, ACM TOMS 7, 1981), with V orthogonalised against all
/// of itself and U by the recurrence alone (Simon, Zha: Low-rank matrix approximation using the Lanczos
/// bidiagonalization process, SIAM J. Sci. Comput. 21, 2000): A V = U K, where K is block bidiagonal and
/// small. For each D, x = V y with the y that minimises ‖K y − Uᴴb‖² + D²‖y‖². Norms of x, of the residual
/// and of the gradient follow from K and y without products. The ranks share the dampings among them.
///
/// It keeps V, dimension() columns in A's domain and one block more, in buffers of 32 columns or of a block,
/// next to two blocks of r columns of data. The operator's columns must be uncut (Algorithm::stationary_a).
/// Reasons: docs/decisions/0053-one-space.md.
template <Scalar T>
class GRIDLOPS_EXPORT SolutionSpace {
 public:
  /// Builds the space (collective over the grid). Each step multiplies at most B.cols() columns with A and as
  /// many with Aᴴ, until the gradient of every right-hand side is at most T/2·‖Aᴴb‖ for every D. A
  /// checkpoint takes a product with one column more. Throws ShapeError or UsageError on all ranks before
  /// anything is sent, OutOfMemory on all, and what CheckpointOptions names.
  SolutionSpace(OperatorPtr<T> A, const ConstDistMatrix<T>& B, const SpaceOptions& options);
  /// The space that was saved in this directory, as it is, on any grid (collective over A's grid; one product
  /// with A). It gives the same curves and solves the same problems. Throws InputError on all ranks if its
  /// files are damaged, or it was made for another operator, UsageError or ShapeError as the other
  /// constructor, and OutOfMemory on all.
  SolutionSpace(OperatorPtr<T> A, const std::string& directory);
  SolutionSpace(SolutionSpace&&) noexcept;
  SolutionSpace& operator=(SolutionSpace&&) noexcept;
  ~SolutionSpace();

  /// Writes the space to a directory, which is made if it is missing (collective over the grid): V as .npy
  /// files, the small problems and the curves, but neither A nor B. Throws OutputError on all ranks if it
  /// cannot be written, or something was saved there before.
  void save(const std::string& directory) const;
  /// Why SpaceOptions::checkpoint does not have the whole space, since the last attempt to save it there
  /// failed; empty if it has, or was not named.
  const std::string& save_failure() const;

  Index dimension() const;
  /// The columns that were multiplied with A or Aᴴ.
  Index products() const;
  SpaceEnd end() const;

  /// The curve of each right-hand side over the dampings, with the choice of the rule. The norms are those of
  /// the projected problems: no product with A confirms them. A point is converged if its gradient is at most
  /// T/2·‖Aᴴb‖, or as small as rounding allows, and at the iteration limit otherwise; those of solve_rest()
  /// are as cgls() left them. noise: of each right-hand side, for DampingRule::discrepancy. known: its norm
  /// of A and its sigma_min, unless the norm is 0, bound the errors of all points as error_bounds() does,
  /// from these norms, with 80 u for u: the space leaves out directions of 30 ε, and what rounds is its
  /// recurrences and small problems. Where b is 0 there is no bound. Not collective; empty on idle ranks.
  /// Throws UsageError for gcv without SpaceOptions::has_probe, or if sigma_min means nothing to this A or a
  /// number is negative or not finite, and ShapeError if there is neither one noise nor one for each.
  std::vector<DampingCurve> curves(DampingRule rule = DampingRule::lcurve, const PerColumn& noise = 0,
                                   const ErrorBoundOptions& known = {}) const;

  /// Solves the pairs of a right-hand side of that B, or the probe, and a D that the space has not solved
  /// (collective over the grid): cgls() from the x in the space, with as many columns at a time as there are
  /// right-hand sides, or dampings if those are more. curves() and save() then have their norms and verdicts.
  /// The report has a column for each pair, and no history; its solver is pcgls if the
  /// space preconditioned for any of them. Throws UsageError on all ranks if B is not that B, or the options
  /// have a damping, a guess, a checkpoint, or tolerances of columns.
  SolveReport solve_rest(const ConstDistMatrix<T>& B, SolveOptions options);

  /// Solves for the B of the constructor with options.damp, one D or one for each column, of SpaceOptions or
  /// others (collective over the grid): cgls() from the solution in the space. Norms and verdicts are thus
  /// those of cgls(), recomputed from their definitions. It iterates where the space is not enough. Throws
  /// UsageError on all ranks if B is not that B, or options.initial_guess is set.
  SolveReport solve(const ConstDistMatrix<T>& B, DistMatrix<T>& X, SolveOptions options) const;
  /// Solves for other data, of any number of columns, by cgls() from the best x in the space, which takes one
  /// product with Aᴴ for each. If the data are like those that the space was made for, little is left to do.
  SolveReport solve_others(const ConstDistMatrix<T>& B, DistMatrix<T>& X, SolveOptions options) const;

 private:
  std::unique_ptr<GrowingSpace<T>> space_;
};

/// The bytes that a space with this many vectors keeps on the rank at (row, col) of the grid of A, for blocks
/// of this many right-hand sides, with the probe. Blocks that lose columns may take a few more. Not
/// collective.
template <Scalar T>
GRIDLOPS_EXPORT Index solution_space_bytes(const LinearOperator<T>& A, Index columns, Index vectors, int row,
                                           int col);

}  // namespace gridlops
