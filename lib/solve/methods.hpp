// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "gridlops/proximal.hpp"
#include "solve/column_method.hpp"

namespace gridlops {

// These functions make the methods, each in a file of its own. Operators and options must outlive a method.
// Arguments that do not fit throw ShapeError or UsageError on all ranks.

template <Scalar T>
using MethodPtr = std::unique_ptr<ColumnMethod<T>>;

template <Scalar T>
MethodPtr<T> make_cgls(const LinearOperator<T>& A, const SolveOptions& options);
/// M: the preconditioner, or null.
template <Scalar T>
MethodPtr<T> make_cg(const LinearOperator<T>& A, const LinearOperator<T>* M);
/// variances: where they go, or null.
template <Scalar T>
MethodPtr<T> make_lsqr(const LinearOperator<T>& A, const SolveOptions& options, DistMatrix<T>* variances);
template <Scalar T>
MethodPtr<T> make_lsmr(const LinearOperator<T>& A, const SolveOptions& options);
template <Scalar T>
MethodPtr<T> make_block_cgls(const LinearOperator<T>& A, double damp);
/// Makes ISTA, FISTA and the proximal gradient method, all for λg. S: the sparsifying operator, or null.
/// options has a lambda for each column; options.step must have been chosen when the method starts. A restart
/// gives both the values that were saved.
template <Scalar T>
MethodPtr<T> make_ista(const char* name, const LinearOperator<T>& A, const LinearOperator<T>* S,
                       ProximalPtr<T> g, SparseOptions& options, Acceleration acceleration);

}  // namespace gridlops
