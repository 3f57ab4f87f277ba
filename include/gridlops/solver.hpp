// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/checkpoint.hpp"
#include "gridlops/export.hpp"
#include "gridlops/linear_operator.hpp"

namespace gridlops {

/// Why the iteration of one column ended.
enum class StopReason {
  converged,  ///< the norm recomputed from its definition is within the tolerance
  stagnated,  ///< the norms recomputed from their definitions are what rounding makes of a solution's
  iteration_limit,
  condition_limit,  ///< the estimated condition number passed its limit
  user_stop,        ///< an observer or residual_ratio asked for it
  breakdown,   ///< a denominator that must be positive was not: for CG, A is not positive definite. Or x is
               ///< too small for its type
  non_finite,  ///< NaN or infinity turned up, or x is too large for its type; X's column holds NaN
  corrupted    ///< the guard found x and the recurrence apart; X has the last iterate that it had checked
};
/// The name as in reports: "converged", "iteration_limit", …
GRIDLOPS_EXPORT const char* name_of(StopReason reason);
/// Whether x solves the problem, as accurately as was asked for or as rounding lets it: converged or
/// stagnated.
GRIDLOPS_EXPORT bool is_solved(StopReason reason);

class SolveObserver;

struct SolveOptions {
  Index max_iterations = 100;
  /// Relative; see the solver for its test. Unset: 1e-8 in double, 1e-4 in single precision. 0 never
  /// converges.
  std::optional<double> tolerance{};
  double damp = 0;  ///< D ≥ 0
  /// One D ≥ 0 and one tolerance for each column of B, instead of those for all. The columns of a sweep of D
  /// over one right-hand side are copies of it, and share every product with A. cgls(), lsqr(), lsmr() and
  /// cg() take dampings; every solver takes tolerances.
  std::vector<double> damps = {}, tolerances = {};
  // For lsqr() and lsmr(); others refuse them. atol is relative to ‖A‖‖r‖ and btol to ‖b‖; unset, they are
  // the tolerance. The limit is one of cond(A); 0: none.
  std::optional<double> atol{}, btol{};
  double condition_limit = 0;
  bool initial_guess = false;  ///< X holds one; otherwise X is overwritten and starts from zero
  /// About so many columns are solved at a time, to bound the workspace: of each part of the column partition
  /// its share of them, but at least one. 0: all.
  Index batch = 0;
  /// Sums over ranks are in rank order. If the operator is column-stable, too, no bit of a column depends on
  /// the other columns.
  bool column_stable = false;
  bool record_history = true;
  /// For cgls(); others refuse it. One A.normal_product() gives q = A p, Aᴴr and Aᴴq, and the next gradient
  /// is Aᴴr − α Aᴴq − D²x. So an iteration reads A once if A.has_one_pass(). The iterates are as accurate as
  /// without, since r itself is updated and no error of a gradient is carried on. An iteration takes half as
  /// many operations again, so this is for a few columns only; one_pass_is_faster() says when.
  bool one_pass = false;
  std::vector<std::shared_ptr<SolveObserver>> observers{};  ///< see solve_observer.hpp
  /// A column ends with user_stop once its ‖b − Ax‖ is at most this part of that at the start. 0: never.
  double residual_ratio = 0;
  /// After every so many iterations, counted from the start of a batch, b − Ax is computed anew and compared
  /// with what the recurrence says; the same once more when columns have ended. Where they differ by more
  /// than rounding explains, as after a flipped bit, the column goes back to the last iterate that was
  /// checked, and begins anew from there once the others have ended. If it fails again at once, it ends as
  /// corrupted. Takes a product for each check, and ten products of one column to estimate ‖A‖. 0: never.
  Index guard = 0;
  CheckpointOptions checkpoint{};
};

/// Returns what SolveOptions::tolerance is if it is unset.
GRIDLOPS_EXPORT double default_tolerance(ScalarType type);
/// Return how many batches SolveOptions::batch makes of columns that are cut so, at least one, and how many
/// columns the largest of them has.
GRIDLOPS_EXPORT Index batch_count(const Partition& columns, Index batch);
GRIDLOPS_EXPORT Index largest_batch(const Partition& columns, Index batch);

struct ColumnReport {
  StopReason reason = StopReason::iteration_limit;
  Index iterations = 0;
  double residual_norm = 0;         ///< ‖b − Ax‖, without damping, from its definition
  double normal_residual_norm = 0;  ///< ‖Aᴴ(b − Ax) − D²x‖, from its definition
  double operator_norm = 0;  ///< a lower bound of ‖A‖; of lsqr and lsmr an estimate of the Frobenius norm
  double condition = 0;      ///< an estimate of cond(A), with damping, of lsqr and lsmr; else 0
  double reference_norm = 0;  ///< what the tolerance is relative to: ‖Aᴴb‖, for cg() ‖b‖, for ista() ‖x‖, …
  double tested_norm = 0;  ///< the norm that is tested, from its definition, over its reference
};

/// Entry k of `residual_norms` and `tested_norms` belongs to `columns[k]`, the right-hand sides that were
/// active.
struct IterationRecord {
  Index iteration = 0;
  std::vector<Index> columns;
  std::vector<double> residual_norms;
  std::vector<double> tested_norms;
};

/// What SolveOptions::guard found wrong with a column, after which iteration of its batch.
struct GuardAlarm {
  enum class Kind {
    gap,        ///< `found` is how far x and the recurrence are apart, beside b
    norm,       ///< `found` is an ‖A‖ that the recurrence cannot have met
    non_finite  ///< NaN or infinity turned up after the start
  };
  Kind kind = Kind::gap;
  Index iteration = 0;
  Index column = 0;  ///< of B
  double found = 0;
  double limit = 0;  ///< what rounding explains
};

/// What a solver returns: the same on all members of the grid, and empty on idle ranks. After a restart (see
/// cgls()) iterations in the history are counted on from the batch's last one.
struct SolveReport {
  std::string solver;
  Index iterations = 0;  ///< the most of any column
  std::vector<ColumnReport> columns;
  std::vector<IterationRecord> history;  ///< iteration 0 first; batch after batch
  std::vector<GuardAlarm> alarms;
  double step = 0;              ///< the first, of solvers whose steps have a length that is given; else 0
  std::vector<double> lambdas;  ///< of each column, of solvers with a penalty; else empty
  Index guard_products = 0;     ///< columns that were multiplied with A or Aᴴ for SolveOptions::guard
};

/// Least squares: minimises ‖A xⱼ − bⱼ‖² + D²‖xⱼ‖² for every column j by CGLS (Björck, Elfving, Strakoš:
/// Stability of conjugate gradient and Lanczos methods for linear least squares problems, SIAM J. Matrix
/// Anal. Appl. 19, 1998), each column with its own step, test, verdict and history (collective over the grid;
/// idle ranks return at once). Column j has converged when ‖Aᴴ(b−Ax) − D²x‖ ≤ T·‖Aᴴb‖, whatever the guess. B:
/// in A.range(); X: in A.domain(), same column partition. Two reductions an iteration, whatever the columns.
///
/// The recurrence only claims that a column is solved. Verdicts are those of norms that are computed from
/// their definitions when all columns of a batch have ended. A column whose claim they deny begins anew from
/// its x, up to the limit of iterations. A column whose ‖Aᴴb‖ is 0 gets x = 0.
///
/// A, D and B may be as large or small as their type allows: where squares of norms would leave its range,
/// the problem is multiplied by powers of two, which takes memory for one operand more. Norms in the report
/// that are out of the range of double precision are 0 or infinite.
///
/// Throws ShapeError or UsageError on all ranks before any communication.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport cgls(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                 const SolveOptions& options = {});

/// Least squares as cgls(), by LSQR (Paige, Saunders, ACM TOMS 8, 1982): better than CGLS on ill-conditioned
/// problems. Column j has converged when, with r and A those of the damped system, ‖r‖ ≤ btol·‖b‖ +
/// atol·‖A‖‖x‖ or ‖Aᴴr‖ ≤ atol·‖A‖‖r‖, and ends with condition_limit when cond(A) reaches its limit.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport lsqr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                 const SolveOptions& options = {});

/// The same, with estimates of the diagonal of (AᴴA + D²I)⁻¹, one for each column (Paige, Saunders 1982,
/// §5.6; SciPy's calc_var). They are from below in exact arithmetic. Rounding brings directions back in which
/// the column has converged, so that many iterations may make them too large: they are no bounds. Multiplied
/// by the variance of the noise in b they are the variances of x's elements. `variances` lies as X; its
/// imaginary parts are zero.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport lsqr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                 DistMatrix<T>& variances, const SolveOptions& options = {});

/// Least squares as lsqr(), by LSMR (Fong, Saunders, SIAM J. Sci. Comput. 33, 2011), whose ‖Aᴴr‖ falls
/// monotonically, so that it can be stopped early.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport lsmr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                 const SolveOptions& options = {});

/// Least squares as cgls(), but all right-hand sides share one Krylov space (block CGLS: O'Leary, Linear
/// Algebra Appl. 29, 1980; here by block bidiagonalisation: Golub, Luk, Overton, ACM TOMS 7, 1981). It takes
/// far fewer iterations if a few large singular values slow CGLS down, or if there are many right-hand sides.
/// Test, verdicts and reports are those of cgls(), column by column. Columns may be dependent, tiny, zero,
/// not finite, or more than there are unknowns. Each batch has a space of its own. column_stable cannot make
/// columns independent here. The operator's columns must be uncut (Algorithm::stationary_a). An iteration
/// takes four reductions of k² numbers for k columns, and up to four more if the block is ill-conditioned.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport block_cgls(const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
                                       DistMatrix<T>& X, const SolveOptions& options = {});

/// Hermitian positive definite systems: (A + D²I) xⱼ = bⱼ by conjugate gradients (Hestenes, Stiefel 1952),
/// in everything else as cgls(). Column j has converged when ‖b−Ax−D²x‖ ≤ T·‖b‖, whatever the guess. A's
/// domain must be its range: where an operator's layouts differ, redistribute with identity().
template <Scalar T>
GRIDLOPS_EXPORT SolveReport cg(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                               const SolveOptions& options = {});

/// The same ("pcg" in the report) with a preconditioner M ≈ (A + D²I)⁻¹, Hermitian positive definite, from
/// A's domain to itself; test and norms stay those of the residual itself. A column for which rᴴMr is not
/// positive ends with breakdown. Still two reductions an iteration.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport cg(const LinearOperator<T>& A, const LinearOperator<T>& M,
                               const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                               const SolveOptions& options = {});

/// The solvers of this header and of sparse_solver.hpp; pcg is cg() with a preconditioner.
enum class Solver { cgls, cg, pcg, lsqr, lsmr, block_cgls, ista, fista };
/// The name as in reports: "cgls", "block-cgls", …; cgls() in one pass is "one-pass-cgls" there.
GRIDLOPS_EXPORT const char* name_of(Solver solver);

/// Everything that decides how much memory a solver takes.
struct SolverMemory {
  Solver solver = Solver::cgls;
  Space range, domain;  ///< of A
  ScalarType type = ScalarType::f64;
  Index nrhs = 1;
  Index batch = 0;  ///< as in SolveOptions
  bool damped = false, initial_guess = false, one_pass = false;
  /// The solver is called by preconditioned_inversion(), which damps x, and whose P is from domain to domain.
  bool preconditioned = false;
  bool guarded = false;
};

/// Returns the bytes that a solver takes on the rank at (row, col) besides A, B and X, the scratch memory of
/// the operator, and a few numbers for each column. Not collective.
GRIDLOPS_EXPORT Index solver_workspace_bytes(const SolverMemory& of, int row, int col);

}  // namespace gridlops
