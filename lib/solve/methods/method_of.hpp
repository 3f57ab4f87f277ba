// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/instantiate.hpp"
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

}  // namespace gridlops
