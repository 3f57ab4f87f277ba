// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops {

// These inversions with regularisation are for any operator; they are made of operator_algebra.hpp and
// solver.hpp. B is in A.range() and X in A.domain(), with the same column partition. They are collective over
// the grid; idle ranks return at once. They throw ShapeError or UsageError on all ranks; for shapes before
// any communication.

/// ε²‖R x − d‖², R from the model's space to any on the grid with its columns on the same axis.
template <Scalar T>
struct Regularizer {
  OperatorPtr<T> R;
  double epsilon = 1;                        ///< ≥ 0
  const ConstDistMatrix<T>* data = nullptr;  ///< d, in R's range, its columns cut as those of B; null: 0
};

/// ε² xᴴN x for a Hermitian N from the model's space to itself. It may be RᴴR as one operator.
template <Scalar T>
struct NormalRegularizer {
  OperatorPtr<T> N;
  double epsilon = 1;
};

template <Scalar T>
struct NormalEquationsTerms {
  OperatorPtr<T> weight;  ///< W, Hermitian positive semidefinite, from A's range to itself; null: I
  std::vector<Regularizer<T>> regularizers;
  std::vector<NormalRegularizer<T>> normal_regularizers;
};

/// Solves (AᴴWA + Σ εᵢ²RᵢᴴRᵢ + Σ εₖ²Nₖ + D²I) xⱼ = AᴴW bⱼ + Σ εᵢ²Rᵢᴴdᵢⱼ by cg(); tests and norms in the
/// report are those of this system, its condition the square of that of the least-squares problem.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport normal_equations_inversion(OperatorPtr<T> A, const ConstDistMatrix<T>& B,
                                                       DistMatrix<T>& X, const NormalEquationsTerms<T>& terms,
                                                       const SolveOptions& options = {});

template <Scalar T>
struct RegularizedTerms {
  OperatorPtr<T> weight;  ///< W^½ itself, from A's range to any space that can be stacked; null: I
  std::vector<Regularizer<T>> regularizers;
  Solver solver = Solver::lsqr;  ///< or cgls, lsmr, block_cgls
};

/// Minimises ‖W^½(A xⱼ − bⱼ)‖² + Σ εᵢ²‖Rᵢxⱼ − dᵢⱼ‖² + D²‖xⱼ‖² as the least-squares problem with
/// [W^½A; ε₁R₁; …] and [W^½b; ε₁d₁; …]; tests and norms in the report are those of this system. Where a
/// regulariser's range is cut along another axis than the data it is redistributed.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport regularized_inversion(OperatorPtr<T> A, const ConstDistMatrix<T>& B,
                                                  DistMatrix<T>& X, const RegularizedTerms<T>& terms,
                                                  const SolveOptions& options = {});

template <Scalar T>
struct Preconditioning {
  OperatorPtr<T> P;              ///< to the domain of A
  Solver solver = Solver::lsqr;  ///< or cgls, lsmr, block_cgls
  /// D damps x instead of z, also with an initial guess, and the norms in the report are those of x and of
  /// the problem as it is given.
  bool damps_x = false;
};

/// Minimises ‖A xⱼ − bⱼ‖² + D²‖zⱼ‖² over xⱼ = P zⱼ; with an initial guess over xⱼ = x₀ⱼ + P zⱼ. Tests, and
/// norms unless x is damped, are those of the system with A P.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport preconditioned_inversion(OperatorPtr<T> A, const ConstDistMatrix<T>& B,
                                                     DistMatrix<T>& X, const Preconditioning<T>& how,
                                                     const SolveOptions& options = {});

/// Returns diag(1/‖A eⱼ‖), with 1 for columns of zeros, for a matrix A and the domain of an operator made of
/// it (collective over the grid; one all_reduce). As a right preconditioner it makes all columns equally
/// long.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> column_scaling(const ConstDistMatrix<T>& matrix, const Space& domain);

}  // namespace gridlops
