// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops {

// Solutions for an operator A by an approximation Ã that is cheaper to multiply with: a compressed matrix, or
// one of lower precision. Both map between the same spaces.

struct RefinedOptions {
  SolveOptions common{};          ///< an iteration is one step with A, and the inner iterations with Ã
  Index inner_iterations = 1000;  ///< ≥ 1, the most in one step
  /// The costs of a product with A and of one with Ã, in any unit: the bytes that they read, or seconds. If
  /// both are given, columns end with user_stop where cgls() with A is expected to cost less. 0: not known.
  double cost_of_A = 0, cost_of_approximation = 0;
};

/// How one column went.
struct RefinedColumn {
  Index inner_iterations = 0;
  /// The factor by which a step reduces the error, in the norm ‖Ae‖² + D²‖e‖², as measured from the second
  /// step on; 0 before.
  double contraction = 0;
  /// The iterations that cgls() with A is expected to take for the same tolerance: for each digit of the
  /// gradient 0.9 times those with Ã in the first two steps. With T = 0 to the last digit of double
  /// precision.
  double cgls_iterations = 0;
  /// If both costs are given: the contraction above which the column is refused, as known after the last
  /// step. 0: an approximation at this cost gains nothing, whatever its contraction.
  double needed_contraction = 0;
  bool is_refused = false;
};

/// The result of solve_refined(): the same on all members of the grid, and empty on idle ranks.
struct RefinedReport {
  SolveReport solve{};                   ///< of the problem with A; its iterations are steps with A
  std::vector<RefinedColumn> columns{};  ///< of B
  /// How often A and Ã were multiplied with a block of columns, forward and adjoint, from the start to the
  /// verdicts.
  Index products_with_A = 0, products_with_approximation = 0;
  /// Why columns were refused, with the accuracy of Ã that they need; empty if none was.
  std::string refusal{};

  /// Pairs of a forward and an adjoint product.
  double passes() const { return static_cast<double>(products_with_A) / 2; }
};

/// Minimises ‖A xⱼ − bⱼ‖² + D²‖xⱼ‖² for every column j by conjugate gradients on (AᴴA + D²I) x = Aᴴb,
/// preconditioned by (ÃᴴÃ + D²I)⁻¹, which conjugate gradients with Ã apply (collective over the grid; idle
/// ranks return at once). A step takes one product each with A and Aᴴ, and inner iterations of one product
/// each with Ã and Ãᴴ. They reduce the gradient to 0.3 times the measured contraction of it, but not to more
/// than 0.1 nor to less than 1e-4, and not below 0.7·T‖Aᴴb‖. The preconditioner so differs from step to step:
/// each direction is made conjugate to the last one, whatever it is (Golub, Ye: Inexact preconditioned
/// conjugate gradient method with inner-outer iteration, SIAM J. Sci. Comput. 21, 1999; Notay: Flexible
/// conjugate gradients, SIAM J. Sci. Comput. 22, 2000). Every step reduces the error e in the norm ‖Ae‖² +
/// D²‖e‖², however poor Ã is.
///
/// Tests, verdicts and norms are those of cgls() with A: a column has converged when its recomputed ‖Aᴴ(b−Ax)
/// − D²x‖ ≤ T·‖Aᴴb‖. Columns are independent, and leave the products with A when they end; they leave those
/// with Ã when all have reached their inner tolerance. Requests of observers and for checkpoints are answered
/// between steps.
///
/// With costs, a column ends with user_stop after a step, from the second one on, if what is left is expected
/// to cost more than half of cgls() with A from the start. Such predictions are too low by a factor of up to
/// two. X has its last iterate, from which cgls() may go on, and RefinedReport::refusal says how much closer
/// to A an approximation must be. Throws ShapeError or UsageError on all ranks before any communication, also
/// if the spaces of A and Ã differ, or for an option that cgls() does not take, or one_pass.
/// Reasons: docs/decisions/0061-refined-solves.md.
template <Scalar T>
GRIDLOPS_EXPORT RefinedReport solve_refined(const LinearOperator<T>& A,
                                            const LinearOperator<T>& approximation,
                                            const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                            const RefinedOptions& options = {});

/// Returns the memory that solve_refined() needs on this rank, as solve_bytes() does. The memory that A
/// shares with its high plane, or with itself, counts once.
template <Scalar T>
GRIDLOPS_EXPORT SolveBytes refined_bytes(const LinearOperator<T>& A, const LinearOperator<T>& approximation,
                                         Index nrhs, const RefinedOptions& options = {});

/// A lower bound of ‖A − Ã‖₂ by estimate_norm(), that is by Golub–Kahan bidiagonalisation, which never gives
/// less than as many steps of power iteration on (A − Ã)ᴴ(A − Ã) (collective over the grid). The singular
/// values of such differences lie close together, so that 20 steps may give a few per cent too little.
/// error_bounds() says what the difference costs in accuracy, without A.
template <Scalar T>
GRIDLOPS_EXPORT double difference_norm(OperatorPtr<T> A, OperatorPtr<T> approximation, int steps = 20,
                                       std::uint64_t seed = 1);

}  // namespace gridlops
