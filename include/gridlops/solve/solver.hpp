// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "gridlops/solve/solve_options.hpp"
#include "gridlops/solve/solver_table.hpp"

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

template <Scalar T>
class ProximalOperator;

/// Operands that some solvers take besides A, B and X. They must outlive the call.
template <Scalar T>
struct SolverOperands {
  /// Of pcg: M ≈ (A + D²I)⁻¹, Hermitian positive definite, from A's domain to itself.
  const LinearOperator<T>* preconditioner = nullptr;
  /// Of ista and fista: S, whose range is the domain of A. Null: I.
  const LinearOperator<T>* sparsity = nullptr;
  /// Of proximal_gradient: P.
  std::shared_ptr<const ProximalOperator<T>> penalty = nullptr;
  /// Of lsqr: gets estimates of the diagonal of (AᴴA + D²I)⁻¹. Lies as X. Null: they are not wanted.
  DistMatrix<T>* variances = nullptr;
};

/// Solves for X by any solver of the table (collective over the grid; idle ranks return at once): for every
/// column j
///
///   ProblemKind::least_squares   minimises ‖A xⱼ − bⱼ‖² + D²‖xⱼ‖²
///   ProblemKind::hermitian       solves (A + D²I) xⱼ = bⱼ
///   ProblemKind::sparse          minimises ½‖A xⱼ − bⱼ‖² + λⱼ P(xⱼ)
///
/// Each column has its own step, test, verdict and history. B: in A.range(); X: in A.domain(), same column
/// partition, in other memory than B. Two reductions an iteration, whatever the columns, unless a solver's
/// own comment says otherwise.
///
/// The recurrence only claims that a column is solved. Verdicts are those of norms that are computed from
/// their definitions when all columns of a batch have ended. A column whose claim they deny begins anew from
/// its x, up to the limit of iterations. A column whose ‖Aᴴb‖ is 0 gets x = 0.
///
/// A, D and B may be as large or small as their type allows: where squares of norms would leave its range,
/// the problem is multiplied by powers of two, which takes memory for one operand more. Norms in the report
/// that are out of the range of double precision are 0 or infinite.
///
/// Throws ShapeError or UsageError on all ranks before any communication, also where an operand is missing,
/// or an option or operand is given that the solver does not take.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport solve(Solver solver, const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
                                  DistMatrix<T>& X, const SolveOptions& options = {},
                                  const SolverOperands<T>& operands = {});

/// Least squares by CGLS (Björck, Elfving, Strakoš: Stability of conjugate gradient and Lanczos methods for
/// linear least squares problems, SIAM J. Matrix Anal. Appl. 19, 1998). Column j has converged when ‖Aᴴ(b−Ax)
/// − D²x‖ ≤ T·‖Aᴴb‖, whatever the guess.
template <Scalar T>
SolveReport cgls(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 const SolveOptions& options = {}) {
  return solve(Solver::cgls, A, B, X, options);
}

/// Least squares by LSQR (Paige, Saunders, ACM TOMS 8, 1982): better than CGLS on ill-conditioned problems.
/// Column j has converged when, with r and A those of the damped system, ‖r‖ ≤ btol·‖b‖ + atol·‖A‖‖x‖ or
/// ‖Aᴴr‖ ≤ atol·‖A‖‖r‖, and ends with condition_limit when cond(A) reaches its limit.
template <Scalar T>
SolveReport lsqr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 const SolveOptions& options = {}) {
  return solve(Solver::lsqr, A, B, X, options);
}

/// The same, with estimates of the diagonal of (AᴴA + D²I)⁻¹, one for each column (Paige, Saunders 1982,
/// §5.6; SciPy's calc_var). They are from below in exact arithmetic. Rounding brings directions back in which
/// the column has converged, so that many iterations may make them too large: they are no bounds. Multiplied
/// by the variance of the noise in b they are the variances of x's elements. Their imaginary parts are zero.
template <Scalar T>
SolveReport lsqr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 DistMatrix<T>& variances, const SolveOptions& options = {}) {
  return solve(Solver::lsqr, A, B, X, options, {.variances = &variances});
}

/// Least squares as lsqr(), by LSMR (Fong, Saunders, SIAM J. Sci. Comput. 33, 2011), whose ‖Aᴴr‖ falls
/// monotonically, so that it can be stopped early.
template <Scalar T>
SolveReport lsmr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 const SolveOptions& options = {}) {
  return solve(Solver::lsmr, A, B, X, options);
}

/// Least squares with the test of cgls(), but all right-hand sides share one Krylov space (block CGLS:
/// O'Leary, Linear Algebra Appl. 29, 1980; here by block bidiagonalisation: Golub, Luk, Overton, ACM TOMS 7,
/// 1981). It takes far fewer iterations if a few large singular values slow CGLS down, or if there are many
/// right-hand sides. Columns may be dependent, tiny, zero, not finite, or more than there are unknowns. Each
/// batch has a space of its own. column_stable cannot make columns independent here. The operator's columns
/// must be uncut (Algorithm::stationary_a). An iteration takes four reductions of k² numbers for k columns,
/// and up to four more if the block is ill-conditioned.
template <Scalar T>
SolveReport block_cgls(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                       const SolveOptions& options = {}) {
  return solve(Solver::block_cgls, A, B, X, options);
}

/// Hermitian positive definite systems by conjugate gradients (Hestenes, Stiefel 1952). Column j has
/// converged when ‖b−Ax−D²x‖ ≤ T·‖b‖, whatever the guess. A's domain must be its range: where an operator's
/// layouts differ, redistribute with identity().
template <Scalar T>
SolveReport cg(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
               const SolveOptions& options = {}) {
  return solve(Solver::cg, A, B, X, options);
}

/// The same with a preconditioner M; test and norms stay those of the residual itself. A column for which
/// rᴴMr is not positive ends with breakdown.
template <Scalar T>
SolveReport cg(const LinearOperator<T>& A, const LinearOperator<T>& M, const ConstDistMatrix<T>& B,
               DistMatrix<T>& X, const SolveOptions& options = {}) {
  return solve(Solver::pcg, A, B, X, options, {.preconditioner = &M});
}

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
