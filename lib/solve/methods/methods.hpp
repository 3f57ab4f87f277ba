// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "gridlops/solve/solver.hpp"
#include "solve/run/column_method.hpp"

namespace gridlops {

template <Scalar T>
using MethodPtr = std::unique_ptr<ColumnMethod<T>>;

/// The arguments of a method. They must outlive the method.
template <Scalar T>
struct SolverCall {
  Solver solver;
  const LinearOperator<T>& A;
  const SolveOptions& options;
  const SolverOperands<T> operands{};
};

/// Makes the method of this solver. The method's own file instantiates it.
template <Solver solver, Scalar T>
MethodPtr<T> make_method_of(const SolverCall<T>& call);
/// Makes the method of call.solver. Throws ShapeError or UsageError on all ranks if the arguments do not fit.
template <Scalar T>
MethodPtr<T> make_method(const SolverCall<T>& call);

/// Like solve(), but may continue from another solve.
template <Scalar T>
SolveReport solve_from(Solver solver, const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
                       DistMatrix<T>& X, const SolveOptions& options, const SolverOperands<T>& operands,
                       const SolvedBefore<T>& before);

}  // namespace gridlops
