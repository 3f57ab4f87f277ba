// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/solve/solver.hpp"

namespace gridlops {

/// Finds sparse models: minimises ½‖A xⱼ − bⱼ‖² + λⱼ P(xⱼ) for every column j, where P is the penalty of the
/// threshold (‖x‖₁ for soft), by iterative shrinkage (Daubechies, Defrise, De Mol, Comm. Pure Appl. Math. 57,
/// 2004),
///
///   x₊ = threshold(x + α Aᴴ(b − A x), αλ).
///
/// Each column has its own convergence test, verdict and history (collective over the grid; idle ranks return
/// at once). PyLops' eps is 2λ. B: in A.range(); X: in A.domain(), same column partition. An iteration takes
/// one reduction, one product with A and one with Aᴴ, for any number of columns.
///
/// Column j has converged when a step moves it no further than max(T·‖x₊‖, absolute tolerance). To verify
/// this, the solver computes a step from the final x but does not take it. The history's tested norms are ‖x₊
/// − x‖/‖x₊‖. A column ends with breakdown if the step is too large: α‖A(x₊ − x)‖² > ‖x₊ − x‖² and the
/// objective exceeds its initial value, which cannot happen with α ≤ 1/‖A‖² and a soft threshold. X then
/// holds the previous iterate. Throws ShapeError or UsageError on all ranks.
template <Scalar T>
SolveReport ista(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 const SolveOptions& options = {}) {
  return solve(Solver::ista, A, B, X, options);
}

/// Finds models that are sparse in another domain, x = S z: P applies to z, and x₊ = S threshold(Sᴴ(x + α
/// Aᴴ(b − A x)), αλ). The range of S is the domain of A. S Sᴴ = I is required for this to minimise anything.
template <Scalar T>
SolveReport ista(const LinearOperator<T>& A, const LinearOperator<T>& S, const ConstDistMatrix<T>& B,
                 DistMatrix<T>& X, const SolveOptions& options = {}) {
  return solve(Solver::ista, A, B, X, options, {.sparsity = &S});
}

/// Minimises as ista() does, with momentum (Beck, Teboulle: A fast iterative shrinkage-thresholding
/// algorithm, SIAM J. Imaging Sci. 2, 2009): steps start from y = x + (t₋ − 1)/t · (x − x₋), t = (1 + √(1 +
/// 4t₋²))/2. The convergence test uses the larger of ‖x₊ − x‖ and ‖x₊ − y‖, which bounds how far a step from
/// x₊ would move.
template <Scalar T>
SolveReport fista(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                  const SolveOptions& options = {}) {
  return solve(Solver::fista, A, B, X, options);
}
template <Scalar T>
SolveReport fista(const LinearOperator<T>& A, const LinearOperator<T>& S, const ConstDistMatrix<T>& B,
                  DistMatrix<T>& X, const SolveOptions& options = {}) {
  return solve(Solver::fista, A, B, X, options, {.sparsity = &S});
}

}  // namespace gridlops
