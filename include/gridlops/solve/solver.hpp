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

/// Why a column stopped iterating.
enum class StopReason {
  converged,  ///< the norm recomputed from its definition is within the tolerance
  stagnated,  ///< the norms recomputed from their definitions are as small as rounding allows
  iteration_limit,
  condition_limit,  ///< the estimated condition number passed its limit
  user_stop,        ///< an observer or residual_ratio asked for it, or solve_refined() gains nothing
  breakdown,   ///< a denominator that must be positive was not (for CG, A is not positive definite), or x is
               ///< too small for its type
  non_finite,  ///< NaN or infinity appeared, or x is too large for its type; X's column holds NaN
  corrupted    ///< the guard found that x and the recurrence disagree; X has the last iterate that it had
               ///< checked
};
/// The name used in reports: "converged", "iteration_limit", …
GRIDLOPS_EXPORT const char* name_of(StopReason reason);
/// Whether x solves the problem, either to the requested accuracy or as accurately as rounding allows:
/// converged or stagnated.
GRIDLOPS_EXPORT bool is_solved(StopReason reason);

/// Return the number of batches, at least one, that SolveOptions::batch makes of columns with this partition,
/// and the number of columns in the largest batch.
GRIDLOPS_EXPORT Index batch_count(const Partition& columns, Index batch);
GRIDLOPS_EXPORT Index largest_batch(const Partition& columns, Index batch);

struct ColumnReport {
  StopReason reason = StopReason::iteration_limit;
  Index iterations = 0;
  double residual_norm = 0;  ///< ‖b − Ax‖, without damping, from its definition
  double normal_residual_norm = 0;  ///< ‖Aᴴ(b − Ax) − D²x‖, for bounded ‖φ + β‖, from its definition
  double relative_normal_residual_norm = 0;  ///< divided by ‖b‖, unless b is 0: in the units of A
  double operator_norm = 0;  ///< a lower bound of ‖A‖; for lsqr and lsmr an estimate of the Frobenius norm,
                             ///< which for lsqr is that of [A; D·I]
  double condition = 0;  ///< an estimate of cond(A), including damping, for lsqr and lsmr; else 0
  double reference_norm = 0;  ///< the reference of the tolerance: ‖Aᴴb‖, for cg() ‖b‖, for ista() ‖x‖, …
  double tested_norm = 0;  ///< the norm that is tested, from its definition, divided by its reference
  /// Where the method bounds errors by Gauss-Radau quadrature: ‖M⁻¹g‖² is at most this times ‖g‖²/μ², but for
  /// rounding, with M, g and μ as in error_bounds() for SolveReport::sigma_min; for bounded, ‖x − x*‖² is. 1
  /// is always true.
  double quadrature = 1;
};

/// Entry k of `residual_norms` and `tested_norms` belongs to right-hand side `columns[k]`. Only columns that
/// were active are listed.
struct IterationRecord {
  Index iteration = 0;
  std::vector<Index> columns;
  std::vector<double> residual_norms;
  std::vector<double> tested_norms;
};

/// A fault that SolveOptions::guard found in a column, and the iteration of its batch after which it was
/// found.
struct GuardAlarm {
  enum class Kind {
    gap,        ///< `found` is the distance between x and the recurrence, in the units of b
    norm,       ///< `found` is a value of ‖A‖ that the recurrence cannot have produced
    non_finite  ///< NaN or infinity appeared after the start
  };
  Kind kind = Kind::gap;
  Index iteration = 0;
  Index column = 0;  ///< of B
  double found = 0;
  double limit = 0;  ///< the most that rounding explains
};

/// The result of a solver: the same on all members of the grid, and empty on idle ranks. After a restart (see
/// cgls()) the history continues the iteration count of the batch.
struct SolveReport {
  std::string solver;
  Index iterations = 0;  ///< the maximum over the columns
  std::vector<ColumnReport> columns;
  std::vector<IterationRecord> history;  ///< iteration 0 first; batch after batch
  std::vector<GuardAlarm> alarms;
  double sigma_min = 0;   ///< SolveOptions::sigma_min
  bool weighted = false;  ///< with SolverOperands::weights, of which error_bounds() must know
  double step = 0;        ///< the first step length, for solvers whose steps have a given length; else 0
  std::vector<double> lambdas;  ///< one per column, for solvers with a penalty; else empty
  Index guard_products = 0;     ///< columns multiplied with A or Aᴴ for SolveOptions::guard
};

template <Scalar T>
class ProximalOperator;
template <Scalar T>
class Factor;

/// Operands that some solvers take in addition to A, B and X. They must outlive the call.
template <Scalar T>
struct SolverOperands {
  /// For pcg: M ≈ (A + D²I)⁻¹, for pcgls M ≈ (AᴴA + D²I)⁻¹ up to a factor; Hermitian positive definite, from
  /// A's domain to itself.
  const LinearOperator<T>* preconditioner = nullptr;
  /// For ista and fista: S, whose range is the domain of A. Null means I.
  const LinearOperator<T>* sparsity = nullptr;
  /// For proximal_gradient: P.
  std::shared_ptr<const ProximalOperator<T>> penalty = nullptr;
  /// For lsqr and direct: receives the diagonal of (AᴴA + D²I)⁻¹, estimated or, by singular values, exact but
  /// for rounding. Same layout as X. Null: none is computed.
  DistMatrix<T>* variances = nullptr;
  /// For direct: the factor of this A with this D, which factor() made, or one for all dampings, of
  /// spectral_factor(), which variances and dampings of columns need. Null: the solver computes one.
  const Factor<T>* factor = nullptr;
  /// For bounded: l and u of l ≤ x ≤ u, with the layout of X. Elements may be infinite and equal, but not
  /// NaN, and there must be a number between them. Null: none.
  const ConstDistMatrix<T>*lower = nullptr, *upper = nullptr;
  /// For least squares and penalties: W, which lies as B does, with real elements ≥ 0. The misfit of column j
  /// is then ‖W∘(A xⱼ − bⱼ)‖²: its operator is diag(wⱼ) A, and a weight of 0 leaves a number out, whatever B
  /// has there (weights.hpp). All norms, bounds and tests are those of this problem. Null: all weights are 1.
  const ConstDistMatrix<T>* weights = nullptr;
};

/// Solves for X with any solver of the table (collective over the grid; idle ranks return at once). For every
/// column j,
///
///   ProblemKind::least_squares   minimises ‖A xⱼ − bⱼ‖² + D²‖xⱼ‖²
///   ProblemKind::hermitian       solves (A + D²I) xⱼ = bⱼ
///   ProblemKind::sparse          minimises ½‖A xⱼ − bⱼ‖² + λⱼ P(xⱼ)
///
///   auto X = allocate_matrix<double>(B.grid(), A->domain().layout(B.cols()));
///   const SolveReport report = solve(Solver::lsqr, *A, B, X, {.max_iterations = 500, .damp = 0.1});
///   for (const ColumnReport& column : report.columns)
///     if (!is_solved(column.reason)) std::cerr << name_of(column.reason) << '\n';
///
/// Each column has its own step, convergence test, verdict and history. B is in A.range() and X in
/// A.domain(). They have the same column partition and do not share memory. An iteration takes two reductions
/// for any number of columns, unless the solver's own comment says otherwise.
///
/// The recurrence can only claim that a column is solved. Once all columns of a batch have ended, the solver
/// recomputes the norms from their definitions and bases the verdicts on them. If they contradict a column's
/// claim, the column restarts from its x and continues up to the iteration limit. A column whose ‖Aᴴb‖ is 0
/// gets x = 0.
///
/// A, D and B may be as large or small as their type allows. If squares of norms would leave its range, the
/// solver multiplies the problem by powers of two, which takes memory for one more operand. Norms in the
/// report that are outside the range of double precision are 0 or infinite. Solvers with a penalty do not
/// scale; they throw UsageError, on all members, where squares of the norms that they know
/// would leave the range: of B, and of A unless for admm().
///
/// Throws ShapeError or UsageError on all ranks before any communication, also if an operand is missing, or
/// if the solver does not take an option or operand that is given; for an element of weights that is none
/// once all ranks know of it.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport solve(Solver solver, const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
                                  DistMatrix<T>& X, const SolveOptions& options = {},
                                  const SolverOperands<T>& operands = {});

/// Solves least-squares problems by CGLS (Björck, Elfving, Strakoš: Stability of conjugate gradient and
/// Lanczos methods for linear least squares problems, SIAM J. Matrix Anal. Appl. 19, 1998). Column j has
/// converged when ‖Aᴴ(b−Ax) − D²x‖ ≤ T·‖Aᴴb‖, whatever the initial guess.
template <Scalar T>
SolveReport cgls(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 const SolveOptions& options = {}) {
  return solve(Solver::cgls, A, B, X, options);
}

/// Solves least-squares problems by LSQR (Paige, Saunders, ACM TOMS 8, 1982). It is better than CGLS on
/// ill-conditioned problems. Let r and A be the residual and the operator of the damped system: column j has
/// converged when ‖r‖ ≤ btol·‖b‖ + atol·‖A‖‖x‖ or ‖Aᴴr‖ ≤ atol·‖A‖‖r‖. It ends with condition_limit when
/// cond(A) reaches its limit.
template <Scalar T>
SolveReport lsqr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 const SolveOptions& options = {}) {
  return solve(Solver::lsqr, A, B, X, options);
}

/// Solves by LSQR, and estimates the diagonal of (AᴴA + D²I)⁻¹ for each column (Paige, Saunders 1982, §5.6;
/// SciPy's calc_var). In exact arithmetic the estimates are lower bounds. Rounding reintroduces directions in
/// which the column has converged. After many iterations it may make the estimates too large: do not rely on
/// them as bounds. Multiplied by the variance of the noise in b, they estimate the variances of x's elements.
/// Their imaginary parts are zero.
template <Scalar T>
SolveReport lsqr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 DistMatrix<T>& variances, const SolveOptions& options = {}) {
  return solve(Solver::lsqr, A, B, X, options, {.variances = &variances});
}

/// Solves least-squares problems as lsqr() does, by LSMR (Fong, Saunders, SIAM J. Sci. Comput. 33, 2011). Its
/// ‖Aᴴr‖ decreases monotonically, so it can be stopped early. ‖A‖ of its test is without damping.
template <Scalar T>
SolveReport lsmr(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 const SolveOptions& options = {}) {
  return solve(Solver::lsmr, A, B, X, options);
}

/// Solves least-squares problems with the convergence test of cgls(), but all right-hand sides of a batch
/// share one Krylov space (block CGLS: O'Leary, Linear Algebra Appl. 29, 1980; here by block
/// bidiagonalisation: Golub, Luk, Overton, ACM TOMS 7, 1981). It takes far fewer iterations if a few large
/// singular values slow CGLS down, or if there are many right-hand sides. Columns may be linearly dependent,
/// tiny, zero or not finite, and there may be more of them than unknowns. Each batch has its own space.
/// column_stable cannot make columns independent here. The operator's columns must be uncut
/// (Algorithm::stationary_a). An iteration takes four reductions of k² numbers for k columns, and up to four
/// more if the block is ill-conditioned.
template <Scalar T>
SolveReport block_cgls(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                       const SolveOptions& options = {}) {
  return solve(Solver::block_cgls, A, B, X, options);
}

/// Solves least-squares problems by a factor of AᴴA + D²I, or of AAᴴ + D²I if A has fewer rows than columns:
/// see factor(). With the convergence test of cgls(), and the same damping for all columns. Iterations
/// correct what rounding left: one is the rule where the condition number is below about 10⁶. Where
/// right-hand sides are many, this is faster than any iteration. All ranks hold the factor, of min(m, n)²
/// elements. column_stable cannot make columns independent here. With fewer rows than columns and damping, an
/// initial guess is ignored. Of a rank-deficient A without damping x is the shortest solution, if the factor
/// shows its rank.
template <Scalar T>
SolveReport direct(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                   const SolveOptions& options = {}) {
  return solve(Solver::direct, A, B, X, options);
}

/// Solves least-squares problems with bounds, which the operands name, or SolveOptions::nonnegative: l ≤ x ≤
/// u, for elements that are real. Every column has its own face of the box, steps and verdict. Let φ + β be
/// the gradient Aᴴ(b − Ax) − D²x where it may move x, and 0 where x is on a bound and it points out of the
/// box. Column j has converged when ‖φ + β‖ ≤ T·‖Aᴴb‖; if the point of the box nearest to 0 is not 0, its
/// gradient is the reference where that is longer. Norms of gradients in the report are those of φ + β. With
/// D > 0, or a σ, error_bounds() bounds ‖x − x*‖. The solver does not scale: it throws UsageError, on all
/// members, as solvers with a penalty do. Reasons: docs/decisions/0069-bounds.md.
template <Scalar T>
SolveReport bounded(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                    const SolveOptions& options, const SolverOperands<T>& operands) {
  return solve(Solver::bounded, A, B, X, options, operands);
}

/// Solves Hermitian positive definite systems by conjugate gradients (Hestenes, Stiefel 1952). Column j has
/// converged when ‖b−Ax−D²x‖ ≤ T·‖b‖, whatever the initial guess. A's domain must be its range. If their
/// layouts differ, redistribute with identity().
template <Scalar T>
SolveReport cg(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
               const SolveOptions& options = {}) {
  return solve(Solver::cg, A, B, X, options);
}

/// Solves as above, with a preconditioner M. The convergence test and the norms are still those of the
/// unpreconditioned residual. A column ends with breakdown if rᴴMr is not positive.
template <Scalar T>
SolveReport cg(const LinearOperator<T>& A, const LinearOperator<T>& M, const ConstDistMatrix<T>& B,
               DistMatrix<T>& X, const SolveOptions& options = {}) {
  return solve(Solver::pcg, A, B, X, options, {.preconditioner = &M});
}

/// Solves Hermitian systems, which may be indefinite or singular, by MINRES (Paige, Saunders, SIAM J. Numer.
/// Anal. 12, 1975), whose ‖b−Ax−D²x‖ never rises. Otherwise like cg().
template <Scalar T>
SolveReport minres(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                   const SolveOptions& options = {}) {
  return solve(Solver::minres, A, B, X, options);
}

/// Everything that determines how much memory a solver takes.
struct SolverMemory {
  Solver solver = Solver::cgls;
  Space range, domain;  ///< of A
  ScalarType type = ScalarType::f64;
  Index nrhs = 1;
  Index batch = 0;  ///< as in SolveOptions
  bool damped = false, initial_guess = false, one_pass = false;
  /// For a solver called by preconditioned_inversion() with damps_x, where P maps the domain to itself.
  bool preconditioned = false;
  bool guarded = false;
  bool own_damps = false;  ///< columns have dampings of their own, or direct gives variances
  bool weighted = false;   ///< with SolverOperands::weights
};

/// Returns the bytes that a solver takes on the rank at (row, col), excluding A, B and X, the operator's
/// scratch memory, and a few numbers per column; with the factor that direct() computes. Not collective.
GRIDLOPS_EXPORT Index solver_workspace_bytes(const SolverMemory& of, int row, int col);

/// The memory that an inversion needs on a rank, in bytes, excluding B, X and a few numbers per column.
struct SolveBytes {
  Index operators = 0;  ///< what operators keep: LinearOperator::kept_bytes()
  Index vectors = 0;    ///< of the solver, with the right-hand sides that the inversion makes of B
  Index products = 0;   ///< scratch memory: LinearOperator::scratch_bytes()

  Index total() const { return operators + vectors + products; }
};

/// Returns the memory that solve() needs here for this many right-hand sides; 0 on an idle rank. Allocates
/// none of it. Not collective. Functions NAME_bytes() do so for other inversions.
template <Scalar T>
GRIDLOPS_EXPORT SolveBytes solve_bytes(Solver solver, const LinearOperator<T>& A, Index nrhs,
                                       const SolveOptions& options = {});

}  // namespace gridlops
