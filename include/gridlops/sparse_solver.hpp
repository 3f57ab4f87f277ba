// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include "gridlops/export.hpp"
#include "gridlops/solver.hpp"
#include "gridlops/threshold.hpp"

namespace gridlops {

/// The momentum of steps from y = x + ω(x − x₋): none; ω = (k − 1)/(k + 2) in iteration k (Vandenberghe's
/// lectures); or FISTA's.
enum class Acceleration { none, fista, vandenberghe };

struct SparseOptions {
  /// Those of the other solvers. The damping must be 0.
  SolveOptions common{};
  double lambda = 0;                                ///< ≥ 0
  std::vector<double> lambdas{};                    ///< one for each right-hand side instead
  Threshold threshold = Threshold::soft;            ///< of ista() and fista()
  Acceleration acceleration = Acceleration::fista;  ///< of proximal_gradient()
  /// Iteration k of a column thresholds with decay[k]·λ, with the last entry from there on; empty: with λ.
  std::vector<double> decay{};
  /// α > 0; unset: 1/(1.02‖A‖)² with ‖A‖ as estimate_norm() has it in 20 steps. The estimate is from below,
  /// by less than the 2 per cent unless the spectrum is very dense. Also then α is far below 2/‖A‖².
  std::optional<double> step{};
  /// Each column begins with α, or with 1/‖A‖² as estimated without the 2 per cent. If it proves too large,
  /// α‖A(x₊ − y)‖² > ‖x₊ − y‖², the iteration leaves x as it is and makes α smaller, at least by half.
  bool backtracking = false;
  /// Not for ista(): where the objective rises the step is not taken and the momentum starts anew, so that
  /// the objective falls monotonically (O'Donoghue, Candès: Adaptive restart for accelerated gradient
  /// schemes, Found. Comput. Math. 15, 2015).
  bool restart = false;
  double absolute_tolerance = 0;
};

/// Sparse models: minimises ½‖A xⱼ − bⱼ‖² + λⱼ P(xⱼ) for every column j, P being the penalty of the threshold
/// (‖x‖₁ for soft), by iterative shrinkage (Daubechies, Defrise, De Mol, Comm. Pure Appl. Math. 57, 2004),
///
///   x₊ = threshold(x + α Aᴴ(b − A x), αλ),
///
/// each column with its own test, verdict and history (collective over the grid; idle ranks return at once).
/// PyLops' eps is 2λ. B: in A.range(); X: in A.domain(), same column partition. One reduction, one product
/// with A and one with Aᴴ an iteration, whatever the columns.
///
/// Column j has converged when a step moves it no further than max(T·‖x₊‖, absolute tolerance); verified by a
/// step from the final x, which is not taken. The history's tested norms are ‖x₊ − x‖/‖x₊‖. A column ends
/// with breakdown if the step is too large: α‖A(x₊ − x)‖² > ‖x₊ − x‖² and the objective is above that of the
/// start, which cannot be with α ≤ 1/‖A‖² and a soft threshold; X then holds the last iterate before. Throws
/// ShapeError or UsageError on all ranks.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport ista(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                 const SparseOptions& options = {});

/// Models that are sparse in another domain, x = S z: P is that of z, and x₊ = S threshold(Sᴴ(x + α Aᴴ(b −
/// A x)), αλ). The range of S is the domain of A; S Sᴴ = I for this to minimise anything.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport ista(const LinearOperator<T>& A, const LinearOperator<T>& S,
                                 const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                 const SparseOptions& options = {});

/// The same with momentum (Beck, Teboulle: A fast iterative shrinkage-thresholding algorithm, SIAM J. Imaging
/// Sci. 2, 2009): steps are from y = x + (t₋ − 1)/t · (x − x₋), t = (1 + √(1 + 4t₋²))/2, and what is tested
/// is the larger of ‖x₊ − x‖ and ‖x₊ − y‖, which bounds how far a step from x₊ would move.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport fista(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                  const SparseOptions& options = {});
template <Scalar T>
GRIDLOPS_EXPORT SolveReport fista(const LinearOperator<T>& A, const LinearOperator<T>& S,
                                  const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                  const SparseOptions& options = {});

}  // namespace gridlops
