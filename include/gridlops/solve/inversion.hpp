// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops {

// Inversions with regularisation for any operator, built from operator_algebra.hpp and solver.hpp. B is in
// A.range() and X in A.domain(), with the same column partition. The functions are collective over the grid;
// idle ranks return at once. They throw ShapeError or UsageError on all ranks; ShapeError before any
// communication.

/// ε²‖R x − d‖², where R maps the model's space to any space on the grid with its columns on the same axis.
template <Scalar T>
struct Regularizer {
  OperatorPtr<T> R;
  double epsilon = 1;                        ///< ≥ 0
  const ConstDistMatrix<T>* data = nullptr;  ///< d, in R's range, with the column partition of B; null: 0
};

/// ε² xᴴN x for a Hermitian N from the model's space to itself, for example RᴴR as one operator.
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

/// Solves (AᴴWA + Σ εᵢ²RᵢᴴRᵢ + Σ εₖ²Nₖ + D²I) xⱼ = AᴴW bⱼ + Σ εᵢ²Rᵢᴴdᵢⱼ by cg(). Tests and norms in the
/// report refer to this system. Its condition number is the square of that of the least-squares problem.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport normal_equations_inversion(OperatorPtr<T> A, const ConstDistMatrix<T>& B,
                                                       DistMatrix<T>& X, const NormalEquationsTerms<T>& terms,
                                                       const SolveOptions& options = {});

/// Returns the memory that normal_equations_inversion() needs on this rank, as solve_bytes() does.
template <Scalar T>
GRIDLOPS_EXPORT SolveBytes normal_equations_inversion_bytes(OperatorPtr<T> A, Index nrhs,
                                                            const NormalEquationsTerms<T>& terms,
                                                            const SolveOptions& options = {});

template <Scalar T>
struct RegularizedTerms {
  OperatorPtr<T> weight;  ///< W^½ itself, from A's range to any stackable space; null: I
  std::vector<Regularizer<T>> regularizers;
  Solver solver = Solver::lsqr;  ///< or cgls, lsmr, block_cgls
};

/// Minimises ‖W^½(A xⱼ − bⱼ)‖² + Σ εᵢ²‖Rᵢxⱼ − dᵢⱼ‖² + D²‖xⱼ‖² as the least-squares problem with [W^½A; ε₁R₁;
/// …] and [W^½b; ε₁d₁; …]. Tests and norms in the report refer to this system. If a regulariser's range is
/// cut along another axis than the data, it is redistributed.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport regularized_inversion(OperatorPtr<T> A, const ConstDistMatrix<T>& B,
                                                  DistMatrix<T>& X, const RegularizedTerms<T>& terms,
                                                  const SolveOptions& options = {});

/// Returns the memory that regularized_inversion() needs on this rank, as solve_bytes() does.
template <Scalar T>
GRIDLOPS_EXPORT SolveBytes regularized_inversion_bytes(OperatorPtr<T> A, Index nrhs,
                                                       const RegularizedTerms<T>& terms,
                                                       const SolveOptions& options = {});

template <Scalar T>
struct Preconditioning {
  OperatorPtr<T> P;              ///< maps to the domain of A
  Solver solver = Solver::lsqr;  ///< or cgls, lsmr, block_cgls
  /// D damps x instead of z, also with an initial guess, and the report has the norms of x and of the
  /// original problem.
  bool damps_x = false;
};

/// Minimises ‖A xⱼ − bⱼ‖² + D²‖zⱼ‖² over xⱼ = P zⱼ, or over xⱼ = x₀ⱼ + P zⱼ with an initial guess x₀ⱼ. Tests
/// refer to the system with A P, and so do norms unless x is damped.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport preconditioned_inversion(OperatorPtr<T> A, const ConstDistMatrix<T>& B,
                                                     DistMatrix<T>& X, const Preconditioning<T>& how,
                                                     const SolveOptions& options = {});

/// Returns diag(1/‖A eⱼ‖), with 1 for zero columns, for a matrix A and the domain of an operator made from it
/// (collective over the grid; one all_reduce). Used as a right preconditioner, it makes all columns equally
/// long.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> column_scaling(const ConstDistMatrix<T>& matrix, const Space& domain);

/// Returns that operator for an A with column_norms(), such as a matrix on disks.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> column_scaling(const LinearOperator<T>& A);

}  // namespace gridlops
