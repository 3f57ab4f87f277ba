// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gridlops/base/export.hpp"

namespace gridlops {

/// The solvers that solve() can call.
enum class Solver {
  cgls,
  pcgls,
  lsqr,
  lsmr,
  block_cgls,
  direct,
  cg,
  pcg,
  minres,
  ista,
  fista,
  proximal_gradient,
  bounded
};

/// The problem that a solver solves.
enum class ProblemKind {
  least_squares,  ///< minimises ‖A x − b‖² + D²‖x‖²; bounded: for l ≤ x ≤ u
  hermitian,      ///< solves (A + D²I) x = b for a Hermitian A
  sparse          ///< minimises ½‖A x − b‖² + λ P(x)
};

/// The convergence test to which a solver's tolerance T applies.
enum class ToleranceTest {
  gradient,        ///< ‖Aᴴ(b − Ax) − D²x‖ ≤ T‖Aᴴb‖
  residual,        ///< ‖b − Ax − D²x‖ ≤ T‖b‖
  backward_error,  ///< the tests of Paige and Saunders (ACM TOMS 8, 1982, §6) for the damped system
  projected_gradient,  ///< ‖φ + β‖ ≤ T‖Aᴴb‖: what Aᴴ(b − Ax) − D²x has where bounds do not hold x back
  own  ///< a norm of the method's own, relative to a reference of its own: how far a step moves x
};
/// Whether norms of A, B and bounds cannot be multiplied by powers of two for the solver, so that it refuses
/// those of which squares leave the range of numbers.
constexpr bool is_unscaled(ToleranceTest test) {
  return test == ToleranceTest::projected_gradient || test == ToleranceTest::own;
}
/// The test as an ASCII formula for help texts.
GRIDLOPS_EXPORT const char* formula_of(ToleranceTest test);

/// The features that some solvers support and others do not. The values are bits of a set.
enum class Feature : unsigned {
  none = 0,
  damping = 1,             ///< D > 0
  damping_per_column = 2,  ///< a separate D for each column of B
  column_scaling = 4,      ///< P in preconditioned_inversion(), regularisers in regularized_inversion()
  backward_error = 8,      ///< atol, btol and a limit on cond(A)
  variances = 16,      ///< the diagonal of (AᴴA + D²I)⁻¹: estimates from below, or by a factor exactly
  one_pass = 32,       ///< an iteration can read A once
  penalty = 64,        ///< λ, and a step length that is given or estimated
  threshold = 128,     ///< the penalty belongs to a threshold
  momentum = 256,      ///< momentum, which may restart
  acceleration = 512,  ///< a choice of momentum
  preconditioner = 1024,     ///< needs SolverOperands::preconditioner
  proximal_operator = 2048,  ///< needs SolverOperands::penalty
  error_bound = 4096,        ///< errors are bounded by the tested norm, see error_bounds()
  factor = 8192,             ///< computes a factor of A, unless SolverOperands::factor is one
  shared_space = 16384,      ///< right-hand sides share one space, and lie together: stationary_a
  bounds = 32768,            ///< bounds of x
  weights = 65536,           ///< SolverOperands::weights: each number of B has one
  misfit = 131072            ///< robust_solve() takes it
};
constexpr Feature operator|(Feature a, Feature b) {
  return static_cast<Feature>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
/// Whether `set` contains all of `wanted`.
constexpr bool has(Feature set, Feature wanted) {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
}

/// A row of the solver table.
/// Reasons: docs/decisions/0044-solver-table.md.
struct SolverRow {
  Solver solver;
  const char* name;  ///< used in reports, on command lines and in Python
  ProblemKind problem;
  ToleranceTest test;
  Feature features;
  const char* about;  ///< for help texts
  /// How often an iteration without damping reads or writes a vector of models, and a vector of data, outside
  /// its products: x += alpha * p counts 3, norm2(p) 1.
  double model_passes, data_passes;

  constexpr bool has(Feature wanted) const { return gridlops::has(features, wanted); }
  /// Whether the solver requires an operand in SolverOperands.
  constexpr bool needs_operand() const {
    return has(Feature::preconditioner) || has(Feature::proximal_operator);
  }
  /// Whether an iteration also multiplies with Aᴴ.
  constexpr bool multiplies_with_adjoint() const { return problem != ProblemKind::hermitian; }
};

namespace solver_features {
constexpr Feature least_squares = Feature::damping | Feature::column_scaling | Feature::error_bound;
constexpr Feature bidiagonal =
    least_squares | Feature::damping_per_column | Feature::backward_error | Feature::weights;
constexpr Feature hermitian = Feature::damping | Feature::damping_per_column;
constexpr Feature definite = hermitian | Feature::error_bound;
}  // namespace solver_features

/// The only table of solvers. solve(), preconditioned and regularised inversions, plans, the program, the
/// benchmark, Python and the documentation read it. Rows are in the order of enum Solver.
inline constexpr std::array solver_rows{
    SolverRow{Solver::cgls, "cgls", ProblemKind::least_squares, ToleranceTest::gradient,
              solver_features::least_squares | Feature::damping_per_column | Feature::one_pass |
                  Feature::weights | Feature::misfit,
              "least squares", 9, 5},
    SolverRow{Solver::pcgls, "pcgls", ProblemKind::least_squares, ToleranceTest::gradient,
              Feature::damping | Feature::damping_per_column | Feature::error_bound |
                  Feature::preconditioner | Feature::weights | Feature::misfit,
              "the same, preconditioned", 11, 5},
    SolverRow{Solver::lsqr, "lsqr", ProblemKind::least_squares, ToleranceTest::backward_error,
              solver_features::bidiagonal | Feature::variances,
              "least squares, also where A is ill-conditioned", 10, 4},
    SolverRow{Solver::lsmr, "lsmr", ProblemKind::least_squares, ToleranceTest::backward_error,
              solver_features::bidiagonal, "the same, to be stopped early", 13, 4},
    SolverRow{Solver::block_cgls, "block-cgls", ProblemKind::least_squares, ToleranceTest::gradient,
              solver_features::least_squares | Feature::shared_space,
              "least squares, all right-hand sides in one space", 12, 8},
    SolverRow{Solver::direct, "direct", ProblemKind::least_squares, ToleranceTest::gradient,
              Feature::damping | Feature::damping_per_column | Feature::error_bound | Feature::variances |
                  Feature::factor,
              "least squares, by a factor of A, for many right-hand sides", 12, 5},
    SolverRow{Solver::cg, "cg", ProblemKind::hermitian, ToleranceTest::residual, solver_features::definite,
              "(A + D^2 I) X = B, A Hermitian positive definite", 12, 0},
    SolverRow{Solver::pcg, "pcg", ProblemKind::hermitian, ToleranceTest::residual,
              solver_features::definite | Feature::preconditioner, "the same, preconditioned", 12, 0},
    SolverRow{Solver::minres, "minres", ProblemKind::hermitian, ToleranceTest::residual,
              solver_features::hermitian, "(A + D^2 I) X = B, A Hermitian, also indefinite", 27, 0},
    SolverRow{Solver::ista, "ista", ProblemKind::sparse, ToleranceTest::own,
              Feature::penalty | Feature::threshold | Feature::weights, "sparse X", 6, 4},
    SolverRow{Solver::fista, "fista", ProblemKind::sparse, ToleranceTest::own,
              Feature::penalty | Feature::threshold | Feature::momentum | Feature::weights,
              "sparse X, faster", 9, 4},
    SolverRow{Solver::proximal_gradient, "proximal-gradient", ProblemKind::sparse, ToleranceTest::own,
              Feature::penalty | Feature::momentum | Feature::acceleration | Feature::proximal_operator |
                  Feature::weights,
              "X with any penalty", 9, 4},
    SolverRow{Solver::bounded, "bounded", ProblemKind::least_squares, ToleranceTest::projected_gradient,
              Feature::damping | Feature::damping_per_column | Feature::error_bound | Feature::bounds,
              "least squares with bounds of X", 38, 5},
};

/// The row of a solver.
constexpr const SolverRow& row_of(Solver solver) { return solver_rows[static_cast<std::size_t>(solver)]; }
static_assert(
    [] {
      for (std::size_t k = 0; k < solver_rows.size(); ++k)
        if (solver_rows[k].solver != static_cast<Solver>(k)) return false;
      return true;
    }(),
    "solver_rows needs a row for each value of enum Solver, in its order");

/// The name used in reports: "cgls", "block-cgls", …; reports call cgls() in one pass "one-pass-cgls".
constexpr const char* name_of(Solver solver) { return row_of(solver).name; }
/// Returns the solvers that have all of these features. Solvers that need an operand besides A, B and X are
/// included only if that operand is among the features.
GRIDLOPS_EXPORT std::vector<Solver> solvers_with(Feature features);
/// Returns the solvers that need only A, B and options.
inline std::vector<Solver> named_solvers() { return solvers_with(Feature::none); }
/// Returns the solver of this name. If there is none, throws a UsageError that lists the names.
GRIDLOPS_EXPORT Solver parse_solver(std::string_view name);
/// Returns a list such as "lsqr, lsmr".
GRIDLOPS_EXPORT std::string names_of(const std::vector<Solver>& solvers);

}  // namespace gridlops
