// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "solve/methods/methods.hpp"

namespace gridlops {

/// The class of a solver's method, constructed from a SolverCall<T>. The file that defines the class
/// specialises it, with the member `template <Scalar T> using Type = …`, and instantiates make_method_of().
template <Solver solver>
struct MethodOf;

template <Solver solver, Scalar T>
MethodPtr<T> make_method_of(const SolverCall<T>& call) {
  return std::make_unique<typename MethodOf<solver>::template Type<T>>(call);
}

/// Throws ShapeError unless M is an operator from A's domain to itself.
template <Scalar T>
void require_preconditioner(const LinearOperator<T>& M, const LinearOperator<T>& A) {
  require<ShapeError>(M.domain() == A.domain() && M.range() == A.domain(),
                      "a preconditioner must be an operator from the models of the ", A.rows(), " x ",
                      A.cols(), " operator to themselves, layouts included; this one is ", M.rows(), " x ",
                      M.cols());
}

}  // namespace gridlops
